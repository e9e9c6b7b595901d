-- Calculon: iterations of Megatron's 22B, 175B, 530B and 1T on 8 to 512 A100 (Korthikanti et al. 2022)
--
-- Without sequence parallelism and with full recomputation; the other rows have what Kilter's programs do not do. Calibrated
-- on 22B, tested on the larger models. Starting values: A100's data sheet (312 TFLOP/s in half precision, 2.0 TB/s, 80 GB; NVLink
-- 300 GB/s a direction; 8 x 25 GB/s a machine).
SELECT
    CASE model WHEN 'megatron-22B' THEN 'calibration' ELSE 'test' END AS split,
    model AS contest,
    'gpt2:dropout=0.1,vocab=51200,layers=' || blocks || ',hidden=' || hidden || ',ffn=' || ffn || ',heads=' || heads
        || ',seq=' || seq || ',global_batch=' || batch AS model,
    'A100' AS device, 80 AS memory_gib, 108 AS processors, 8 AS gpus, "gpus(A100-80GB)" / 8 AS machines,
    pp, dp, tp AS tmp, microbatch AS mbs, interleave AS chunks, 1 AS recompute, '' AS cuts,
    measured_iter_s AS measured_s, NULL AS measured_gib, 0 AS failed,
    312e12 AS rate, 2e12 AS bandwidth, 300e9 AS inner, 200e9 AS outer, 10e-6 AS latency_s, 5e-6 AS overhead_s, 100e-6 AS launch_s
FROM calculon_iter_time
WHERE recompute = 'full'
