-- HiDup, Table 1: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hidup-tab1.sql
, pair AS (
    SELECT model, (large.n - small.n) / 56 AS slope, small.n AS small_n, large.n AS large_n
    FROM cell AS small JOIN cell AS large USING (model) WHERE small.gpus = 8 AND large.gpus = 64)
SELECT model AS claim, small_n - 8 * slope AS ours, printf('%.2f on 8 GPUs, %.2f on 64', small_n, large_n) AS note, 'the model is another one' AS reason FROM pair
UNION ALL
SELECT model || '-gpu', slope, printf('%.2f on 8 GPUs, %.2f on 64', small_n, large_n), 'the model is another one' FROM pair;
