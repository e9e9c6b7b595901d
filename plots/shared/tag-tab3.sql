-- MiB of parameters of TAG's models, after `panel`, and those of Table 3.
paper (panel, claim, mib) AS (VALUES (0, 'inceptionv3', 90), (1, 'resnet101', 169), (2, 'vgg19', 548), (3, 'transformer', 407), (4, 'bert-small', 98), (5, 'bert-large', 2313)),
cell AS (
    SELECT panel, title, claim, mib, status, json_extract(detail, '$.parameters.elements') * 4 / 1048576.0 AS n, max(ordinal) AS ordinal
    FROM result JOIN panel USING (model) JOIN paper USING (panel) WHERE experiment = 'tag-tab3' AND json_extract(detail, '$.parameters.elements') > 0
    GROUP BY panel)
