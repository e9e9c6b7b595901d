-- vTrain: 1,440 iterations of GPT on 2, 4 and 8 A100 of one machine (Megatron-DeepSpeed)
--
-- Calibrated on the models of width 1024, tested on those of width 2048. Starting values: A100's data sheet (NVIDIA A100
-- 80 GB: 312 TFLOP/s in half precision, 2.0 TB/s, NVLink 300 GB/s per direction).
SELECT
    CASE WHEN hidden_size = 1024 THEN 'calibration' ELSE 'test' END AS split,
    hidden_size || ' x ' || num_layers || ', batch ' || global_batch || ', ' || num_GPUs || ' GPUs' AS contest,
    'gpt2:dropout=0.1,vocab=51200,layers=' || num_layers || ',hidden=' || hidden_size || ',ffn=' || (4 * hidden_size)
        || ',heads=' || attention_heads || ',seq=' || sequence_length || ',global_batch=' || global_batch || ',precision=mixed' AS model,
    'A100' AS device, 80 AS memory_gib, 108 AS processors, num_GPUs AS gpus, 1 AS machines,
    pipeline_parallelism AS pp, data_parallelism AS dp, tensor_parallelism AS tmp, micro_batch AS mbs,
    1 AS chunks, 0 AS recompute, '' AS cuts,
    iteration_time_ms / 1000.0 AS measured_s, NULL AS measured_gib, 0 AS failed, 'runtime=megatron' AS options,
    0.8 * 312e12 AS rate, 0.4 * 2e12 AS bandwidth, 0.1 * 2e12 AS unfused, 0.8 * 300e9 AS inner, 0.8 * 25e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 500e-6 AS handover_s, 15e-6 AS overhead_s
FROM vtrain_ground_truth_single
