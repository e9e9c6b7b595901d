-- The planners of TAG's Fig. 6 in the order of the legend, and their results.
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'horovod', 'own', 'Horovod'), (2, 'm-topo', 'own', 'm-TOPO'), (3, 'm-etf', 'own', 'm-ETF'),
           (4, 'm-sct', 'own', 'm-SCT'), (7, 'flexflow', 'own', 'FlexFlow'), (8, 'heterog', 'own', 'HeteroG'),
           (5, 'tag', 'mcts', 'TAG, as published'), (6, 'tag', 'own', 'TAG, Kilter''s search')),
bar AS (
    SELECT result.*, seat, name, max(ordinal)
    FROM result JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    GROUP BY seat),
