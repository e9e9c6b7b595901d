-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
seat (seat, planner, search, name) AS (
    VALUES (0, 'dp-nccl', 'own', 'DP-NCCL'), (1, 'horovod', 'own', 'Horovod'), (2, 'm-topo', 'own', 'm-TOPO'), (3, 'm-etf', 'own', 'm-ETF'),
           (4, 'm-sct', 'own', 'm-SCT'), (7, 'flexflow', 'own', 'FlexFlow'), (8, 'heterog', 'own', 'HeteroG'),
           (5, 'tag', 'mcts', 'TAG, as published'), (6, 'tag', 'own', 'TAG, Kilter''s search')),
bar AS (
    SELECT result.*, seat, name, max(ordinal)
    FROM result JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    WHERE experiment = 'tag-fig6' GROUP BY seat),
tag AS (SELECT iteration_time_s AS tag_s FROM bar WHERE seat = 5),
versus AS (SELECT *, 100 * (iteration_time_s / tag_s - 1) AS lead FROM bar, tag WHERE planner <> 'tag' AND status = 'ok'),
told AS (SELECT group_concat(printf('%s %.0f', name, lead), ', ') AS list, min(lead) AS least, max(lead) AS most, count(*) AS n FROM versus)
SELECT 'least', least, 'per cent: ' || list, 'on two equal GPUs with NVLink nothing found is faster than data parallelism; HDP, Post, PlaceTo and GDP, whose leads the paper takes from elsewhere and does not print, are not among them'
FROM told WHERE n > 0
UNION ALL
SELECT 'most', most, 'per cent: ' || list, 'placements on single devices gain nothing on two GPUs here, and the paper prints no values' FROM told WHERE n > 0;
