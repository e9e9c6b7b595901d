-- TAG, Table 5: one row per bar, in the columns of tag-bars.gp: seconds per iteration, ours and the measured
-- ones. Both searches of TAG take sufficient factors, so that theirs are those of TAG with them.
WITH
.read shared/tag-tab5.sql
paper (title, seat, s) AS (
    VALUES ('InceptionV3', 0, 0.0898), ('InceptionV3', 1, 0.0452), ('InceptionV3', 5, 0.0420), ('InceptionV3', 6, 0.0420),
           ('ResNet101', 0, 0.1122), ('ResNet101', 1, 0.0854), ('ResNet101', 5, 0.0490), ('ResNet101', 6, 0.0490),
           ('VGG19', 0, 0.1195), ('VGG19', 1, 0.1192), ('VGG19', 5, 0.1169), ('VGG19', 6, 0.1169),
           ('Transformer', 0, 0.1199), ('Transformer', 1, 0.0455), ('Transformer', 5, 0.0451), ('Transformer', 6, 0.0451),
           ('BERT-Small', 0, 0.0618), ('BERT-Small', 1, 0.0546), ('BERT-Small', 5, 0.0535), ('BERT-Small', 6, 0.0535),
           ('BERT-Large', 0, 0.4576), ('BERT-Large', 1, 0.4317), ('BERT-Large', 5, 0.4266), ('BERT-Large', 6, 0.4266)),
.read shared/tag-bars.sql
SELECT panel, bar.title, bar.seat, name, status, iteration_time_s, s, ordinal AS rows
FROM bar JOIN paper ON paper.title = bar.title AND paper.seat = bar.seat ORDER BY panel, bar.seat;
