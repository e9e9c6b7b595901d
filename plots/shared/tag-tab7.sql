-- Iterations until data parallelism is beaten; if it never is, all iterations spent. Topologies where no search beats it say
-- nothing about searches and are left out. After tag-panels.sql and tag-priors.sql.
beatable AS (SELECT panel, cluster FROM run WHERE experiment = 'tag-tab7' GROUP BY panel, cluster HAVING max(beaten) > 0),
mean AS (
    SELECT panel, title, seat, name, avg(CASE WHEN beaten > 0 THEN beaten ELSE tries END) AS n, sum(beaten = 0) AS never, count(*) AS topologies, group_concat(ordinal, ' ') AS ordinals
    FROM run JOIN beatable USING (panel, cluster) WHERE experiment = 'tag-tab7' GROUP BY panel, seat),
paper (title, seat, n) AS (
    VALUES ('InceptionV3', 1, 66.0), ('ResNet101', 1, 73.4), ('VGG19', 1, 56.6), ('Transformer', 1, 145.0), ('BERT-Small', 1, 97.8),
           ('InceptionV3', 5, 9.5), ('ResNet101', 5, 4.6), ('VGG19', 5, 17.7), ('Transformer', 5, 121.8), ('BERT-Small', 5, 7.9))
