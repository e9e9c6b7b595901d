-- HiDup: iterations of a 6-layer Switch Transformer on 4 V100 with NVLink, under DDP, DeepSpeed, FastMoE and HiDup
--
-- Nothing is fitted to an iteration: computation and memory are priced by single kernels of the first system's trace, links by the
-- least times of collectives of each size, and all four iterations are tests.
--
-- All systems route each token to one expert with 1.25 slots per token, but in different ways. DeepSpeed routes the 32 sequences of
-- a GPU together, the others each sequence by itself. FastMoE has no slots: an expert takes all tokens that come, as many as another
-- one only if tokens are spread evenly. DeepSpeed and FastMoE share the experts out and run Adam, with all of DeepSpeed's other
-- gradients in one all-reduce (its bucket is 500 million elements), and none of FastMoE's; neither computes while it
-- communicates. `gshard` and `fastmoe` are such plans.
WITH model AS (
    SELECT 'bert-switch:layers=6,hidden=1024,ffn=4096,heads=4,seq=256,vocab=1,experts=16,dropout=0.1,global_batch=128' AS spec
),
system AS (
    SELECT 'ddp' AS system, 'ddp' AS planner, '' AS options, ',optimizer=sgd' AS variant
    UNION ALL SELECT 'deepspeed', 'gshard', 'bucket=2GB,overlap=off', ',optimizer=adam,moe_group=32'
    UNION ALL SELECT 'fastmoe', 'fastmoe', 'overlap=off', ',optimizer=adam,capacity_factor=1'
    UNION ALL SELECT 'ours', 'hidup', '', ',optimizer=sgd'
),
-- FLOP/s of the matrix products during which nothing is communicated
product AS (
    SELECT sum("flop(2BMNK)") * 1e6 / sum(dur_us) AS rate
    FROM hidup_1x4_v100_gemm_with_shapes
    WHERE trace = '1x4_ddp' AND frac_overlapped_with_nccl = 0
),
-- One iteration's kernels outside of the backward pass, with how many matrix products came before
kernel AS (
    SELECT name, phase, start_us, dur_us, CAST(grid AS INTEGER) AS blocks,
        sum(name LIKE '%gemm%') OVER (ORDER BY start_us) AS products
    FROM hidup_1x4_v100_1x4_ddp_iter
    WHERE class = 'compute' AND phase IN ('forward', 'update')
),
-- Bytes/s of ReLU and the update, whose vectorized kernels have 256 elements per block and go through 2 and 3 of them of 4 bytes
elementwise AS (
    SELECT sum(256.0 * blocks * CASE WHEN name LIKE '%clamp%' THEN 8 ELSE 12 END) / sum(dur_us) * 1e6 AS bandwidth
    FROM kernel
    WHERE blocks > 10000 AND (name LIKE 'vectorized%clamp%' OR phase = 'update')
),
-- Two layers have 8 + 11 matrix products; the scores are the 4th of each, the mean of values the 5th. Between and after them are
-- attention's other kernels; its operands are q, k, v, the result and 4 x 256 probabilities per token, of 32 x 256 tokens.
attention AS (
    SELECT 6 * 32 * 256 * 4 * (4 * 1024 + 4 * 256.0) / sum(dur_us) * 1e6 AS bandwidth
    FROM kernel
    WHERE phase = 'forward' AND name NOT LIKE '%gemm%' AND products % 19 IN (4, 5, 12, 13)
),
-- The time between two kernels of the forward pass, and the host time of one
gap AS (
    SELECT (max(start_us + dur_us) - min(start_us) - sum(dur_us)) * 1e-6 / count(*) AS overhead_s, count(*) AS kernels
    FROM kernel
    WHERE phase = 'forward'
),
-- Time of matrix products beside communication over their time alone
interference AS (
    SELECT 1.0 * sum(n_overlap * median_overlap_us) / sum(n_overlap * median_clean_us) AS slowdown
    FROM hidup_1x4_v100_interference
    WHERE trace = '1x4_ddp' AND kernel LIKE '%gemm%'
),
-- Least time and bytes that pass a GPU's link. Other times include late ranks.
message AS (
    SELECT min_us * 1e-6 AS y, payload_bytes * CASE collective WHEN 'AllReduce' THEN 1.5 ELSE 0.75 END AS x
    FROM hidup_1x4_v100_collectives_by_size
),
-- y = latency + x / bandwidth by least squares of relative errors
moment AS (
    SELECT sum(1 / y / y) AS n, sum(x / y / y) AS x, sum(1 / y) AS y, sum(x * x / y / y) AS xx, sum(x / y) AS xy FROM message
),
link AS (
    SELECT (n * xx - x * x) / (n * xy - x * y) AS bandwidth, (y * xx - x * xy) / (n * xx - x * x) AS latency_s FROM moment
)
SELECT
    'test' AS split, 'traces' AS contest,
    spec || variant AS model,
    'V100' AS device, 16 AS memory_gib, 0 AS processors, 4 AS gpus, 1 AS machines,
    system.planner, system.options,
    NULL AS pp, NULL AS dp, NULL AS tmp, NULL AS mbs, NULL AS chunks, NULL AS recompute, NULL AS cuts,
    wall_us * 1e-6 AS measured_s, NULL AS measured_gib, 0 AS failed,
    nccl_sum_us * 1e-6 AS measured_comm_s, overlap_nccl_us * 1e-6 AS measured_hidden_s,
    rate, elementwise.bandwidth AS bandwidth, attention.bandwidth AS unfused,
    link.bandwidth AS inner, link.bandwidth AS outer, link.latency_s AS latency_s,
    slowdown, overhead_s,
    (SELECT fwd_wall_us * 1e-6 / kernels FROM hidup_1x4_v100_summary_mean WHERE system = 'ddp') AS launch_s
FROM system JOIN hidup_1x4_v100_summary_mean USING (system), model, product, elementwise, attention, gap, interference, link
