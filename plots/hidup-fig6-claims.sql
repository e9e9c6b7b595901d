-- HiDup, our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT *, max(ordinal) FROM result WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-1x8', 'hidup-2x8', 'hidup-4x8', 'hidup-8x8') AND
        model IN ('bert-sgmoe', 'bert-switch', 'vit-sgmoe', 'vit-switch') GROUP BY model, cluster, planner),
hidup AS (SELECT * FROM bar WHERE planner = 'hidup' AND status = 'ok'),
rival AS (
    SELECT model, cluster, planner AS rival, min(iteration_time_s) AS rival_s, communication_s AS rival_comm_s
    FROM bar WHERE planner IN ('fastmoe', 'deepspeed') AND status = 'ok' GROUP BY model, cluster),
versus AS (SELECT *, rival_s / iteration_time_s AS faster FROM hidup JOIN rival USING (model, cluster)),
told AS (SELECT printf('%s %s %.2f over %s', model, cluster, faster, rival) AS one, * FROM versus)
SELECT 'vit', max(faster), 'at ' || one || ', in all: ' || (SELECT group_concat(one, ', ') FROM told WHERE model LIKE 'vit%'),
       printf('the best rival communicates %.2f s of %.2f s, so that little can be hidden; in the paper both take about as long. At an eighth of the rate (column eighth) it is 1.44, and BERT then exceeds the paper''s 1.18: one rate for both models does not explain it', rival_comm_s, rival_s)
FROM told WHERE model LIKE 'vit%' HAVING count(*) > 0
UNION ALL
SELECT 'bert', max(faster), 'at ' || one || ', in all: ' || (SELECT group_concat(one, ', ') FROM told WHERE model LIKE 'bert%'),
       printf('the best rival communicates %.2f s of %.2f s, so that little can be hidden; in the paper both take about as long', rival_comm_s, rival_s)
FROM told WHERE model LIKE 'bert%' AND gpus > 16 HAVING count(*) > 0
UNION ALL
SELECT 'bert-16', faster, 'in all: ' || (SELECT group_concat(one, ', ') FROM told WHERE model LIKE 'bert%' AND gpus <= 16),
       'on one machine FastMoE computes in 0.84 of our time, as in Table 4, where it then waits 0.12 s of 0.35 s in its collectives for unbalanced gates; ours waits for none. Without its own rate (column one) it is 1.17, of two machines: HiDup hides more than in the paper (hidup-tab4)'
FROM (SELECT *, max(abs(ln(faster))) FROM told WHERE model LIKE 'bert%' AND gpus <= 16) WHERE faster IS NOT NULL
UNION ALL
SELECT 'fastmoe-8', min(planner = 'fastmoe'), group_concat(printf('%s %s %.3f s', model, planner, s), ', '),
       'one rate for all systems hides that FastMoE''s own kernels are faster (column one)'
FROM (SELECT model, planner, min(iteration_time_s) AS s FROM bar WHERE model LIKE 'bert%' AND gpus = 8 AND status = 'ok' AND planner IN ('hidup', 'fastmoe', 'deepspeed') GROUP BY model)
HAVING count(*) = 2
UNION ALL
SELECT 'deepspeed', min(other.iteration_time_s > hidup.iteration_time_s), group_concat(printf('%s %s %.2f', hidup.model, hidup.cluster, other.iteration_time_s / hidup.iteration_time_s), ', '),
       'DeepSpeed is as fast somewhere'
FROM hidup JOIN bar AS other USING (model, cluster) WHERE other.planner = 'deepspeed' AND other.status = 'ok' AND model LIKE 'bert%' HAVING count(*) > 0;
