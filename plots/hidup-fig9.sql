-- HiDup, Fig. 9a: one row per bar, in the columns of hap-bars.gp.
WITH
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
bar AS (
    SELECT *, CAST(substr(spec, instr(spec, ':batch=') + 7) AS INTEGER) AS batch, max(result.ordinal)
    FROM result JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster = 'hidup-2x4-100' AND model LIKE 'bert-sgmoe%'
    GROUP BY batch, planner)
SELECT 0, 'BERT-SGMoE', dense_rank() OVER (ORDER BY batch) - 1 AS "group", batch, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s, NULL AS claim, NULL AS base
FROM bar
ORDER BY batch, seat;
