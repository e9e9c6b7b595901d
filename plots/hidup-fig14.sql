-- HiDup, Fig. 14: one row per curve and point. Columns: seat of the curve, its name, layers, iteration time, seconds of search. The
-- latest row counts. HiDup's published searcher was measured unchanged, with its own graphs (medians of 3 runs).
WITH
artifact (layers, s) AS (
    VALUES (2, 0.6172), (4, 1.1447), (6, 1.6262), (8, 2.1069), (12, 3.2374), (16, 4.3354), (24, 6.6555)),
point AS (
    SELECT *, CAST(substr(spec, instr(spec, ',layers=') + 8) AS INTEGER) AS layers, max(ordinal)
    FROM result
    WHERE planner = 'hidup' AND fidelity = 'stage' AND granularity = 'gpu' AND model LIKE 'bert-sgmoe%' AND search_time_s > 0 AND cluster IN ('hidup-1x4', 'hidup-4x8')
    GROUP BY cluster, layers)
SELECT CASE gpus WHEN 4 THEN 3 ELSE 2 END AS seat, printf('Kilter''s search, %d GPUs', gpus) AS name, layers, iteration_time_s,
       search_time_s
FROM point
UNION ALL
SELECT 1, 'HiDup''s published searcher, 4 GPUs', layers, 0, s FROM artifact
ORDER BY 1, 3;
