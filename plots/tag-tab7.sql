-- TAG, Table 7: one row per bar, in the columns of tag-bars.gp: iterations until data parallelism is beaten, the mean of topologies.
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
,
.read shared/tag-iterations.sql
,
.read shared/tag-tab7.sql
SELECT panel, mean.title, mean.seat, name, 'ok', mean.n, paper.n, (SELECT group_concat(ordinal, ' ') FROM run WHERE experiment = 'tag-tab7') AS rows
FROM mean LEFT JOIN paper USING (title, seat) WHERE mean.seat < 7 ORDER BY panel, mean.seat;
