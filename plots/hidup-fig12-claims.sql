-- HiDup, Fig. 12: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT CAST(substr(cluster, 11) AS INTEGER) AS gbps, json_extract(detail, '$.gates.whole') AS whole,
           json_extract(detail, '$.gates.cut') AS cut, max(ordinal)
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100') AND model = 'bert-sgmoe' AND planner = 'hidup' AND status = 'ok' GROUP BY cluster),
told AS (SELECT group_concat(printf('%d of %d layers divide the gate at %d Gb/s', cut, cut + whole, gbps), ', ') AS note FROM bar)
SELECT 'experts-high', whole = 0, note, 'a gate is computed on every GPU at the highest bandwidth'
FROM bar, told WHERE gbps = 100
UNION ALL
SELECT 'experts-low', whole > 0, note,
       'not the search''s backward (column serial), nor the bandwidth of all-to-all. It depends on the slots of an expert, which the paper does not print: with a capacity factor of 4 (column capacity) a gate is computed on every GPU at 10 Gb/s, and none at 100 Gb/s'
FROM bar, told WHERE gbps = 10;
