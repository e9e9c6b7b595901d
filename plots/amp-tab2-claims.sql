-- AMP, Table 2: our side of the claims in data/paper/amp.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT gpus, search_time_s AS s, max(ordinal) FROM result WHERE experiment = 'amp-tab2' AND status = 'ok' GROUP BY gpus),
pair AS (SELECT small.s AS small_s, large.s AS large_s FROM point AS small, point AS large WHERE small.gpus = 4 AND large.gpus = 256),
list AS (SELECT group_concat(printf('%d GPUs %.3f s', gpus, s), ', ') AS text FROM (SELECT * FROM point ORDER BY gpus))
SELECT 'linear' AS claim, large_s <= 120 * small_s AS ours, -- 64 to the power 1.15
       printf('%s: %.1f times as long for 64 times the GPUs', text, large_s / max(small_s, 1e-6)) AS note,
       'wall clock of milliseconds, so other work on the machine counts' AS reason
FROM pair, list
UNION ALL
SELECT 'faster', large_s < 1, printf('%.3f s, the layers assigned exactly', large_s), 'wall clock, so other work on the machine counts'
FROM pair;
