-- HiDup, our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT *, max(ordinal) FROM result WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster = 'hidup-1x8' AND
        model IN ('bert-sgmoe', 'bert-switch', 'vit-sgmoe', 'vit-switch') GROUP BY model, cluster, planner),
hidup AS (SELECT * FROM bar WHERE planner = 'hidup' AND status = 'ok'),
rival AS (
    SELECT model, cluster, planner AS rival, min(iteration_time_s) AS rival_s, communication_s AS rival_comm_s
    FROM bar WHERE planner <> 'hidup' AND status = 'ok' AND planner IN ('ddp', 'horovod') GROUP BY model, cluster),
versus AS (SELECT *, rival_s / iteration_time_s AS faster FROM hidup JOIN rival USING (model, cluster)),
told AS (SELECT printf('%s %s %.2f over %s', model, cluster, faster, rival) AS one, * FROM versus)
SELECT 'data-parallel', min(faster), 'least over data parallelism; ' || (SELECT group_concat(one, ', ') FROM told),
       'two microbatches pay each collective''s latency twice'
FROM told HAVING count(*) > 0;
