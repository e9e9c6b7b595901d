-- AMP, Table 4: our side of the claims in data/paper/amp.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
strategy AS (
    SELECT planner, CAST(json_extract(options, '$.rank') AS INTEGER) AS rank, json_extract(options, '$.balance') AS balance,
           coalesce(json_extract(detail, '$.strategy.pp'), 1) AS pp, coalesce(json_extract(detail, '$.strategy.dp'), 1) AS dp,
           coalesce(json_extract(detail, '$.strategy.micro_batch'), 0) AS mbs, iteration_time_s AS s, max(ordinal)
    FROM result WHERE experiment = 'amp-tab4' AND status = 'ok' GROUP BY hash),
method AS (SELECT planner, min(s) AS best, avg(s) AS mean, count(*) AS n FROM strategy
           WHERE rank <= CASE planner WHEN 'amp' THEN 10 ELSE 1000 END GROUP BY planner),
paper (planner, best, mean) AS (VALUES ('megatron', 1.97, 2.62), ('amp-random', 1.71, 3.04), ('amp', 1.28, 1.73), ('amp-sa', 1.46, 2.29)),
amp AS (SELECT * FROM method WHERE planner = 'amp'),
best AS (SELECT pp, dp, mbs, min(s) AS s FROM strategy WHERE planner = 'amp' AND rank <= 10 AND mbs > 0),
replicas AS (SELECT min(s) AS s FROM strategy WHERE planner = 'megatron' AND dp = 16 AND mbs = 1),
place AS (SELECT min(rank) AS rank FROM strategy WHERE planner = 'amp' AND dp = 16 AND mbs = 1)
SELECT 'megatron' AS claim, m.best / amp.best AS ours, printf('best strategies: %.3f s and %.3f s', m.best, amp.best) AS note,
       'the paper''s times are 1.97 s and 1.28 s. Megatron''s choice waits for the all-reduce of all gradients after the backward pass, which has the 10 Gb/s of the artifact here and no more; in AMP''s pipeline no host waits for what it receives'
       AS reason
FROM method AS m, amp WHERE m.planner = 'megatron'
UNION ALL
SELECT 'random', m.mean / amp.mean, printf('averages of %d and %d strategies: %.3f s and %.3f s', m.n, amp.n, m.mean, amp.mean),
       'the paper''s averages are 3.04 s and 1.73 s. AMP''s ten are ordered by its profile, in which tensor parallelism hardly makes a layer faster, and simulated by rates; ordered by what is simulated (column rates) they are faster'
FROM method AS m, amp WHERE m.planner = 'amp-random'
UNION ALL
SELECT 'random-best', m.best / amp.best, printf('best strategies: %.3f s and %.3f s', m.best, amp.best),
       'a random strategy is as fast as AMP''s ten: these are ordered by AMP''s profile, in which tensor parallelism hardly makes a layer faster, and simulated by rates. Ordered by what is simulated (columns rates and best) they are the paper''s times faster'
FROM method AS m, amp WHERE m.planner = 'amp-random'
UNION ALL
SELECT 'sa-best', m.best / amp.best, printf('best strategies: %.3f s annealed, %.3f s', m.best, amp.best),
       'AMP''s ten are ordered by its profile and simulated by rates, and are slower here than others; ordered by what is simulated (columns rates and best) they are nearer. How many strategies the paper''s annealing tried, and how warm, it does not give'
FROM method AS m, amp WHERE m.planner = 'amp-sa'
UNION ALL
SELECT 'sa-mean', m.mean / amp.mean, printf('averages: %.3f s annealed, %.3f s', m.mean, amp.mean),
       'AMP''s ten are ordered by its profile and simulated by rates, and are slower here than others; ordered by what is simulated (columns rates and best) they are nearer. How many strategies the paper''s annealing tried, and how warm, it does not give'
FROM method AS m, amp WHERE m.planner = 'amp-sa'
UNION ALL
SELECT 'times', sum(abs(m.best / paper.best - 1) + abs(m.mean / paper.mean - 1)) / 8,
       'ours and theirs (s), best and average: ' || group_concat(printf('%s %.2f, %.2f and %.2f, %.2f', planner, m.best, paper.best, m.mean, paper.mean), '; '),
       'Megatron''s and random strategies are faster here: with gradients in single precision (column gradients) they are nearer'
FROM method AS m JOIN paper USING (planner) HAVING count(*) = 4
UNION ALL
SELECT 'random-megatron', r.mean / m.mean, printf('averages: %.3f s and %.3f s', r.mean, m.mean),
       'the paper''s averages are 3.04 s and 2.62 s'
FROM method AS r, method AS m WHERE r.planner = 'amp-random' AND m.planner = 'megatron'
UNION ALL
SELECT 'replicas', replicas.s / amp.best, printf('%.3f s and %.3f s', replicas.s, amp.best),
       'the all-reduce of all gradients decides, which AMP''s code counts in single precision: with those (column gradients) it is 2.32'
FROM replicas, amp WHERE replicas.s IS NOT NULL
UNION ALL
SELECT 'degrees', pp = 8 AND dp = 2 AND mbs = 1, printf('%d stages, %d replicas, micro-batches of %d: %.3f s', pp, dp, mbs, s),
       'times of layers: with the published time of each layer in search and simulation (column layers) it holds; with the median of each kind (columns profile, gradients) the layers are cut elsewhere, and 4 stages and 4 replicas are fastest'
FROM best WHERE s IS NOT NULL
UNION ALL
SELECT 'place', rank, printf('number %d of 26 candidates', rank), 'it depends on the bytes of gradients: in single precision, as AMP''s code counts them, 16 replicas are not among the first 26 (column gradients)'
FROM place WHERE rank IS NOT NULL;
