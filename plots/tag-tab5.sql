-- TAG, Table 5: one row a bar, in the columns of tag-bars.gp: seconds an iteration, ours and the measured ones.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'tag-inceptionv3:global_batch=4', 'InceptionV3'), (1, 'tag-resnet101:global_batch=4', 'ResNet101'),
           (2, 'vgg19:image=224,global_batch=4,classes=1000', 'VGG19'), (3, 'tag-transformer:global_batch=4', 'Transformer'),
           (4, 'tag-bert-small:global_batch=4', 'BERT-Small'), (5, 'tag-bert-large:global_batch=4', 'BERT-Large')),
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'dp-nccl-sfb', 'own', 'DP-NCCL with SFB'), (5, 'tag', 'mcts', 'TAG'),
           (6, 'tag', 'own', 'TAG, Kilter''s search, SFB')),
paper (title, seat, s) AS (
    VALUES ('InceptionV3', 0, 0.0898), ('InceptionV3', 1, 0.0452), ('InceptionV3', 5, 0.0775), ('InceptionV3', 6, 0.0420),
           ('ResNet101', 0, 0.1122), ('ResNet101', 1, 0.0854), ('ResNet101', 5, 0.0508), ('ResNet101', 6, 0.0490),
           ('VGG19', 0, 0.1195), ('VGG19', 1, 0.1192), ('VGG19', 5, 0.1167), ('VGG19', 6, 0.1169),
           ('Transformer', 0, 0.1199), ('Transformer', 1, 0.0455), ('Transformer', 5, 0.0521), ('Transformer', 6, 0.0451),
           ('BERT-Small', 0, 0.0618), ('BERT-Small', 1, 0.0546), ('BERT-Small', 5, 0.0597), ('BERT-Small', 6, 0.0535),
           ('BERT-Large', 0, 0.4576), ('BERT-Large', 1, 0.4317), ('BERT-Large', 5, 0.4331), ('BERT-Large', 6, 0.4266)),
bar AS (
    SELECT result.*, panel, title, seat, name, max(ordinal)
    FROM result JOIN panel USING (model) JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    WHERE experiment = 'tag-tab5' GROUP BY panel, cluster, seat)
SELECT panel, bar.title, bar.seat, name, status, iteration_time_s, s
FROM bar JOIN paper ON paper.title = bar.title AND paper.seat = bar.seat ORDER BY panel, bar.seat;
