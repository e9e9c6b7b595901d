-- HAP, Fig. 14: one row per bar, in the columns of hap-bars.gp.
WITH
marked (claim, first_panel, last_panel, least, most, first_rival, last_rival) AS (
    VALUES ('vgg19', 0, 0, 0, 1000, 1, 4), ('vit', 1, 1, 0, 1000, 1, 4), ('bert-base', 2, 2, 0, 1000, 1, 4),
           ('bert-moe', 3, 3, 0, 1000, 1, 4)),
.read shared/hap-bars.sql
.read shared/marks.sql
.read shared/marked-bars.sql
