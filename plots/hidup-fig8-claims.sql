-- HiDup, our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT *, max(rowid) FROM result WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100') AND
        model IN ('bert-sgmoe', 'bert-switch', 'vit-sgmoe', 'vit-switch') GROUP BY model, cluster, planner),
hidup AS (SELECT * FROM bar WHERE planner = 'hidup' AND status = 'ok'),
rival AS (
    SELECT model, cluster, planner AS rival, min(iteration_time_s) AS rival_s, communication_s AS rival_comm_s
    FROM bar WHERE planner IN ('fastmoe', 'deepspeed') AND status = 'ok' GROUP BY model, cluster),
versus AS (SELECT *, rival_s / iteration_time_s AS faster FROM hidup JOIN rival USING (model, cluster)),
told AS (SELECT printf('%s %s %.2f over %s', model, cluster, faster, rival) AS one, * FROM versus)
SELECT 'largest', max(faster), 'at ' || one || ', in all: ' || (SELECT group_concat(one, ', ') FROM told),
       printf('the best rival communicates %.2f s; two halves of the batch cost no more than all of it here, and communication beside it does not slow computation (Sec. 6.5, 6.6)',
              rival_comm_s)
FROM told HAVING count(*) > 0;
