-- Peaks, GB, of the paper and ours.
paper (planner, seat, name, model, gb) AS (
    VALUES ('hidup', 0, 'HiDup', 'bert-sgmoe', 6.77), ('hidup', 0, 'HiDup', 'bert-switch', 6.34),
           ('hidup', 0, 'HiDup', 'vit-sgmoe', 2.79), ('hidup', 0, 'HiDup', 'vit-switch', 2.60),
           ('ddp', 1, 'DDP', 'bert-sgmoe', 9.87), ('ddp', 1, 'DDP', 'bert-switch', 9.44),
           ('ddp', 1, 'DDP', 'vit-sgmoe', 4.92), ('ddp', 1, 'DDP', 'vit-switch', 4.68),
           ('horovod', 2, 'Horovod', 'bert-sgmoe', 8.98), ('horovod', 2, 'Horovod', 'bert-switch', 8.55),
           ('horovod', 2, 'Horovod', 'vit-sgmoe', 4.21), ('horovod', 2, 'Horovod', 'vit-switch', 3.97),
           ('fastmoe', 3, 'FastMoE', 'bert-sgmoe', 7.63), ('fastmoe', 3, 'FastMoE', 'bert-switch', 7.30),
           ('fastmoe', 3, 'FastMoE', 'vit-sgmoe', 2.78), ('fastmoe', 3, 'FastMoE', 'vit-switch', 2.63),
           ('gshard', 4, 'DeepSpeed', 'bert-sgmoe:moe_group=32', 8.09), ('gshard', 4, 'DeepSpeed', 'bert-switch:moe_group=32', 7.80),
           ('gshard', 4, 'DeepSpeed', 'vit-sgmoe:moe_group=32', 2.53), ('gshard', 4, 'DeepSpeed', 'vit-switch:moe_group=32', 2.52)),
place (place, model, label) AS (
    VALUES (0, 'bert-sgmoe', 'BERT-SGMoE'), (1, 'bert-switch', 'BERT-Switch'), (2, 'vit-sgmoe', 'ViT-SGMoE'), (3, 'vit-switch', 'ViT-Switch')),
peak AS (
    SELECT paper.planner, seat, paper.name, place.model, gb, place, label, status, peak_memory_bytes / 1e9 AS ours, max(result.ordinal) AS ordinal
    FROM paper JOIN place ON place.model = replace(paper.model, ':moe_group=32', '') JOIN result ON result.planner = paper.planner AND result.model = paper.model
    WHERE experiment = 'hidup-table3' AND status = 'ok'
    GROUP BY paper.planner, place.model)
