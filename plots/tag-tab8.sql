-- TAG, Table 8: one row per bar, in the columns of tag-bars.gp: speed-up over DP-NCCL in percent.
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
paper (model, cluster, percent) AS (
    VALUES ('InceptionV3', 'tag-testbed', 456.1), ('InceptionV3', 'tag-cloud', 117.7), ('ResNet101', 'tag-testbed', 7.7),
           ('ResNet101', 'tag-cloud', 12.2), ('VGG19', 'tag-testbed', 286.2), ('VGG19', 'tag-cloud', 43.6),
           ('Transformer', 'tag-testbed', 80.3), ('Transformer', 'tag-cloud', 15.0), ('BERT-Small', 'tag-testbed', 298.4),
           ('BERT-Small', 'tag-cloud', 84.5)),
.read shared/tag-bars.sql
, dp AS (SELECT panel, cluster, iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl' AND status = 'ok')
SELECT panel, title, seat - 5 + 2 * (bar.cluster = 'tag-cloud'),
       CASE seat WHEN 5 THEN 'TAG' ELSE 'Kilter''s search' END || CASE bar.cluster WHEN 'tag-cloud' THEN ', cloud' ELSE ', testbed' END,
       status, 100 * (dp_s / iteration_time_s - 1), CASE seat WHEN 5 THEN percent END
FROM bar JOIN dp USING (panel, cluster) JOIN paper ON paper.model = title AND paper.cluster = bar.cluster
WHERE bar.planner = 'tag' ORDER BY panel, 3;
