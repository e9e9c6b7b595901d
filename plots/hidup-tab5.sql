-- HiDup, Table 5: one row a bar, in the columns of hap-bars.gp; what bars measure is the time of an iteration over that with right
-- estimates, averaged over draws.
WITH
bar AS (
    SELECT coalesce(CAST(json_extract(options, '$.noise') AS REAL), 0) AS noise,
           coalesce(CAST(json_extract(options, '$.communication') AS REAL), 0) AS communication, seed, status, iteration_time_s, max(ordinal)
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster = 'hidup-2x4-100' AND model = 'bert-sgmoe' AND planner = 'hidup'
    GROUP BY noise, communication, seed),
right AS (SELECT min(iteration_time_s) AS right_s FROM bar WHERE noise = 0 AND communication = 0),
mean AS (
    SELECT noise, communication, count(*) AS n, sum(status = 'ok') AS fits, avg(iteration_time_s) / right_s AS ratio, max(iteration_time_s) / right_s AS worst
    FROM bar, right GROUP BY noise, communication),
place (place, noise, communication, label) AS (
    VALUES (0, 0.2, 0, 'noise 20'), (1, 0.5, 0, 'noise 50'), (2, 0, 0.2, 'comm. +20'), (3, 0, 0.5, 'comm. +50'),
           (4, 0, -0.2, 'comm. −20'), (5, 0, -0.5, 'comm. −50'))
SELECT 0, 'BERT-SGMoE', place AS "group", label, 0 AS seat, 'mean of ten draws' AS name, 0 AS slot, 1 AS slots,
       CASE WHEN fits = n THEN 'ok' ELSE 'oom' END AS status, ratio
FROM mean JOIN place USING (noise, communication)
ORDER BY place;
