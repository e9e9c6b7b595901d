-- Sailor: plans of OPT-350M and GPT-Neo-2.7B on GH200, machines of 4
--
-- Calibrated on OPT-350M, tested on GPT-Neo-2.7B. Starting values: GH200's data sheet (990 TFLOP/s in half precision, 4 TB/s,
-- 96 GB; NVLink 450 GB/s per direction; Slingshot 4 x 25 GB/s per machine). A row whose stages have other layers than its
-- model, and those of a single sample, are left out.
WITH plan AS (
    SELECT *,
        CASE model WHEN 'OPT-350' THEN 26 ELSE 34 END AS n_layers,
        '[' || replace(layers_per_stage, '|', ',') || ']' AS stages,
        CAST(dp_per_stage AS INTEGER) AS dp
    FROM sailor_validation_gh200
)
SELECT
    CASE model WHEN 'OPT-350' THEN 'calibration' ELSE 'test' END AS split,
    model || ', batch ' || gbs || ', ' || N_nodes || ' machines' AS contest,
    CASE model WHEN 'OPT-350' THEN 'gpt2:precision=mixed,layers=24,hidden=1024,ffn=4096,heads=16,vocab=50272'
               ELSE 'gpt2:precision=mixed,layers=32,hidden=2560,ffn=10240,heads=20,vocab=50257' END
        || ',dropout=0.1,seq=2048,global_batch=' || gbs AS model,
    'GH200' AS device, 94 AS memory_gib, 132 AS processors, 4 AS gpus, pp * dp AS machines,
    pp, dp, 4 AS tmp, mbs, 1 AS chunks, 0 AS recompute,
    coalesce((SELECT group_concat(first, ' ')
              FROM (SELECT key, sum(value) OVER (ORDER BY key) AS first FROM json_each(stages))
              WHERE key < pp - 1), '') AS cuts,
    measured_iter_s AS measured_s, measured_max_mem_bytes / 1073741824.0 AS measured_gib, 0 AS failed, 'runtime=megatron' AS options,
    0.8 * 990e12 AS rate, 0.4 * 4e12 AS bandwidth, 0.1 * 4e12 AS unfused, 0.8 * 450e9 AS inner, 0.8 * 100e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 500e-6 AS handover_s, 15e-6 AS overhead_s
FROM plan
WHERE (SELECT sum(value) FROM json_each(stages)) = n_layers AND gbs > 1
