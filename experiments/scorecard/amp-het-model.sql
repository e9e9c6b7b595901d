-- AMP: trials of the TransGAN generator on 16 V100, four machines of 4 (DeepSpeed)
--
-- Layers of 1024 and of 16 wide. Tested on the trials of 2-way tensor parallelism, calibrated on the others; those that failed only
-- test memory. Starting values:
-- V100's data sheet (15.7 TFLOP/s in single precision, 900 GB/s; memory 16 GB) and the paper's links (170 and 10 Gb/s). The
-- paper says that it trains in half precision, but the calibration trials run out of memory as in single precision.
-- Narrow layers' heads are not divided: AMP's profile (amp/known_cost.csv) has their forward pass take 4.0, 4.9 and 4.6 ms with
-- 1, 2 and 4-way tensor parallelism.
SELECT
    CASE WHEN tmp = 2 OR status <> 'ok' THEN 'test' ELSE 'calibration' END AS split,
    'TransGAN' AS contest,
    'tp ' || tmp || ', pp ' || pp AS "group",
    'transgan:whole_heads=1,global_batch=' || gbs AS model,
    'V100' AS device, 16 AS memory_gib, 80 AS processors, 4 AS gpus, 4 AS machines,
    pp, dp, tmp, mbs, 1 AS chunks, 0 AS recompute,
    -- AMP counts 56 layers: the wide ones are 3 to 14, the narrow ones 41 to 52
    coalesce((SELECT group_concat(CASE WHEN value < 15 THEN max(1, value - 2) WHEN value < 41 THEN 13 ELSE value - 27 END, ' ')
              FROM json_each('[' || replace(ds_partition, ' ', ',') || ']') WHERE value > 0 AND value < 56), '') AS cuts,
    CASE WHEN status = 'ok' THEN measured_s END AS measured_s, NULL AS measured_gib,
    status <> 'ok' AS failed, 'runtime=deepspeed' AS options,
    CASE WHEN status <> 'ok' AND EXISTS (SELECT 1 FROM amp_trials AS more WHERE more.experiment = t.experiment AND more.status = 'ok'
              AND more.pp = t.pp AND more.dp = t.dp AND more.tmp = t.tmp AND more.mbs > t.mbs)
         THEN 'failed, but ran with more samples, so not for lack of memory' END AS reason,
    0.8 * 15.7e12 AS rate, 0.4 * 900e9 AS bandwidth, 0.1 * 900e9 AS unfused, 0.8 * 21.25e9 AS inner, 0.8 * 1.25e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 500e-6 AS handover_s, 15e-6 AS overhead_s
FROM amp_trials AS t
WHERE experiment = 'het_model'
