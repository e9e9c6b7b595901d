-- HAP's models and planners, one row a bar, in the columns of hap-bars.gp.
WITH
panel (panel, model, title) AS (
    VALUES (0, 'vgg19', 'VGG19'), (1, 'vit', 'ViT'), (2, 'bert-base', 'BERT-Base'), (3, 'bert-moe', 'BERT-MoE')),
seat (seat, planner, name) AS ( -- place in the legend and colour; a planner without results takes no room
    VALUES (0, 'hap', 'HAP'), (1, 'dp-ev', 'DP-EV'), (2, 'dp-cp', 'DP-CP'), (3, 'deepspeed', 'DeepSpeed'), (4, 'tag', 'TAG')),
bar AS (
    SELECT *, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    GROUP BY model, gpus, planner)
SELECT panel, title, dense_rank() OVER (ORDER BY gpus) - 1 AS "group", gpus, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s
FROM bar
ORDER BY panel, gpus, seat;
