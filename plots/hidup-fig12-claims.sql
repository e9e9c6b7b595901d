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
       'not the search''s backward (backward=serial gives the same), nor the bandwidth of all-to-all: the search divides gates at every one. In its count sending each token to its experts passes less over a port than giving all tokens to every GPU'
FROM bar, told WHERE gbps = 10;
