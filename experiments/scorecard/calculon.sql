-- Calculon: iterations of Megatron's 22B, 175B, 530B and 1T on 8 to 512 A100 (Korthikanti et al. 2022)
--
-- Without sequence parallelism, with full recomputation; without any only the memory is known (a trial fails where that is
-- more than a device has). The other rows have what Kilter's programs do not do. Memory is that of the paper's Sec. 4, with 18
-- bytes a parameter: layers only, no embedding. Calibrated on 22B, tested on the larger models. Starting values: A100's data sheet
-- (312 TFLOP/s in half precision, 2.0 TB/s, 80 GB; NVLink 300 GB/s a direction; 8 x 25 GB/s a machine).
WITH trial AS (
    SELECT *, 1 AS recompute_all, measured_iter_s AS time_s FROM calculon_iter_time WHERE recompute = 'full'
    UNION ALL
    SELECT *, 0, NULL FROM calculon_iter_time WHERE recompute = 'full'
),
memory AS (
    SELECT m.model, p.mode, m.params_opt_gib + m.activation_gib * p.pct / 100 AS gib
    FROM calculon_memory_gib AS m JOIN calculon_activation_pct_of_none AS p ON p.model = m.model
    WHERE m.mode = 'none'
)
SELECT
    CASE WHEN trial.model = 'megatron-22B' AND recompute_all THEN 'calibration' ELSE 'test' END AS split,
    trial.model AS contest,
    'gpt2:precision=mixed-fp32-grads,dropout=0.1,vocab=51200,layers=' || blocks || ',hidden=' || hidden || ',ffn=' || ffn
        || ',heads=' || heads || ',seq=' || seq || ',global_batch=' || batch AS model,
    'A100' AS device, 80 AS memory_gib, 108 AS processors, 8 AS gpus, "gpus(A100-80GB)" / 8 AS machines,
    pp, dp, tp AS tmp, microbatch AS mbs, interleave AS chunks, recompute_all AS recompute, '' AS cuts,
    time_s AS measured_s, gib AS measured_gib, gib > 80 AS failed,
    0.8 * 312e12 AS rate, 0.4 * 2e12 AS bandwidth, 0.1 * 2e12 AS unfused, 0.8 * 300e9 AS inner, 0.8 * 200e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 15e-6 AS overhead_s
FROM trial JOIN memory ON memory.model = trial.model AND memory.mode = CASE WHEN recompute_all THEN 'full' ELSE 'none' END
