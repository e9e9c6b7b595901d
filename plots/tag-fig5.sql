-- TAG, Fig. 5: one row a bar, in the columns of tag-bars.gp: panel, its title, seat, name, status, ours, the paper's.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'tag-inceptionv3:global_batch=96', 'InceptionV3'), (1, 'tag-resnet101:global_batch=96', 'ResNet101'),
           (2, 'vgg19:image=224,global_batch=96,classes=1000', 'VGG19'), (3, 'tag-transformer:global_batch=480', 'Transformer'),
           (4, 'tag-bert-small:global_batch=96', 'BERT-Small'), (5, 'tag-bert-large:global_batch=16', 'BERT-Large')),
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'dp-nccl-p', 'own', 'DP-NCCL-P'), (2, 'horovod', 'own', 'Horovod'),
           (3, 'flexflow', 'own', 'FlexFlow'), (4, 'heterog', 'own', 'HeteroG'), (5, 'tag', 'mcts', 'TAG, as published'),
           (6, 'tag', 'own', 'TAG, Kilter''s search'), (7, 'hap', 'own', 'HAP')),
bar AS (
    SELECT result.*, panel, title, seat, name, max(ordinal)
    FROM result JOIN panel USING (model) JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    WHERE experiment = 'tag-fig5' GROUP BY panel, cluster, seat)
SELECT panel, title, seat, name, status, iteration_time_s, NULL FROM bar ORDER BY panel, seat;
