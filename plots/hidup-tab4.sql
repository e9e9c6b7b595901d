-- HiDup, Table 4: one row a bar, in the columns of hap-bars.gp; what bars measure is the part of the smaller one of communication
-- and computation that overlaps.
WITH
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
place (place, cluster, label) AS (
    VALUES (0, 'hidup-1x4', '4 GPUs'), (1, 'hidup-2x4-100', '2x4 at 100 Gb/s'), (2, 'hidup-2x4-30', '2x4 at 30 Gb/s')),
.read shared/hidup-tab4.sql
SELECT 0, 'BERT-SGMoE', place AS "group", label, seat, name, dense_rank() OVER (ORDER BY seat) - 1 AS slot,
       (SELECT count(DISTINCT planner) FROM bar) AS slots, status, hidden_s / min(all_comm_s, all_comp_s) AS overlap
FROM bar JOIN seat USING (planner) JOIN place USING (cluster)
ORDER BY place, seat;
