-- TAG, Table 4: one row per bar, in the columns of tag-bars.gp: GPUs per op, by type; ours by TAG's search and by Kilter's.
WITH
.read shared/tag-panels.sql
seat (seat, planner, search, name) AS (VALUES (5, 'tag', 'mcts', 'TAG'), (6, 'tag', 'own', 'Kilter')),
paper (title, type, gpus) AS (
    VALUES ('InceptionV3', 'v100', 4.0), ('InceptionV3', 'gtx1080ti', 8.0), ('InceptionV3', 'p100', 0.0), ('VGG19', 'v100', 4.0),
           ('VGG19', 'gtx1080ti', 2.1), ('VGG19', 'p100', 0.0), ('ResNet101', 'v100', 4.0), ('ResNet101', 'gtx1080ti', 8.0),
           ('ResNet101', 'p100', 4.0), ('Transformer', 'v100', 4.0), ('Transformer', 'gtx1080ti', 8.0), ('Transformer', 'p100', 0.0),
           ('BERT-Small', 'v100', 3.9), ('BERT-Small', 'gtx1080ti', 0.1), ('BERT-Small', 'p100', 0.1), ('BERT-Large', 'v100', 0.6),
           ('BERT-Large', 'gtx1080ti', 0.5), ('BERT-Large', 'p100', 0.1)),
.read shared/tag-bars.sql
SELECT panel, bar.title, seat, name || ', ' || paper.type, status, json_extract(detail, '$.placement.devices_an_op.' || paper.type),
       CASE seat WHEN 5 THEN paper.gpus END, ordinal AS rows
FROM bar JOIN paper ON paper.title = bar.title
ORDER BY panel, CASE paper.type WHEN 'v100' THEN 0 WHEN 'gtx1080ti' THEN 1 ELSE 2 END, seat;
