-- Planners beside TAG, in the order of the legend; TAG twice, by two searches.
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'dp-nccl-p', 'own', 'DP-NCCL-P'), (2, 'horovod', 'own', 'Horovod'),
           (3, 'flexflow', 'own', 'FlexFlow'), (4, 'heterog', 'own', 'HeteroG'), (5, 'tag', 'mcts', 'TAG, as published'),
           (6, 'tag', 'own', 'TAG, Kilter''s search'), (7, 'hap', 'own', 'HAP')),
