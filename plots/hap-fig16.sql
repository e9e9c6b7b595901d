-- HAP, Fig. 16: one row per piece of a bar. Columns: model's place, its title, seat (0: concurrent's V100 part, 1: its P100 part, 2:
-- HAP), name, where the piece begins and ends, as a part of concurrent's throughput. GPUs / time, since all scale weakly.
WITH
model (place, model, title) AS (
    VALUES (0, 'vgg19', 'VGG19'), (1, 'vit', 'ViT'), (2, 'bert-base', 'BERT-Base'), (3, 'bert-moe', 'BERT-MoE')),
piece (seat, cluster, name) AS (
    VALUES (0, 'published-hap-v100-16', 'concurrent: V100'), (1, 'published-hap-p100x6-48', 'concurrent: P100'), (2, 'published-hap-64', 'HAP on all')),
point AS (
    SELECT place, title, seat, name, gpus / iteration_time_s AS throughput, result.ordinal
    FROM result JOIN model USING (model) JOIN piece USING (cluster)
    WHERE experiment = 'hap-fig16' AND status = 'ok'
    GROUP BY place, seat HAVING max(result.ordinal)),
stacked AS (
    SELECT *, CASE seat WHEN 1 THEN (SELECT throughput FROM point AS v WHERE v.place = point.place AND v.seat = 0) ELSE 0 END AS base,
           (SELECT sum(throughput) FROM point AS s WHERE s.place = point.place AND s.seat < 2 HAVING count(*) = 2) AS whole
    FROM point)
SELECT place, title, seat, name, base / whole, (base + throughput) / whole, ordinal AS rows
FROM stacked
WHERE whole IS NOT NULL
ORDER BY place, seat;
