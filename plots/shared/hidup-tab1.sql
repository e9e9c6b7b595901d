-- Millions of parameters of HiDup's models by number of GPUs, and those of Table 1: base + slope GPUs.
paper (place, model, label, base, slope) AS (
    VALUES (0, 'bert-sgmoe', 'BERT-SGMoE', 89, 19), (1, 'bert-switch', 'BERT-Switch', 89, 19), (2, 'vit-sgmoe', 'ViT-SGMoE', 38, 38), (3, 'vit-switch', 'ViT-Switch', 38, 38)),
cell AS (
    SELECT place, model, label, base, slope, gpus, status, json_extract(detail, '$.parameters.elements') / 1e6 AS n, max(ordinal) AS ordinal
    FROM result JOIN paper USING (model) WHERE experiment = 'hidup-tab1' AND json_extract(detail, '$.parameters.elements') > 0
    GROUP BY model, gpus)
