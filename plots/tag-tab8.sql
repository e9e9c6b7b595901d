-- TAG, Table 8: one row per bar, in the columns of tag-bars.gp: speed-up over DP-NCCL in percent.
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
paper (model, place, percent) AS (
    VALUES ('InceptionV3', 'testbed', 456.1), ('InceptionV3', 'cloud', 117.7), ('ResNet101', 'testbed', 7.7),
           ('ResNet101', 'cloud', 12.2), ('VGG19', 'testbed', 286.2), ('VGG19', 'cloud', 43.6),
           ('Transformer', 'testbed', 80.3), ('Transformer', 'cloud', 15.0), ('BERT-Small', 'testbed', 298.4),
           ('BERT-Small', 'cloud', 84.5)),
.read shared/tag-bars.sql
, sat AS (SELECT *, CASE WHEN cluster LIKE '%cloud' THEN 'cloud' ELSE 'testbed' END AS place FROM bar)
, dp AS (SELECT panel, cluster, ordinal AS dp_ordinal, iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl' AND status = 'ok')
SELECT panel, title, seat, CASE seat WHEN 5 THEN 'TAG' ELSE 'Kilter''s search' END || ', ' || sat.place,
       status, 100 * (dp_s / iteration_time_s - 1), CASE seat WHEN 5 THEN percent END, ordinal || ' ' || dp_ordinal AS rows
FROM sat JOIN dp USING (panel, cluster) JOIN paper ON paper.model = title AND paper.place = sat.place
WHERE sat.planner = 'tag' ORDER BY panel, sat.place = 'cloud', seat;
