-- HiDup, Fig. 11: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT CAST(substr(cluster, 11) AS INTEGER) AS gbps, json_extract(detail, '$.parameters.whole') AS whole,
           json_extract(detail, '$.parameters.cut') AS cut, max(ordinal)
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100') AND model = 'bert-sgmoe' AND planner = 'hidup' AND status = 'ok' GROUP BY cluster),
told AS (SELECT group_concat(printf('%d replicated, %d sharded at %d Gb/s', whole, cut, gbps), ', ') AS note FROM bar)
SELECT 'replication-low', low.whole > low.cut, note, 'more are sharded than replicated at the lowest bandwidth'
FROM bar AS low, told WHERE low.gbps = 10
UNION ALL
SELECT 'sharding-high', high.cut > low.cut, note, 'no more are sharded at the highest bandwidth than at the lowest'
FROM bar AS low, bar AS high, told WHERE low.gbps = 10 AND high.gbps = 100;
