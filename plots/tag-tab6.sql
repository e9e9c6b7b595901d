-- TAG, Table 6: one row a kind of op. Columns: kind, how many are duplicated over all six models, in how many models.
SELECT kind.key, sum(kind.value), count(*)
FROM result, json_each(detail, '$.placement.duplicated') AS kind
WHERE experiment = 'tag-tab6' AND status = 'ok'
GROUP BY kind.key ORDER BY 2 DESC, 1 LIMIT 12;
