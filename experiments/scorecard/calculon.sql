-- Calculon: iterations of Megatron's 22B, 175B, 530B and 1T on 8 to 512 A100 (Korthikanti et al. 2022)
--
-- With full recomputation, and with sequence parallelism and selective recomputation; without recomputation only the memory is known (a
-- trial fails where that is more than a device has). Memory is that of the paper's Sec. 4.1 and 4.2, 18 bytes per parameter of the
-- layers, and the additions of Sec. 4.3: for the first stage the tables' parameters and the mask of dropout for each microbatch in
-- flight (two per stage where interleaved), without a pipeline the output layer's, too. Calibrated on 22B, tested on the larger
-- models. Starting values: A100's data sheet (312 TFLOP/s in half precision, 2.0 TB/s, 80 GB; NVLink 300 GB/s per direction; 8 x 25 GB/s per machine).
WITH mode (recompute, word, options, timed) AS (
    VALUES ('full', 'full', 'recompute=full', 1),
        ('seqsel', 'seqsel', 'recompute=selective,sequence_parallel=on', 1),
        ('full', 'none', '', 0)
),
trial AS (
    SELECT i.*, m.word, m.options, CASE WHEN m.timed THEN i.measured_iter_s END AS time_s, 51200 AS vocab,
        CASE m.word WHEN 'seqsel' THEN i.tp ELSE 1 END AS split_by
    FROM calculon_iter_time AS i JOIN mode AS m ON m.recompute = i.mode
),
memory AS (
    SELECT m.model, p.mode, m.params_opt_gib + m.activation_gib * p.pct / 100 AS gib
    FROM calculon_memory_gib AS m JOIN calculon_activation_pct_of_none AS p ON p.model = m.model
    WHERE m.mode = 'none'
),
sized AS (
    SELECT trial.*, gib + (
        18.0 * (vocab * hidden * (1 + (pp = 1)) / tp + seq * hidden)
        + 1.0 * seq * microbatch * hidden * pp * (1 + (interleave > 1)) / split_by
        + (pp = 1) * 4.0 * seq * microbatch * (hidden + vocab) / tp) / 1073741824 AS gib
    FROM trial JOIN memory ON memory.model = trial.model AND memory.mode = trial.word
)
SELECT
    CASE WHEN model = 'megatron-22B' AND word <> 'none' THEN 'calibration' ELSE 'test' END AS split,
    model AS contest,
    'gpt2:precision=mixed-fp32-grads,dropout=0.1,vocab=' || vocab || ',layers=' || blocks || ',hidden=' || hidden || ',ffn=' || ffn
        || ',heads=' || heads || ',seq=' || seq || ',global_batch=' || batch AS model,
    'A100' AS device, 80 AS memory_gib, 108 AS processors, 8 AS gpus, "gpus(A100-80GB)" / 8 AS machines,
    pp, dp, tp AS tmp, microbatch AS mbs, interleave AS chunks, 0 AS recompute, options, '' AS cuts,
    time_s AS measured_s, gib AS measured_gib, gib > 80 AS failed,
    0.8 * 312e12 AS rate, 0.4 * 2e12 AS bandwidth, 0.1 * 2e12 AS unfused, 0.8 * 300e9 AS inner, 0.8 * 200e9 AS outer,
    10e-6 AS latency_s, 100e-6 AS launch_s, 500e-6 AS handover_s, 15e-6 AS overhead_s
FROM sized
