-- AMP: trials of GPT-2 on 16 T4, four machines of 4 (DeepSpeed)
--
-- Tested on the trials of 2-way tensor parallelism, calibrated on the others. Starting values: T4's data sheet (8.1 TFLOP/s in
-- single precision, 320 GB/s; memory 16 GB) and the paper's links (50 Gb/s).
SELECT
    CASE tmp WHEN 2 THEN 'test' ELSE 'calibration' END AS split,
    'GPT-2' AS contest,
    'gpt2:global_batch=' || gbs AS model,
    'T4' AS device, 15 AS memory_gib, 4 AS gpus, 4 AS machines,
    pp, dp, tmp, mbs, 1 AS chunks, 0 AS recompute,
    -- AMP counts 30 layers: embedding, one without work, 24, two without work, output, one without work
    coalesce((SELECT group_concat(max(1, min(value - 1, 25)), ' ')
              FROM json_each('[' || replace(ds_partition, ' ', ',') || ']') WHERE value > 0 AND value < 30), '') AS cuts,
    CASE WHEN status = 'ok' THEN measured_s END AS measured_s, NULL AS measured_gib,
    status <> 'ok' AS failed,
    8.1e12 AS rate, 320e9 AS bandwidth, 6.25e9 AS inner, 6.25e9 AS outer, 10e-6 AS overhead_s
FROM amp_trials
WHERE experiment = 'homogeneous'
