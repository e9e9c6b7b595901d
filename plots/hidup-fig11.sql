-- HiDup, Fig. 11: one row per bar, in the columns of hap-bars.gp; bars measure numbers of parameters.
WITH
kind (seat, key, name) AS (VALUES (0, '$.parameters.whole', 'replicated'), (1, '$.parameters.cut', 'sharded')),
bar AS (
    SELECT *, CAST(substr(cluster, 11) AS INTEGER) AS place, max(ordinal)
    FROM result WHERE fidelity = 'stage' AND granularity = 'gpu' AND cluster IN ('hidup-2x4-10', 'hidup-2x4-30', 'hidup-2x4-100') AND model = 'bert-sgmoe' AND planner = 'hidup'
    GROUP BY cluster)
SELECT 0, 'BERT-SGMoE', dense_rank() OVER (ORDER BY place) - 1 AS "group", place, seat, name, seat AS slot, 2 AS slots, status,
       json_extract(detail, key) AS parameters, NULL AS claim, NULL AS base, ordinal AS rows
FROM bar JOIN kind
ORDER BY place, seat;
