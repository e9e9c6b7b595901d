-- Iteration times by the error of estimates, over the time with right estimates. A column's communication that is believed still
-- shorter than by half, and its noise of 10 and 80 %, stand in the places of that, of 20 and of 50 %.
bar AS (
    SELECT CASE json_extract(options, '$.noise') WHEN '0.1' THEN 0.2 WHEN '0.8' THEN 0.5 ELSE coalesce(CAST(json_extract(options, '$.noise') AS REAL), 0) END AS noise,
           max(-0.5, coalesce(CAST(json_extract(options, '$.communication') AS REAL), 0)) AS communication, seed, status, iteration_time_s, max(ordinal) AS ordinal
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster = 'hidup-2x4-100' AND model = 'bert-sgmoe' AND planner = 'hidup'
    GROUP BY noise, communication, seed),
right AS (SELECT min(iteration_time_s) AS right_s FROM bar WHERE noise = 0 AND communication = 0),
mean AS (
    SELECT noise, communication, count(*) AS n, sum(status = 'ok') AS fits, avg(iteration_time_s) / right_s AS ratio, max(iteration_time_s) / right_s AS worst, group_concat(ordinal, ' ') AS ordinals
    FROM bar, right GROUP BY noise, communication),
