-- HAP, Table 1: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hap-tab1.sql
SELECT CASE model WHEN 'bert-moe' THEN 'bert-moe-rest' ELSE model END AS claim,
       CASE model WHEN 'bert-moe' THEN small.n - 8 * (large.n - small.n) / 56 ELSE small.n END AS ours,
       printf('%.2f on 8 GPUs, %.2f on 64', small.n, large.n) AS note, 'the model is another one' AS reason
FROM cell AS small JOIN cell AS large USING (model) WHERE small.gpus = 8 AND large.gpus = 64
UNION ALL
SELECT 'bert-moe-gpu', (large.n - small.n) / 56, printf('%.2f on 8 GPUs, %.2f on 64', small.n, large.n), 'the model is another one'
FROM cell AS small JOIN cell AS large USING (model) WHERE small.gpus = 8 AND large.gpus = 64 AND model = 'bert-moe'
UNION ALL -- two experts per GPU in each of four layers
SELECT 'moe-layer', 2048 * (large.n - small.n) / 56 / 8 * 4 / 1024, printf('%.2f x 2^20 parameters per expert, in single precision', (large.n - small.n) / 56 / 8), 'the model is another one'
FROM cell AS small JOIN cell AS large USING (model) WHERE small.gpus = 8 AND large.gpus = 64 AND model = 'bert-moe';
