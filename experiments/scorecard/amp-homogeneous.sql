-- AMP: trials of GPT-2 on 16 T4, four machines of 4 (DeepSpeed)
--
-- Tested on the trials of 2-way tensor parallelism, calibrated on the others; those that failed only test memory. Starting values: T4's data sheet (65 TFLOP/s in
-- half precision, 320 GB/s; memory 16 GB) and the paper's links (50 Gb/s). The paper trains in half precision (Sec. 4.4).
-- Gradients are taken to be of single precision: with half of it, calibration finds links of 20 Gb/s.
SELECT
    CASE WHEN tmp = 2 OR status <> 'ok' THEN 'test' ELSE 'calibration' END AS split,
    'GPT-2' AS contest,
    'tp ' || tmp || ', pp ' || pp AS "group",
    'gpt2:global_batch=' || gbs || ',precision=mixed-fp32-grads' AS model,
    'T4' AS device, 15 AS memory_gib, 40 AS processors, 4 AS gpus, 4 AS machines,
    pp, dp, tmp, mbs, 1 AS chunks, 0 AS recompute,
    -- AMP counts 30 layers: embedding, one without work, 24, two without work, output, one without work
    coalesce((SELECT group_concat(max(1, min(value - 1, 25)), ' ')
              FROM json_each('[' || replace(ds_partition, ' ', ',') || ']') WHERE value > 0 AND value < 30), '') AS cuts,
    CASE WHEN status = 'ok' THEN measured_s END AS measured_s, NULL AS measured_gib,
    status <> 'ok' AS failed, 'runtime=deepspeed' AS options,
    CASE WHEN status <> 'ok' AND EXISTS (SELECT 1 FROM amp_trials AS more WHERE more.experiment = t.experiment AND more.status = 'ok'
              AND more.pp = t.pp AND more.dp = t.dp AND more.tmp = t.tmp AND more.mbs > t.mbs)
         THEN 'failed, but ran with more samples, so not for lack of memory' END AS reason,
    0.8 * 65e12 AS rate, 0.4 * 320e9 AS bandwidth, 0.1 * 320e9 AS unfused, 0.8 * 6.25e9 AS inner, 0.8 * 6.25e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 500e-6 AS handover_s, 15e-6 AS overhead_s
FROM amp_trials AS t
WHERE experiment = 'homogeneous'
