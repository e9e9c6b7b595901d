-- AMP, Fig. 2: one row a candidate. Columns: setting, its title, rank by prediction, seconds simulated, rank of these, Spearman's
-- correlation of the two ranks in the setting.
WITH
setting (panel, model, cluster, title) AS (
    VALUES (0, 'gpt2:precision=mixed', 'amp-homogeneous', 'GPT-2, 16 T4'), (1, 'gpt2:precision=mixed', 'amp-het-cluster', 'GPT-2, 12 V100 and 4 T4'),
           (2, 'transgan:precision=mixed', 'amp-het-model', 'TransGAN, 16 V100')),
point AS (
    SELECT panel, title, CAST(json_extract(options, '$.rank') AS INTEGER) AS rank, iteration_time_s AS s, max(result.ordinal)
    FROM result JOIN setting USING (model, cluster)
    WHERE experiment = 'amp-fig2' AND status = 'ok' GROUP BY panel, rank),
ranked AS (SELECT *, rank() OVER (PARTITION BY panel ORDER BY s) AS place, row_number() OVER (PARTITION BY panel ORDER BY rank) AS x,
                  count(*) OVER (PARTITION BY panel) AS n FROM point),
spearman AS (SELECT panel, 1 - 6.0 * sum((x - place) * (x - place)) / (max(n) * (max(n) * max(n) - 1.0)) AS rho FROM ranked GROUP BY panel)
SELECT panel, title, rank, s, place, rho FROM ranked JOIN spearman USING (panel) ORDER BY panel, rank;
