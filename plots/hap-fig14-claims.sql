-- HAP, Fig. 14: our side of the claims in data/paper/hap.csv (columns claim, ours, note).
WITH
bar AS (
    SELECT *, max(rowid)
    FROM result
    WHERE cluster IN ('hap-p100-8', 'hap-p100-16', 'hap-p100-32') AND fidelity = 'stage' AND granularity = 'machine'
    GROUP BY model, gpus, planner),
-- HAP beside the fastest baseline (min picks the row).
versus AS (
    SELECT hap.model, hap.gpus, hap.iteration_time_s AS ours_s, hap.communication_s AS ours_comm_s,
           rival.planner, min(rival.iteration_time_s) AS theirs_s, rival.communication_s AS theirs_comm_s
    FROM bar AS hap JOIN bar AS rival ON rival.model = hap.model AND rival.gpus = hap.gpus
    WHERE hap.planner = 'hap' AND hap.status = 'ok' AND rival.planner <> 'hap' AND rival.status = 'ok'
    GROUP BY hap.model, hap.gpus),
by_size AS (
    SELECT model, group_concat(printf('%.2f at %d', theirs_s / ours_s, gpus), ', ') AS list
    FROM (SELECT * FROM versus ORDER BY model, gpus)
    GROUP BY model),
judged AS (SELECT *, max(theirs_s / ours_s) AS times FROM versus GROUP BY model)
SELECT model AS claim, times AS ours,
       printf('at %d GPUs: HAP %.3f s, %.0f %% of it communication; %s %.3f s, %.0f %%. By GPUs: %s', gpus,
              ours_s, 100 * ours_comm_s / ours_s, planner, theirs_s, 100 * theirs_comm_s / theirs_s, list) AS note
FROM judged JOIN by_size USING (model);
