-- The settings of AMP's Fig. 2, and its candidates ranked by simulated time.
setting (panel, model, cluster, title) AS (
    VALUES (0, 'gpt2:precision=mixed', 'amp-homogeneous', 'GPT-2, 16 T4'), (1, 'gpt2:precision=mixed', 'amp-het-cluster', 'GPT-2, 12 V100 and 4 T4'),
           (2, 'transgan:precision=mixed,upsample=21,whole_heads=1', 'published-amp-het-model', 'TransGAN, 16 V100')),
point AS (
    SELECT panel, title, CAST(json_extract(options, '$.rank') AS INTEGER) AS rank, iteration_time_s AS s, max(result.ordinal)
    FROM result JOIN setting USING (model, cluster)
    WHERE experiment = 'amp-fig2' AND status = 'ok' GROUP BY panel, rank),
ranked AS (SELECT *, rank() OVER (PARTITION BY panel ORDER BY s) AS place, row_number() OVER (PARTITION BY panel ORDER BY rank) AS x,
                  count(*) OVER (PARTITION BY panel) AS n FROM point),
