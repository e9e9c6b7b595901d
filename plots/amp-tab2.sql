-- AMP, Table 2: one row per curve and point. Columns: seat of the curve, its name, GPUs, iteration time, seconds of search. The latest
-- row counts.
WITH
paper (gpus, s) AS (VALUES (4, 58.0), (16, 325.6), (64, 890.3), (256, 1627.4)),
point AS (
    SELECT gpus, iteration_time_s, search_time_s, max(ordinal)
    FROM result WHERE experiment = 'amp-tab2' AND status = 'ok' GROUP BY gpus)
SELECT 2, 'AMP, as published', gpus, 0, s FROM paper
UNION ALL
SELECT 3, 'Kilter''s exact assignment, all degrees', gpus, iteration_time_s, search_time_s FROM point
ORDER BY 1, 3;
