-- Iterations until data parallelism is beaten, of Kilter and of the paper. After tag-iterations.sql and tag-priors.sql.
mean AS (
    SELECT panel, title, seat, name, topologies, CASE seat WHEN 1 THEN uniform WHEN 5 THEN visits WHEN 7 THEN ahead ELSE own END AS n
    FROM iterations, way WHERE planner = 'tag'),
paper (title, seat, n) AS (
    VALUES ('InceptionV3', 1, 66.0), ('ResNet101', 1, 73.4), ('VGG19', 1, 56.6), ('Transformer', 1, 145.0), ('BERT-Small', 1, 97.8),
           ('InceptionV3', 5, 9.5), ('ResNet101', 5, 4.6), ('VGG19', 5, 17.7), ('Transformer', 5, 121.8), ('BERT-Small', 5, 7.9))
