-- TAG, Table 6: one row per kind of op. Columns: kind, number of duplicated ops over all six models, number of models.
SELECT kind.key, sum(kind.value), count(*), group_concat(ordinal, ' ') AS rows
FROM result, json_each(detail, '$.placement.duplicated') AS kind
WHERE experiment = 'tag-tab6' AND status = 'ok'
GROUP BY kind.key ORDER BY 2 DESC, 1 LIMIT 12;
