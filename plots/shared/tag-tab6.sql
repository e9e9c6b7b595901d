-- Ops that are duplicated by kind, with TensorFlow's names: the products of linear layers, forward and backward, are all MatMul there.
op AS (
    SELECT kind.key AS kind, kind.value AS n, ordinal
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
               ELSE kind END AS kind, n, ordinal
    FROM op)
