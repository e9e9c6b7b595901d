-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
kind AS (
    SELECT kind.key AS kind, sum(kind.value) AS n
    FROM result, json_each(detail, '$.placement.duplicated') AS kind
    WHERE experiment = 'tag-tab6' AND status = 'ok' GROUP BY kind.key),
is_product AS (SELECT *, kind LIKE 'linear%' OR kind LIKE '%proj%' OR kind LIKE '%attention%' OR kind LIKE 'grouped_out%' AS product FROM kind),
top AS (SELECT * FROM is_product ORDER BY n DESC, kind LIMIT 5)
SELECT 'beyond', sum(n * NOT product) > 0, group_concat(printf('%s %d', kind, n), ', '), 'only products are' FROM (SELECT * FROM is_product ORDER BY n DESC)
HAVING count(*) > 0
UNION ALL
SELECT 'products', 1.0 * sum(n * product) / sum(n), group_concat(printf('%s %d', kind, n), ', '),
       'TensorFlow''s graph has reshapes and transpositions as ops, which are none here; convolutions are duplicated with their gradients'
FROM top HAVING count(*) > 0;
