-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-fig6.sql
tag AS (SELECT iteration_time_s AS tag_s FROM bar WHERE seat = 5),
versus AS (SELECT *, 100 * (iteration_time_s / tag_s - 1) AS lead FROM bar, tag WHERE planner <> 'tag' AND status = 'ok'),
told AS (SELECT group_concat(printf('%s %.0f', name, lead), ', ') AS list, min(lead) AS least, max(lead) AS most, count(*) AS n FROM versus)
SELECT 'least', least, 'per cent: ' || list, 'on two equal GPUs with NVLink nothing found is faster than data parallelism; by all-reduces as the authors measured them TAG leads it by 71 % and Horovod by 4 %, but not HeteroG, whose space has the same strategy (column measured): without it (column rivals) the claim holds; HDP, Post, PlaceTo and GDP, whose leads the paper takes from elsewhere and does not print, are not among them'
FROM told WHERE n > 0
UNION ALL
SELECT 'most', most, 'per cent: ' || list, 'placements on single devices gain nothing on two GPUs here, and the paper prints no values' FROM told WHERE n > 0;
