-- HiDup, Fig. 14b: one row a curve and point. Columns: seat of the curve, its name, GPUs, iteration time, partial programs.
SELECT 3 AS seat, 'partial programs that Kilter''s search keeps' AS name, gpus, iteration_time_s, json_extract(detail, '$.search_labels') AS labels
FROM result WHERE experiment = 'hidup-fig14b' AND json_extract(detail, '$.search_labels') > 0
GROUP BY gpus HAVING max(ordinal)
ORDER BY gpus;
