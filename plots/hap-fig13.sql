-- HAP, Fig. 13: one row per bar, in the columns of hap-bars.gp.
WITH
marked (claim, first_panel, last_panel, least, most, first_rival, last_rival) AS (
    VALUES ('vgg19-32', 0, 0, 32, 32, 1, 2), ('vit-dp-cp', 1, 1, 0, 1000, 2, 2), ('bert-base-64', 2, 2, 64, 64, 1, 4),
           ('bert-moe-deepspeed', 3, 3, 0, 1000, 3, 3)),
.read shared/hap-bars.sql
.read shared/marks.sql
.read shared/marked-bars.sql
