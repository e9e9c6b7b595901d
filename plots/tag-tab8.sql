-- TAG, Table 8: one row a bar, in the columns of tag-bars.gp: speed-up over DP-NCCL in per cent.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'tag-inceptionv3:global_batch=96', 'InceptionV3'), (1, 'tag-resnet101:global_batch=96', 'ResNet101'),
           (2, 'vgg19:image=224,global_batch=96,classes=1000', 'VGG19'), (3, 'tag-transformer:global_batch=480', 'Transformer'),
           (4, 'tag-bert-small:global_batch=96', 'BERT-Small'), (5, 'tag-bert-large:global_batch=16', 'BERT-Large')),
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'dp-nccl-p', 'own', 'DP-NCCL-P'), (2, 'horovod', 'own', 'Horovod'),
           (3, 'flexflow', 'own', 'FlexFlow'), (4, 'heterog', 'own', 'HeteroG'), (5, 'tag', 'mcts', 'TAG, as published'),
           (6, 'tag', 'own', 'TAG, Kilter''s search'), (7, 'hap', 'own', 'HAP')),
paper (model, cluster, percent) AS (
    VALUES ('InceptionV3', 'tag-testbed', 456.1), ('InceptionV3', 'tag-cloud', 117.7), ('ResNet101', 'tag-testbed', 7.7),
           ('ResNet101', 'tag-cloud', 12.2), ('VGG19', 'tag-testbed', 286.2), ('VGG19', 'tag-cloud', 43.6),
           ('Transformer', 'tag-testbed', 80.3), ('Transformer', 'tag-cloud', 15.0), ('BERT-Small', 'tag-testbed', 298.4),
           ('BERT-Small', 'tag-cloud', 84.5)),
bar AS (
    SELECT result.*, panel, title, seat, name, max(ordinal)
    FROM result JOIN panel USING (model) JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    WHERE experiment = 'tag-tab8' GROUP BY panel, cluster, seat),
dp AS (SELECT panel, cluster, iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl' AND status = 'ok')
SELECT panel, title, seat - 5 + 2 * (bar.cluster = 'tag-cloud'),
       CASE seat WHEN 5 THEN 'TAG' ELSE 'Kilter''s search' END || CASE bar.cluster WHEN 'tag-cloud' THEN ', cloud' ELSE ', testbed' END,
       status, 100 * (dp_s / iteration_time_s - 1), CASE seat WHEN 5 THEN percent END
FROM bar JOIN dp USING (panel, cluster) JOIN paper ON paper.model = title AND paper.cluster = bar.cluster
WHERE bar.planner = 'tag' ORDER BY panel, 3;
