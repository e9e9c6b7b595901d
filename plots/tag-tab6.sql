-- TAG, Table 6: one row per kind of op. Columns: kind, number of duplicated ops over all six models, number of models.
WITH
.read shared/tag-tab6.sql
SELECT kind, sum(n), count(DISTINCT ordinal), group_concat(DISTINCT ordinal) AS rows
FROM (SELECT * FROM named ORDER BY ordinal) GROUP BY kind ORDER BY 2 DESC, 1 LIMIT 12;
