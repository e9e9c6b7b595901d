-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-tab5.sql
.read shared/tag-bars.sql
, name (panel, claim) AS (VALUES (0, 'inceptionv3'), (1, 'resnet101'), (2, 'vgg19'), (3, 'transformer'), (4, 'bert-small'), (5, 'bert-large')),
dp AS (SELECT * FROM bar WHERE seat = 0),
sfb AS (SELECT panel, status AS sfb_status, iteration_time_s AS sfb_s FROM bar WHERE seat = 1),
own AS (SELECT panel, iteration_time_s AS own_s FROM bar WHERE seat = 6),
tag AS (SELECT panel, iteration_time_s AS tag_s FROM bar WHERE seat = 5 AND status = 'ok'),
row AS (SELECT name.claim, dp.status, dp.title, iteration_time_s AS s, sfb_status, sfb_s, own_s
        FROM name JOIN dp USING (panel) JOIN sfb USING (panel) JOIN own USING (panel))
SELECT 'dp-' || claim, coalesce(s, 0), printf('%s; Kilter''s own search takes %.4f s', CASE status WHEN 'ok' THEN printf('%.4f s', s) ELSE 'out of memory' END, own_s),
       'the six times are not those of one latency, bandwidth and rate: fitted to them (column fitted), three are still more than 10 % off. '
       || 'BERT-Small''s 103 MB take half of VGG19''s 575 MB; BERT-Large''s 342 tensors take no more than their bytes: without a latency (column latencies) it holds. By the line of TAG''s search for all '
       || 'machines (column default) InceptionV3 and Transformer are off, too'
FROM row
UNION ALL
SELECT 'sfb-' || claim, coalesce(100 * (s / sfb_s - 1), -100), CASE sfb_status WHEN 'ok' THEN printf('%.4f s with sufficient factors', sfb_s) ELSE 'out of memory' END,
       CASE claim WHEN 'vgg19' THEN 'by the paper''s formula the two largest gradients, 411 and 67 MB, become factors of half a megabyte, which pays unless the duplicated '
       || 'products are slow: at a quarter of our rates (column fitted) nothing is duplicated, as nearly in the paper'
       WHEN 'bert-large' THEN 'duplicates have weights of their own beside those of the replicas, for which the memory is too small, so that nothing is duplicated; with twice the memory (column memory) they gain 143 %, by the paper''s formula, which leaves out what duplicated products take of each GPU'
       ELSE 'the paper''s formula leaves out what each sum takes beside its bytes, most of the time of small gradients; with it, and all gradients at once, '
       || 'far more is duplicated than in the paper (column joint). Its rates are not ours: at a quarter of them (column fitted) less pays' END
FROM row
UNION ALL
SELECT 'tag-' || claim, tag_s, printf('%.4f s in 2,000 iterations of the tree search', tag_s),
       'rates that batches of four do not reach, and launches: at half of our rate (column calibrated) ResNet101, VGG19 and BERT-Large hold; by kernels of the data sheet (column kernels) it is two to twenty times as long, and nearer for five of six. '
       || 'With a launch for each of TensorFlow''s ops, 7 and 21 for one of ours by Table 3 (columns convolutions and launches), models of small ops are nearer'
FROM tag JOIN name USING (panel)
UNION ALL
SELECT 'never-hurts', min(coalesce(s / sfb_s, 1)) >= 0.998, printf('least speed-up %.2f %%', 100 * (min(coalesce(s / sfb_s, 1)) - 1)),
       'the prices of the cut are not those of links that are shared' FROM row HAVING count(*) > 0;
