-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-tab6.sql
, kind AS (SELECT kind, sum(n) AS n FROM named GROUP BY kind),
top AS (SELECT * FROM kind ORDER BY n DESC, kind LIMIT 5)
SELECT 'beyond', sum(n * (kind NOT LIKE '%MatMul')) > 0, group_concat(printf('%s %d', kind, n), ', '), 'only products are'
FROM (SELECT * FROM kind ORDER BY n DESC, kind) HAVING count(*) > 0
UNION ALL
SELECT 'kinds', sum(kind IN ('Reshape', 'MatMul', 'Transpose', 'Conv2DBackpropFilter', 'Add')), group_concat(printf('%s %d', kind, n), ', '),
       'rates: at a quarter of them (column fitted) and by kernels (column kernels) it is three; the other two, reshapes and transpositions, are no ops here'
FROM top HAVING count(*) > 0
UNION ALL
SELECT claim, coalesce(n, 0), printf('%d in the six models', coalesce(n, 0)), 'what is duplicated depends on prices: at a quarter of the rates (column fitted) and by kernels (column kernels) it is less, with the latency of sums and all gradients at once (column joint) more'
FROM (SELECT 'matmul' AS claim, 'MatMul' AS kind UNION ALL SELECT 'conv-filter', 'Conv2DBackpropFilter' UNION ALL SELECT 'add', 'Add')
LEFT JOIN kind USING (kind) WHERE EXISTS (SELECT * FROM kind);
