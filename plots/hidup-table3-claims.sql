-- HiDup, Table 3: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hidup-table3.sql
SELECT 'peaks', avg(abs(ours / gb - 1)),
       printf('%d peaks, ours over theirs %.2f to %.2f, mean %.2f; how many copies of logits the loss keeps was fitted to BERT''s peaks', count(*), min(ours / gb), max(ours / gb), avg(ours / gb)),
       printf('ViT''s DDP and Horovod are %.0f %% off, BERT''s peaks, which are at the loss, %.0f %% after the loss''s copies were fitted to them',
              100 * avg(abs(ours / gb - 1)) FILTER (WHERE planner IN ('ddp', 'horovod') AND model LIKE 'vit%'),
              100 * avg(abs(ours / gb - 1)) FILTER (WHERE model LIKE 'bert%'))
FROM peak
UNION ALL
SELECT 'least', min(ours = (SELECT min(ours) FROM peak AS other WHERE other.model = peak.model)),
       printf('BERT-SGMoE: HiDup %.2f GB', max(ours)), 'another system takes less'
FROM peak WHERE planner = 'hidup' AND model LIKE 'bert%';
