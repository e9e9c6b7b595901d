-- HiDup, our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT *, CAST(substr(spec, instr(spec, ':batch=') + 7) AS INTEGER) AS batch, max(ordinal) FROM result WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster = 'hidup-2x4-100' AND model LIKE 'bert-sgmoe%' GROUP BY batch, planner),
hidup AS (SELECT * FROM bar WHERE planner = 'hidup' AND status = 'ok'),
rival AS (
    SELECT batch, planner AS rival, min(iteration_time_s) AS rival_s, communication_s AS rival_comm_s
    FROM bar WHERE planner IN ('fastmoe', 'deepspeed') AND status = 'ok' GROUP BY batch),
versus AS (SELECT *, rival_s / iteration_time_s AS faster FROM hidup JOIN rival USING (batch)),
told AS (SELECT printf('%.2f over %s at %d', faster, rival, batch) AS one, * FROM versus)
SELECT 'large-batches', min(faster > 1), group_concat(one, ', '), 'not faster at every batch size above 16'
FROM told WHERE batch > 16 HAVING count(*) > 0
UNION ALL
SELECT 'small-batches', max(faster), group_concat(one, ', '),
       'HiDup hides more than in the paper: with an overlap in the forward pass alone (column calibrated) it is 1.06 and holds; with one rate for all systems (column one) it is 1.48'
FROM told WHERE batch <= 16 HAVING count(*) > 0;
