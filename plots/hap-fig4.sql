-- HAP, Fig. 4: one row per curve and point. Columns: seat of the curve, its name, share of the first GPU, -, GB/s of the full tensor.
SELECT CASE json_extract(subject, '$.exchange.collective') WHEN 'all_gather' THEN 3 ELSE 2 END,
       CASE json_extract(subject, '$.exchange.collective') WHEN 'all_gather' THEN 'padded all-gather' ELSE 'grouped broadcasts' END,
       json_extract(subject, '$.exchange.share'), NULL, json_extract(subject, '$.exchange.bytes') / iteration_time_s / 1e9, ordinal AS rows
FROM result
WHERE experiment = 'hap-fig4'
ORDER BY 1, 3;
