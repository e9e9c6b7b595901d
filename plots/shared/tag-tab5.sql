-- The models of TAG's Table 5, at batch 4, and its planners.
panel (panel, model, title) AS (
    VALUES (0, 'tag-inceptionv3:global_batch=4', 'InceptionV3'), (1, 'tag-resnet101:global_batch=4,own_moments=1', 'ResNet101'),
           (2, 'vgg19:image=224,global_batch=4,classes=1000', 'VGG19'), (3, 'tag-transformer:global_batch=4', 'Transformer'),
           (4, 'tag-bert-small:global_batch=4,host_words=1', 'BERT-Small'), (5, 'tag-bert-large:global_batch=4,host_words=1', 'BERT-Large')),
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'dp-nccl-sfb', 'own', 'DP-NCCL with SFB'), (5, 'tag', 'mcts', 'TAG with SFB'),
           (6, 'tag', 'own', 'TAG, Kilter''s search, SFB')),
