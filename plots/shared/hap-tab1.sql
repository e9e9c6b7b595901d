-- Parameters of HAP's models in units of 2^20 by number of GPUs, and those of Table 1: base + slope GPUs.
paper (place, model, label, base, slope) AS (
    VALUES (0, 'vgg19', 'VGG19', 133, 0), (1, 'vit', 'ViT', 54, 0), (2, 'bert-base', 'BERT-Base', 102, 0), (3, 'bert-moe', 'BERT-MoE', 84, 36)),
cell AS (
    SELECT place, model, label, base, slope, gpus, status, json_extract(detail, '$.parameters.elements') / 1048576.0 AS n, max(ordinal) AS ordinal
    FROM result JOIN paper USING (model) WHERE experiment = 'hap-tab1' AND json_extract(detail, '$.parameters.elements') > 0
    GROUP BY model, gpus)
