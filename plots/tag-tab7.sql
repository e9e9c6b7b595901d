-- TAG, Table 7: one row per bar, in the columns of tag-bars.gp: iterations until data parallelism is beaten, the mean of topologies.
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
,
.read shared/tag-tab7.sql
SELECT panel, mean.title, mean.seat, name, 'ok', mean.n, paper.n, ordinals AS rows FROM mean LEFT JOIN paper USING (title, seat) ORDER BY panel, seat;
