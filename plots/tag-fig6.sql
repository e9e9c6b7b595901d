-- TAG, Fig. 6: one row a bar, in the columns of tag-bars.gp: speed over that of data parallelism with gradients one by one.
WITH
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'horovod', 'own', 'Horovod'), (2, 'm-topo', 'own', 'm-TOPO'), (3, 'm-etf', 'own', 'm-ETF'),
           (4, 'm-sct', 'own', 'm-SCT'), (7, 'flexflow', 'own', 'FlexFlow'), (8, 'heterog', 'own', 'HeteroG'),
           (5, 'tag', 'mcts', 'TAG, as published'), (6, 'tag', 'own', 'TAG, Kilter''s search')),
bar AS (
    SELECT result.*, seat, name, max(ordinal)
    FROM result JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    WHERE experiment = 'tag-fig6' GROUP BY seat),
dp AS (SELECT iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl')
SELECT 0, 'InceptionV3', seat, name, status, dp_s / iteration_time_s, NULL FROM bar, dp ORDER BY iteration_time_s DESC;
