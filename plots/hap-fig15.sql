-- HAP, Fig. 15: one row per piece of a stacked bar. Columns: bar, model, piece's seat, its name, where the piece begins and ends as
-- a part of the throughput of all together, status of the piece. A piece that loses is drawn empty: where the bar is before it.
WITH
model (bar, model, title) AS (
    VALUES (0, 'vgg19', 'VGG19'), (1, 'vit', 'ViT'), (2, 'bert-base', 'BERT-Base'), (3, 'bert-moe', 'BERT-MoE')),
piece (seat, planner, ratios, collectives, name) AS (
    VALUES (0, 'dp-ev', 'own', 'both', 'DP-EV'), (1, 'hap', 'even', 'padded', 'Q: program'),
           (2, 'hap', 'own', 'padded', 'B: balance'), (3, 'hap', 'own', 'both', 'C: collectives')),
point AS (
    SELECT bar, title, seat, name, status, coalesce(1 / iteration_time_s, 0) AS throughput, result.ordinal
    FROM result JOIN model USING (model)
         JOIN piece ON piece.planner = result.planner AND piece.ratios = json_extract(options, '$.ratios')
                   AND piece.collectives = json_extract(options, '$.collectives')
    WHERE experiment = 'hap-fig15'
    GROUP BY bar, seat HAVING max(result.ordinal)),
reached AS (
    SELECT *, max(throughput) OVER (PARTITION BY bar ORDER BY seat) AS top,
           coalesce(max(throughput) OVER (PARTITION BY bar ORDER BY seat ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS base,
           max(throughput) OVER (PARTITION BY bar) AS whole
    FROM point)
SELECT bar, title, seat, name, base / whole, top / whole, status, ordinal AS rows
FROM reached
ORDER BY bar, seat;
