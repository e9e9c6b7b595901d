-- AMP, Table 2: our side of the claims in data/paper/amp.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT gpus, search_time_s AS s, json_extract(detail, '$.search_labels') AS work, max(ordinal)
    FROM result WHERE experiment = 'amp-tab2' AND status = 'ok' GROUP BY gpus),
pair AS (
    SELECT small.work AS small_work, large.work AS large_work
    FROM point AS small, point AS large WHERE small.gpus = 4 AND large.gpus = 256),
list AS (SELECT group_concat(printf('%d GPUs %d cells, %.3f s', gpus, work, s), ', ') AS text FROM (SELECT * FROM point ORDER BY gpus))
SELECT 'linear' AS claim, large_work <= 120 * small_work AS ours, -- 64 to the power 1.15
       printf('tables of the layers'' assignment: %s: %.1f times the work for 64 times the GPUs', text, 1.0 * large_work / small_work) AS note,
       'the number of degrees and micro-batch sizes grows, and with it the stages of an assignment' AS reason
FROM pair, list WHERE small_work > 0;
