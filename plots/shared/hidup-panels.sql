-- HiDup's models.
panel (panel, model, title) AS (
    VALUES (0, 'bert-sgmoe', 'BERT-SGMoE'), (1, 'bert-switch', 'BERT-Switch'), (2, 'vit-sgmoe', 'ViT-SGMoE'), (3, 'vit-switch', 'ViT-Switch')),
