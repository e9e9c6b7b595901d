-- HiDup, Fig. 6: one row a bar, in the columns of hap-bars.gp.
WITH
.read shared/hidup-panels.sql
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
bar AS (
    SELECT *, gpus AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-1x8', 'hidup-2x8', 'hidup-4x8', 'hidup-8x8')
    GROUP BY model, cluster, planner)
.read shared/hidup-bars.sql
