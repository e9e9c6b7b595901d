-- HiDup, Table 4: one row a bar, in the columns of hap-bars.gp: seconds of an iteration, of a GPU's computation and of its
-- communication, and the part of the smaller one of the last two that overlaps.
WITH
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
place (place, cluster, label) AS (
    VALUES (0, 'hidup-1x4', '4 GPUs'), (1, 'hidup-2x4-100', '2x4, 100 Gb/s'), (2, 'hidup-2x4-30', '2x4, 30 Gb/s')),
panel (measure, title) AS (
    VALUES (0, 'iteration (s)'), (1, 'computation of a GPU (s)'), (2, 'communication of a GPU (s)'), (3, 'overlapping ratio')),
.read shared/hidup-tab4.sql
SELECT measure, title, place AS "group", label, seat, name, seat AS slot, 3 AS slots, status, ours, 'published' AS claim, theirs AS base, ordinal AS rows
FROM cell JOIN panel USING (measure) JOIN seat USING (planner) JOIN place USING (cluster)
ORDER BY measure, place, seat;
