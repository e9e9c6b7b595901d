-- HiDup, Fig. 7: one row a bar, in the columns of hap-bars.gp.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'bert-sgmoe', 'BERT-SGMoE'), (1, 'bert-switch', 'BERT-Switch'), (2, 'vit-sgmoe', 'ViT-SGMoE'), (3, 'vit-switch', 'ViT-Switch')),
seat (seat, planner, name) AS (
    VALUES (0, 'hidup', 'HiDup'), (1, 'fastmoe', 'FastMoE'), (2, 'deepspeed', 'DeepSpeed'), (3, 'ddp', 'DDP'), (4, 'horovod', 'Horovod')),
bar AS (
    SELECT *, gpus AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster = 'hidup-1x8'
    GROUP BY model, cluster, planner)
SELECT panel, title, dense_rank() OVER (ORDER BY place) - 1 AS "group", place, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s
FROM bar
ORDER BY panel, place, seat;
