-- Printed by ./run train-tag at commit 1844e0e1: iterations until data parallelism is beaten, at most 800, the mean of random:seed=1 to 100 where there
-- is something to choose, models in turn: with uniform priors, with the networks that learnt from visits, from looking ahead, and from looking ahead
-- on the other models, and the strategies that Kilter's search tries (Table 7).
iterations (panel, title, topologies, uniform, visits, ahead, unseen, own) AS (
    VALUES (0, 'InceptionV3', 20, 41.8, 26.7, 9.8, 21.5, 23.6), (1, 'ResNet101', 19, 406.7, 292.8, 226.6, 308.0, 157.4),
           (2, 'VGG19', 20, 444.4, 199.6, 132.7, 94.0, 57.0), (3, 'Transformer', 20, 74.8, 37.1, 8.8, 6.5, 4.6),
           (4, 'BERT-Small', 19, 128.4, 128.3, 127.8, 127.9, 29.5))
