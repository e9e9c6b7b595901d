-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
-- Kinds have TensorFlow's names: the products of linear layers, forward and backward, are all MatMul there.
WITH
op AS (
    SELECT kind.key AS kind, kind.value AS n
    FROM result, json_each(detail, '$.placement.duplicated') AS kind
    WHERE experiment = 'tag-tab6' AND status = 'ok'),
named AS (
    SELECT CASE
               WHEN kind LIKE '%\_db' ESCAPE '\' OR kind IN ('bias_grad', 'channel_sum') THEN 'BiasAddGrad'
               WHEN kind LIKE 'linear%' OR kind LIKE '%\_proj%' ESCAPE '\' OR kind LIKE 'qkv%' OR kind LIKE 'grouped_out%' THEN 'MatMul'
               WHEN kind LIKE '%attention%' THEN 'BatchMatMul'
               WHEN kind = 'conv2d' THEN 'Conv2D'
               WHEN kind = 'conv2d_dw' THEN 'Conv2DBackpropFilter'
               WHEN kind = 'conv2d_dx' THEN 'Conv2DBackpropInput'
               WHEN kind IN ('add', 'add_rows') THEN 'Add'
               WHEN kind = 'relu' THEN 'Relu'
               WHEN kind = 'relu_dx' THEN 'ReluGrad'
               ELSE kind END AS kind, n
    FROM op),
kind AS (SELECT kind, sum(n) AS n FROM named GROUP BY kind),
top AS (SELECT * FROM kind ORDER BY n DESC, kind LIMIT 5)
SELECT 'beyond', sum(n * (kind NOT LIKE '%MatMul')) > 0, group_concat(printf('%s %d', kind, n), ', '), 'only products are'
FROM (SELECT * FROM kind ORDER BY n DESC, kind) HAVING count(*) > 0
UNION ALL
SELECT 'products', 1.0 * sum(n * (kind = 'MatMul')) / sum(n), group_concat(printf('%s %d', kind, n), ', '),
       'TensorFlow''s graph has reshapes and transpositions as ops, which are none here; convolutions are duplicated with their gradients'
FROM top HAVING count(*) > 0;
