-- HiDup, Fig. 7: one row per bar, in the columns of hap-bars.gp.
WITH
.read shared/hidup-panels.sql
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed'), (3, 'ddp', 'DDP'), (4, 'horovod', 'Horovod')),
bar AS (
    SELECT *, gpus AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster = 'hidup-1x8'
    GROUP BY model, cluster, planner),
marked (claim, first_panel, last_panel, least, most, first_rival, last_rival) AS (
    VALUES ('data-parallel', 0, 3, 0, 1000, 3, 4)),
.read shared/marks.sql
SELECT 0 AS panel, 'one machine' AS title, bar.panel AS "group", title AS label, seat, name, seat AS slot, 5 AS slots, status, iteration_time_s,
       claim, base
FROM bar LEFT JOIN mark ON mark.panel = bar.panel AND seat = 0
ORDER BY bar.panel, seat;
