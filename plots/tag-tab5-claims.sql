-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-tab5.sql
.read shared/tag-bars.sql
, name (panel, claim) AS (VALUES (0, 'inceptionv3'), (1, 'resnet101'), (2, 'vgg19'), (3, 'transformer'), (4, 'bert-small'), (5, 'bert-large')),
dp AS (SELECT * FROM bar WHERE seat = 0),
sfb AS (SELECT panel, status AS sfb_status, iteration_time_s AS sfb_s FROM bar WHERE seat = 1),
own AS (SELECT panel, iteration_time_s AS own_s FROM bar WHERE seat = 6),
row AS (SELECT name.claim, dp.status, dp.title, iteration_time_s AS s, sfb_status, sfb_s, own_s
        FROM name JOIN dp USING (panel) JOIN sfb USING (panel) JOIN own USING (panel))
SELECT 'dp-' || claim, coalesce(s, 0), printf('%s; Kilter''s own search takes %.4f s', CASE status WHEN 'ok' THEN printf('%.4f s', s) ELSE 'out of memory' END, own_s),
       CASE WHEN claim LIKE 'bert%' THEN 'the word embedding''s gradient, 312 and 625 million numbers, is dense here, sparse in the paper'
            ELSE 'every gradient pays the latency that the authors fitted to NCCL, and ours are summed tensor by tensor: biases and norms count' END
FROM row
UNION ALL
SELECT 'sfb-' || claim, coalesce(100 * (s / sfb_s - 1), -100), CASE sfb_status WHEN 'ok' THEN printf('%.4f s with sufficient factors', sfb_s) ELSE 'out of memory' END,
       CASE WHEN claim = 'bert-large' THEN 'the word embedding with its dense gradient and moments does not fit 11 GiB' ELSE
       'where a gradient''s latency is most of its cost all are duplicated, and what two devices then both do takes little at batch 4' END
FROM row
UNION ALL
SELECT 'never-hurts', min(coalesce(s / sfb_s, 1)) >= 0.998, printf('least speed-up %.2f %%', 100 * (min(coalesce(s / sfb_s, 1)) - 1)),
       'the prices of the cut are not those of links that are shared' FROM row HAVING count(*) > 0;
