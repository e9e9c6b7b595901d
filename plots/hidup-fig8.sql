-- HiDup, Fig. 8: one row per bar, in the columns of hap-bars.gp.
WITH
.read shared/hidup-panels.sql
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
bar AS (
    SELECT *, CAST(substr(cluster, 11) AS INTEGER) AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100')
    GROUP BY model, cluster, planner),
marked (claim, first_panel, last_panel, least, most, first_rival, last_rival) AS (
    VALUES ('largest', 0, 3, 0, 1000, 1, 2)),
.read shared/marks.sql
.read shared/marked-bars.sql
