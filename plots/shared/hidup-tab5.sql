-- Iteration times by the error of estimates, over the time with right estimates. A column's communication that is believed still
-- shorter than by half stands in the place of that.
bar AS (
    SELECT coalesce(CAST(json_extract(options, '$.noise') AS REAL), 0) AS noise,
           max(-0.5, coalesce(CAST(json_extract(options, '$.communication') AS REAL), 0)) AS communication, seed, status, iteration_time_s, max(ordinal) AS ordinal
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster = 'hidup-2x4-100' AND model = 'bert-sgmoe' AND planner = 'hidup'
    GROUP BY noise, communication, seed),
right AS (SELECT min(iteration_time_s) AS right_s FROM bar WHERE noise = 0 AND communication = 0),
mean AS (
    SELECT noise, communication, count(*) AS n, sum(status = 'ok') AS fits, avg(iteration_time_s) / right_s AS ratio, max(iteration_time_s) / right_s AS worst, group_concat(ordinal, ' ') AS ordinals
    FROM bar, right GROUP BY noise, communication),
