-- HiDup, Fig. 8: one row a bar, in the columns of hap-bars.gp.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'bert-sgmoe', 'BERT-SGMoE'), (1, 'bert-switch', 'BERT-Switch'), (2, 'vit-sgmoe', 'ViT-SGMoE'), (3, 'vit-switch', 'ViT-Switch')),
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed')),
bar AS (
    SELECT *, CAST(substr(cluster, 11) AS INTEGER) AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100')
    GROUP BY model, cluster, planner)
SELECT panel, title, dense_rank() OVER (ORDER BY place) - 1 AS "group", place, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s
FROM bar
ORDER BY panel, place, seat;
