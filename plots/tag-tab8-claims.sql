-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
.read shared/tag-bars.sql
, dp AS (SELECT panel, cluster, iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl' AND status = 'ok'),
name (panel, claim) AS (VALUES (0, 'inceptionv3'), (1, 'resnet101'), (2, 'vgg19'), (3, 'transformer'), (4, 'bert-small')),
own AS (SELECT panel, cluster, iteration_time_s AS own_s FROM bar WHERE seat = 6)
SELECT claim || substr(cluster, 4), 100 * (dp_s / iteration_time_s - 1),
       printf('%.4f s against %.4f s by DP-NCCL; Kilter''s own search %.0f %%', iteration_time_s, dp_s, 100 * (dp_s / own_s - 1)),
       CASE WHEN claim = 'vgg19' THEN 'Sec. 5.3 says 456 % of VGG19, this table of InceptionV3; tree search with uniform priors finds less than Kilter''s own'
            ELSE 'data parallelism pays its all-reduces and nothing else here; by other prices of them or with a network (columns links, calibrated '
                 || 'and gnn of Fig. 5) the lead is another one, too' END
FROM bar JOIN dp USING (panel, cluster) JOIN name USING (panel) JOIN own USING (panel, cluster)
WHERE seat = 5 AND status = 'ok';
