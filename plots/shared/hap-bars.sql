-- HAP's models and planners, one row per bar, in the columns of hap-bars.gp. After `marked`.
panel (panel, model, title) AS (
    VALUES (0, 'vgg19', 'VGG19'), (1, 'vit', 'ViT'), (2, 'bert-base', 'BERT-Base'), (3, 'bert-moe', 'BERT-MoE')),
seat (seat, planner, name) AS ( -- place in the legend and colour; a planner without results takes no room
    VALUES (0, 'hap', 'HAP'), (1, 'dp-ev', 'DP-EV'), (2, 'dp-cp', 'DP-CP'), (3, 'deepspeed', 'DeepSpeed'), (4, 'tag', 'TAG')),
bar AS (
    SELECT *, gpus AS place, max(result.ordinal)
    FROM result JOIN panel USING (model) JOIN seat USING (planner)
    GROUP BY model, gpus, planner),
