-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
.read shared/tag-bars.sql
, dp AS (SELECT panel, cluster, iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl' AND status = 'ok'),
name (panel, claim) AS (VALUES (0, 'inceptionv3'), (1, 'resnet101'), (2, 'vgg19'), (3, 'transformer'), (4, 'bert-small')),
own AS (SELECT panel, cluster, iteration_time_s AS own_s FROM bar WHERE seat = 6)
SELECT claim || CASE WHEN cluster LIKE '%cloud' THEN '-cloud' ELSE '-testbed' END, 100 * (dp_s / iteration_time_s - 1),
       printf('%.4f s against %.4f s by DP-NCCL; Kilter''s own search %.0f %%', iteration_time_s, dp_s, 100 * (dp_s / own_s - 1)),
       CASE WHEN claim = 'vgg19' THEN 'Sec. 5.3 says 456 % of VGG19, this table of InceptionV3; the tree search decides its linear layers among the last (column last: among the first; column best: Kilter''s own search). '
            ELSE '' END || 'The lead is the price of data parallelism''s all-reduces: columns measured (the authors'' lines for '
       || 'few machines), p100 (their machines on 10 Gb/s, as leaving them out in Table 4 suggests) and links (messages that share links) have others, and Kilter''s own search (column best) gains more. No price explains both InceptionV3''s '
       || '456 % and ResNet101''s 8 %, with 190 and 244 gradients of 90 and 169 MiB. Actions for each machine in place of each type (column machines) are too many for 2,000 iterations'
FROM bar JOIN dp USING (panel, cluster) JOIN name USING (panel) JOIN own USING (panel, cluster)
WHERE seat = (SELECT min(seat) FROM bar WHERE planner = 'tag') AND status = 'ok';
