-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-tab6.sql
, kind AS (SELECT kind, sum(n) AS n FROM named GROUP BY kind),
top AS (SELECT * FROM kind ORDER BY n DESC, kind LIMIT 5)
SELECT 'beyond', sum(n * (kind NOT LIKE '%MatMul')) > 0, group_concat(printf('%s %d', kind, n), ', '), 'only products are'
FROM (SELECT * FROM kind ORDER BY n DESC, kind) HAVING count(*) > 0
UNION ALL
SELECT 'kinds', sum(kind IN ('Reshape', 'MatMul', 'Transpose', 'Conv2DBackpropFilter', 'Add')), group_concat(printf('%s %d', kind, n), ', '),
       'TensorFlow''s graph has reshapes and transpositions as ops, which are none here; convolutions are duplicated with their gradients'
FROM top HAVING count(*) > 0
UNION ALL
SELECT claim, coalesce(n, 0), printf('%d in the six models', coalesce(n, 0)), 'what is duplicated depends on the rates of GPUs: at a quarter of them (column calibrated) it is less; TensorFlow''s graph has additions that are parts of other ops here'
FROM (SELECT 'matmul' AS claim, 'MatMul' AS kind UNION ALL SELECT 'conv-filter', 'Conv2DBackpropFilter' UNION ALL SELECT 'add', 'Add')
LEFT JOIN kind USING (kind) WHERE EXISTS (SELECT * FROM kind);
