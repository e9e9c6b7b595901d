-- The six models of TAG's figures, at the batch sizes of Table 3.
panel (panel, model, title) AS (
    VALUES (0, 'tag-inceptionv3:global_batch=96', 'InceptionV3'), (1, 'tag-resnet101:global_batch=96,own_moments=1', 'ResNet101'),
           (2, 'vgg19:image=224,global_batch=96,classes=1000', 'VGG19'), (3, 'tag-transformer:global_batch=480', 'Transformer'),
           (4, 'tag-bert-small:global_batch=96,host_words=1', 'BERT-Small'), (5, 'tag-bert-large:global_batch=16,host_words=1', 'BERT-Large')),
