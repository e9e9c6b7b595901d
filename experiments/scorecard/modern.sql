-- Today's models on V100 to GB300: 456 published iterations with tensor, pipeline, context, expert and data parallelism, FSDP, FP8
--
-- Strategies are those of `manual`. Where a page leaves something out, the default of its framework is taken: Megatron's tensor parallelism is
-- with sequence parallelism since 2023, and since then gradients are exchanged, and FSDP's parameters gathered, while it computes
-- (`flow`; before, after the last micro-batch: `stage`); a batch that is not given is a
-- micro-batch for each replica, a micro-batch that is not given has 8,192 tokens. Models without gated units are written as gated
-- ones of 2/3 of the width, which have the same parameters and FLOPs; a shared expert is one expert and one choice more. Of
-- BLOOM's runs layers follow from the parameters where they are not given. Heads that are not given are those of Narayanan et al.
-- 2021 (Table 1): 128 wide, in their two smallest models 96. Where experts are shared among GPUs that also share layers, each of
-- these has whole experts (etp=1), as the recipes of Megatron-Bridge (expert_tensor_parallel_size) have. Where a page has only
-- TFLOP/s, the time is that of the FLOPs that it counts: 6 per parameter and token, and attention's without the causal half.
-- The scores of Baichuan's attention, with biases by distance, lie in memory. Where a page computes some layers again, as many whole layers are; torchtitan's
-- policy by op, its default, computes every second product again (`alternate`).
-- The launcher's first page has no plans; those with the same figures on its next page are taken. Its third prints tp=4 pp=1 of Llama 2 13B, whose
-- recipe at that commit has tp=1 pp=4, as the fourth page with the same figure. Interleaving, attention's library, and where user buffers are on, are
-- those of its recipes (launcher_scripts/conf). Automodel's are in examples/benchmark/configs: ep of GPT-OSS, and that Kimi K2 computes all again. Keys and values go around a ring, as by default in Megatron-Core. Calibrated on some models of each type of GPU, tested on the others.
WITH page AS (
    SELECT * FROM modern_automodel UNION ALL SELECT * FROM modern_bigscience_tr11 UNION ALL SELECT * FROM modern_bigscience_v100
    UNION ALL SELECT * FROM modern_colossalai UNION ALL SELECT * FROM modern_dgxc_benchmarking UNION ALL SELECT * FROM modern_flagperf
    UNION ALL SELECT * FROM modern_flash_attention UNION ALL SELECT * FROM modern_fms_fsdp UNION ALL SELECT * FROM modern_hexiscale
    UNION ALL SELECT * FROM modern_megatron_bridge UNION ALL SELECT * FROM modern_megatron_lm UNION ALL SELECT * FROM modern_nemo_docs
    UNION ALL SELECT * FROM modern_nemo_launcher UNION ALL SELECT * FROM modern_neuron_sp UNION ALL SELECT * FROM modern_primus
    UNION ALL SELECT * FROM modern_torchao UNION ALL SELECT * FROM modern_torchtitan
),
-- The names of models on each page, and the models for calibration
model(name, fit, family, dims) AS (
    VALUES
    ('Llama3.1-8b', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256'),
    ('Llama3.1-8B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256'),
    ('LLAMA3_8B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256'),
    ('Llama3.1-70b', 1, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256'),
    ('Llama3.1-70B', 0, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256'),
    ('LLAMA3-70B', 0, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256'),
    ('Llama3-70B', 0, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256'),
    ('Llama3.1-405b', 0, 'llama', 'layers=126,hidden=16384,heads=128,kv_heads=8,ffn=53248,vocab=128256'),
    ('LLAMA3.1_405B', 0, 'llama', 'layers=126,hidden=16384,heads=128,kv_heads=8,ffn=53248,vocab=128256'),
    ('LLAMA2-7B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=32000'),
    ('LLAMA2-7B (long sequence)', 0, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=32000'),
    ('Llama1-7B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=32000'),
    ('LLAMA2-13B', 1, 'llama', 'layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000'),
    ('Llama2-13B', 1, 'llama', 'layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000'),
    ('Llama1-13B', 0, 'llama', 'layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000'),
    ('Llama-34B', 0, 'llama', 'layers=48,hidden=8192,heads=64,kv_heads=8,ffn=22016,vocab=32000'),
    ('LLAMA2-70B', 1, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=32000'),
    ('Llama2-70B', 0, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=32000'),
    ('Llama-like-70B', 1, 'llama', 'layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=32000'),
    ('Aquila2-7B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=100008'),
    ('Baichuan2-13B', 0, 'llama', 'layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13696,vocab=125696,attention=materialized'),
    ('Qwen3-8B', 1, 'llama', 'layers=36,hidden=4096,heads=32,kv_heads=8,ffn=12288,vocab=151936'),
    ('Nemotron4-15b', 0, 'llama', 'layers=32,hidden=6144,heads=48,kv_heads=8,ffn=16384,vocab=256000'),
    ('Nemotron-8B', 0, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=10923,vocab=256000'),
    ('Nemotron-22B', 0, 'llama', 'layers=40,hidden=6144,heads=48,kv_heads=48,ffn=16384,vocab=256000'),
    ('Nemotron-340B', 0, 'llama', 'layers=96,hidden=18432,heads=96,kv_heads=8,ffn=49152,vocab=256000'),
    ('GPT3-125M', 1, 'llama', 'layers=12,hidden=768,heads=12,kv_heads=12,ffn=2048,vocab=50304'),
    ('GPT3-355M', 0, 'llama', 'layers=24,hidden=1024,heads=16,kv_heads=16,ffn=2731,vocab=50304'),
    ('GPT3-5B', 0, 'llama', 'layers=24,hidden=4096,heads=32,kv_heads=32,ffn=10923,vocab=51200'),
    ('GPT3-6.7B', 1, 'llama', 'layers=32,hidden=4096,heads=32,kv_heads=32,ffn=10923,vocab=50304'),
    ('GPT3-13B', 0, 'llama', 'layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13653,vocab=50304'),
    ('GPT3-175B', 0, 'llama', 'layers=96,hidden=12288,heads=96,kv_heads=96,ffn=32768,vocab=51200'),
    ('GPT-7.1B', 1, 'llama', 'layers=30,hidden=4096,heads=32,kv_heads=32,ffn=10923,vocab=131072'),
    ('GPT-32B', 0, 'llama', 'layers=48,hidden=7168,heads=56,kv_heads=56,ffn=19115,vocab=131072'),
    ('GPT2-700M', 1, 'llama', 'layers=36,hidden=1280,heads=20,kv_heads=20,ffn=3413,vocab=50257'),
    ('GPT2-1.3B', 0, 'llama', 'layers=24,hidden=2048,heads=16,kv_heads=16,ffn=5461,vocab=50257'),
    ('Qwen1.5-MoE-14B-A2.7B', 0, 'mixtral', 'layers=24,hidden=2048,heads=16,kv_heads=16,ffn=1408,experts=64,top=8,vocab=151936'),
    ('Llama4-Scout', 0, 'mixtral', 'layers=48,hidden=5120,heads=40,kv_heads=8,ffn=8192,experts=16,top=2,vocab=202048'),
    ('Llama4-Scout-2layers', 1, 'mixtral', 'layers=2,hidden=5120,heads=40,kv_heads=8,ffn=8192,experts=16,top=2,vocab=202048'),
    ('Qwen3_30B_a3B', 1, 'qwen3-30b-a3b', ''),
    ('Qwen3_235B_a22B', 0, 'qwen3-235b-a22b', ''),
    ('DeepSeekV3', 0, 'deepseek-v3', ''),
    ('DeepSeek V3 671B', 0, 'deepseek-v3', ''),
    ('Kimi_K2', 0, 'kimi-k2', ''),
    ('Kimi K2', 0, 'kimi-k2', ''),
    ('GPT-OSS 120B', 1, 'gpt-oss-120b', ''),
    ('Nemotron-H-56b', 0, 'nemotron-h-56b', '')
),
-- GPUs by their names in data/devices, with GPUs and NICs per machine; a rack of 72 gives jobs 64; torchtitan's H100 have HBM2e and 500 W
gpu(name, device, of_machine, nic, nics, inner) AS (
    VALUES
    ('H100', 'h100-sxm', 8, 'ib-ndr', 8, ''), ('H200', 'h200', 8, 'ib-ndr', 8, ''), ('H800-80GB', 'h800', 8, 'ib-hdr', 8, ''),
    ('A100-80GB', 'a100-80g', 8, 'ib-hdr', 8, ''), ('A100-40GB', 'a100-40g', 8, 'ib-hdr', 8, ''), ('A800-80GB', 'a800-80g', 8, 'ib-hdr', 8, ''),
    ('V100-32GB', 'v100-32g', 4, 'ib-edr', 4, ''), ('V100-16GB', 'v100-16g', 4, 'ib-edr', 4, ''),
    ('B200', 'b200', 8, 'ib-ndr', 8, ''), ('B300', 'b300', 8, 'ib-xdr', 8, ''), ('Blackwell-184GiB', 'b200', 8, 'ib-ndr', 8, ''),
    ('GB200', 'gb200', 64, 'ib-ndr', 64, ''), ('GB300', 'gb300', 64, 'ib-xdr', 64, ''), ('MI325X', 'mi325x', 8, 'eth-400', 8, '')
),
-- The software of each page by its name in data/runtimes; pages with several name it in their rows (below)
stack(source, software) AS (
    VALUES
    ('automodel', 'fsdp-te'), ('bigscience_tr11', 'megatron-2021'), ('bigscience_v100', 'megatron-2021'), ('colossalai', 'pytorch'),
    ('dgxc_benchmarking', 'nemo'), ('flagperf', 'pytorch'), ('flash_attention', 'ddp'), ('fms_fsdp', 'fsdp'), ('megatron_bridge', 'nemo'), ('megatron_lm', 'megatron'),
    ('nemo_docs', 'nemo'), ('nemo_launcher', 'nemo'), ('neuron_sp', 'ddp'), ('primus', 'megatron'), ('torchao', 'fsdp-compiled'), ('torchtitan', 'fsdp-compiled')
),
-- Plans of the launcher's first page
early(model, tp, pp, mbs) AS (VALUES ('LLAMA2-70B', 4, 4, 1), ('LLAMA2-13B', 2, 1, 1), ('Nemotron-8B', 2, 1, 2)),
-- Parameters that work on a token, layers and width, where a page has only TFLOP/s
counts(name, active, deep, wide) AS (
    VALUES ('LLAMA2-7B (long sequence)', 6.607e9, 32, 4096), ('LLAMA2-13B', 12.85e9, 40, 5120), ('LLAMA2-70B', 68.71e9, 80, 8192),
    ('Nemotron-8B', 7.49e9, 32, 4096)
),
-- Numbers as numbers, with defaults for those that the pages leave out
trial AS (
    SELECT page.source_id, page.model, page.gpu, page.precision, page.gbs, page.n_gpus, page.layers, page.params, page.other, page.fsdp, page.recompute,
        page.tokens_per_s_per_gpu, page.step_s, page.mfu, page.peak_gib, active, deep, wide,
        CASE WHEN early.tp AND page.tp = '' THEN '4096' ELSE page.seq END AS seq, CASE WHEN early.tp AND page.tp = '' THEN early.mbs ELSE page.mbs END AS mbs, family, dims, fit, device, of_machine, nic, nics,
        page.source_id IN ('megatron_bridge', 'dgxc_benchmarking', 'nemo_docs', 'nemo_launcher') OR page.model IN ('GPT-32B', 'GPT-7.1B') AS sequence_parallel,
        CASE WHEN page.precision LIKE 'NVFP4%' THEN 'nvfp4'
             WHEN page.precision LIKE '%FP8%' AND page.precision NOT LIKE 'fp16%' THEN 'fp8'
             WHEN page.precision IN ('fp16', 'fp16/bf16', 'amp') THEN 'mixed'
             -- autocast leaves parameters and gradients in float32 (as `peaks` has them)
             -- and since its commit 12e75ccc neuron_sp converts larger models whole
             WHEN page.source LIKE '%benchmark_results_20260427%' THEN 'bf16-pure'
             WHEN page.precision = 'bf16 autocast' THEN 'bf16-fsdp'
             -- torchtitan's parameters and gradients at rest, and its reduce-scatters, are float32
             WHEN page.source_id IN ('torchtitan', 'torchao') THEN 'bf16-fsdp'
             ELSE 'bf16' END AS numbers,
        CASE WHEN page.source_id = 'megatron_lm' AND page.tp = '' AND page.other LIKE 'model_parallel=%'
             THEN min(8, CAST(substr(page.other, 16) AS INTEGER)) 
             WHEN page.tp = '' AND early.tp THEN early.tp WHEN misprinted THEN 1 ELSE max(1, CAST(page.tp AS INTEGER)) END AS tps,
        CASE WHEN page.source_id = 'megatron_lm' AND page.pp = '' AND page.other LIKE 'model_parallel=%'
             THEN max(1, CAST(substr(page.other, 16) AS INTEGER) / 8) 
             WHEN page.tp = '' AND early.tp THEN early.pp WHEN misprinted THEN 4 ELSE max(1, CAST(page.pp AS INTEGER)) END AS pps,
        max(1, CAST(page.cp AS INTEGER)) AS cps, CASE WHEN page.source_id = 'nemo_launcher' AND (page.pp > '1' OR early.pp > 1 OR misprinted)
             THEN CASE page.model WHEN 'LLAMA2-70B' THEN 20 WHEN 'LLAMA2-13B' THEN 10 WHEN 'LLAMA3-70B' THEN 10 ELSE 1 END
             ELSE max(1, CAST(page.vp AS INTEGER)) END AS vps, CASE WHEN page.model = 'GPT-OSS 120B' THEN 64 ELSE max(1, CAST(page.ep AS INTEGER)) END AS eps, -- its recipe's
        CAST(page.n_gpus AS INTEGER) AS n,
        -- the script of neuron_sp exchanges parameters and states after its steps; its DDP runs, without no_sync, exchange gradients in each
        -- micro-batch beside the backward, for which one exchange after all stands
        CASE WHEN page.source_id IN ('megatron_bridge', 'dgxc_benchmarking', 'nemo_docs', 'nemo_launcher', 'automodel', 'fms_fsdp', 'torchtitan',
                 'torchao', 'primus', 'colossalai', 'flash_attention') OR page.other LIKE '%overlap of DP%' THEN 'flow' END AS fidelity,
        CASE WHEN page.source_id = 'fms_fsdp' THEN CASE WHEN page.other LIKE '%no compile%' THEN 'fsdp-fms' ELSE 'fsdp-compiled' END
             -- the recipes of its page of performance do not compile
             WHEN page.source_id = 'torchtitan' AND page.other NOT LIKE '%compile%' THEN 'fsdp'
             WHEN page.source_id = 'megatron_lm' AND page.gpu LIKE 'A100%' THEN 'megatron-2021'
             WHEN page.other LIKE '%FlagScale%' THEN 'flagscale' WHEN page.model LIKE 'Qwen1.5-MoE%' THEN 'megatron'
             WHEN page.precision = 'bf16 autocast' THEN 'ddp-autocast'
             WHEN page.other LIKE '%PaddleNLP%' THEN CASE page.gpu WHEN 'A100-40GB' THEN 'paddle-unfused' ELSE 'paddle' END -- use_fused_rms_norm of its page
             WHEN page.model = 'Baichuan2-13B' THEN 'deepspeed-2'
             WHEN page.model = 'GPT3-175B' AND page.source_id = 'nemo_launcher' THEN 'nemo' -- MLPerf's run
             WHEN page.model = 'LLAMA2-7B (long sequence)' THEN 'megatron-2024'
             WHEN page.source_id IN ('nemo_docs', 'nemo_launcher') THEN 'nemo-2024'
             -- moe_a2a_overlap without CUDA graphs, in the recipes of 0.2 to 0.4 (25.11 to 26.04); those of 26.02.01 have it for the largest alone
             WHEN page.model LIKE 'Qwen3%' AND page.other NOT LIKE 'release=25.09%' AND (page.gpu = 'H100' AND page.model = 'Qwen3_235B_a22B'
                 OR page.gpu = 'H100' AND (page.other LIKE 'release=25.11%' OR page.other = 'release=26.02')
                 OR page.gpu = 'B300' AND page.model = 'Qwen3_235B_a22B' AND page.other = 'release=26.02')
             THEN 'nemo-overlap'
             -- recipes of 0.1.0 to 0.4.0 without HybridEP in which Python launches the experts
             WHEN page.source_id = 'megatron_bridge' AND page.gpu = 'H100' AND page.model LIKE 'Qwen3%' AND page.other LIKE 'release=25.09%'
                 OR page.gpu = 'B200' AND page.other LIKE 'release=25.11%' AND page.model IN ('Qwen3_30B_a3B', 'DeepSeekV3')
                 OR page.gpu = 'B200' AND page.other LIKE 'release=25.09%' AND page.model = 'DeepSeekV3'
                 OR page.gpu = 'B200' AND page.other = 'release=26.02' AND page.model = 'Qwen3_30B_a3B'
                 OR page.gpu = 'B300' AND page.other IN ('release=26.02.01', 'release=26.04') AND page.model = 'Qwen3_235B_a22B'
             THEN 'nemo-host'
             -- cuda_graph_impl=full_iteration and fp8_dot_product_attention since 0.5.0
             WHEN (page.other LIKE 'release=26.06%' OR page.other LIKE 'release=26.08%') AND (page.gpu IN ('GB200', 'GB300', 'B300') AND page.model LIKE 'Qwen3%'
                 OR page.gpu = 'GB300' AND page.model = 'DeepSeekV3') THEN 'nemo-graphs'
             -- cutedsl_fused_grouped_mlp came with 0.5.0 (26.06), but not in the recipes of Kimi K2, nor on B300 in that of DeepSeek-V3 (0.5.1)
             WHEN page.other LIKE 'release=25.09%' OR (page.gpu <> 'H100' AND (page.other LIKE 'release=25.%' OR page.other LIKE 'release=26.02%' OR page.other LIKE 'release=26.04%'
                 OR page.model = 'Kimi_K2' OR (page.model = 'DeepSeekV3' AND page.gpu = 'B300' AND page.other = 'release=26.06')))
             THEN 'nemo-2025'
             ELSE stack.software END AS software,
        -- Gb/s of a machine's ports in all, where the page says so
        CASE WHEN page.other LIKE '%net=%' THEN CAST(substr(page.other, instr(page.other, 'net=') + 4) AS INTEGER) END AS net,
        -- forwards that are computed again: hardware FLOPs count them, model FLOPs do not
        CASE WHEN page.other LIKE '%;hfu=%' AND page.recompute LIKE 'selective%' THEN 3 * (CAST(substr(page.other, instr(page.other, 'hfu=') + 4) AS REAL) / page.mfu - 1)
             WHEN page.recompute = 'selective layer' THEN 0.5 END AS again,
        CAST(page.model_tflops_per_gpu AS REAL) AS tflops,
        CASE WHEN page.source_id LIKE 'bigscience%' AND page.hidden = '' THEN 8192 ELSE CAST(page.hidden AS INTEGER) END AS width,
        CASE WHEN page.source_id = 'bigscience_tr11' THEN 250880 WHEN page.source_id = 'megatron_lm' THEN 51200 ELSE 50257 END AS words,
        CAST(substr(page.other, instr(page.other, 'hw_tflops=') + 10) AS REAL) AS hw_tflops
    FROM (SELECT *, source_id = 'nemo_launcher' AND model = 'LLAMA2-13B' AND other LIKE '%2024-04%' AS misprinted FROM page) AS page LEFT JOIN model ON model.name = page.model LEFT JOIN gpu ON gpu.name = page.gpu LEFT JOIN stack ON stack.source = page.source_id
        LEFT JOIN early ON early.model = page.model AND page.source_id = 'nemo_launcher' LEFT JOIN counts ON counts.name = page.model
),
-- Experts that are shared among GPUs are whole there
shared AS (
    SELECT *, CASE WHEN eps > n / (tps * pps * cps) AND eps <= n / (pps * cps) AND cps > 1 THEN 1 ELSE tps END AS tp_used,
        CASE WHEN tps > 1 AND cps = 1 AND eps > 1 AND eps % tps = 0 THEN ',etp=1' ELSE '' END AS whole FROM trial
),
-- A micro-batch that is not given has 8,192 tokens, as most of the given ones have, if the batch of a replica can be divided so
cut AS (
    SELECT *, n / (tp_used * pps * cps) AS dps,
        CASE WHEN mbs <> '' THEN max(1, CAST(mbs AS INTEGER)) WHEN gbs = '' OR seq = '' THEN 1
             WHEN CAST(gbs AS INTEGER) / max(1, n / (tp_used * pps * cps)) % max(1, 8192 / CAST(seq AS INTEGER)) = 0 THEN max(1, 8192 / CAST(seq AS INTEGER))
             WHEN CAST(gbs AS INTEGER) / max(1, n / (tp_used * pps * cps)) % 2 = 0 THEN 2 ELSE 1 END AS micro
    FROM shared
),
counted AS (
    SELECT *,
        CASE WHEN gbs = '' THEN micro * dps ELSE CAST(gbs AS INTEGER) END AS batch,
        CASE WHEN layers = '' THEN CAST(round((CAST(params AS REAL) - words * width) / (12.0 * width * width)) AS INTEGER) ELSE CAST(layers AS INTEGER) END AS depth,
        CASE WHEN fsdp LIKE 'zero1%' THEN 1 WHEN fsdp LIKE 'zero2%' THEN 2 WHEN fsdp LIKE 'zero3%' THEN 3 WHEN CAST(fsdp AS INTEGER) > 1 THEN 3
             -- the recipes of these pages divide optimizer states (use_distributed_optimizer)
             WHEN source_id IN ('megatron_bridge', 'dgxc_benchmarking', 'nemo_docs', 'nemo_launcher') THEN 1 ELSE 0 END AS stage
    FROM cut
),
said AS (
    SELECT *,
        CASE
            WHEN model LIKE 'Nemotron V3%' THEN 'the model is not published whole'
            WHEN model LIKE 'DeepSeek%V4%' THEN 'the model''s attention is not known'
            WHEN source_id = 'hexiscale' THEN 'no batch and no plan are published'
            WHEN model = 'Llama4-Scout' THEN 'no plan is published'
            WHEN other LIKE '%Full Offload%' THEN 'the memory and links of the hosts that keep its states are not published'
            WHEN tokens_per_s_per_gpu = '' AND step_s = '' AND source_id <> 'megatron_lm' AND (tflops = 0 OR active IS NULL) THEN 'no time is published'
            WHEN mfu = '' AND hw_tflops = 0 AND tflops = 0 AND tokens_per_s_per_gpu = '' AND step_s = '' THEN 'no time is published'
            WHEN mixed = 0 AND device IS NULL THEN 'no data sheet of the GPU'
        END AS reason
    FROM (SELECT *, gpu LIKE '%+%' AS mixed,
            -- activations of these runs are 2 to 10 times what their GPUs have left
            source_id = 'colossalai' OR model = 'Baichuan2-13B' AS crowded,
            -- Jean Zay has 4 Omni-Path links of 100 Gb/s a machine, and its 8 GPUs are two boards of four with four NVLinks between two GPUs
            -- (Le Scao et al. 2022, BLOOM, Sec. 3.2 and model card); between the boards each two GPUs are taken to share 16 lanes of PCIe 4.0, 24 GB/s
            CASE source_id WHEN 'bigscience_tr11' THEN 'peers: 0-1x4 0-2x4 0-3x4 1-2x4 1-3x4 2-3x4 4-5x4 4-6x4 4-7x4 5-6x4 5-7x4 6-7x4,'
                || ' peer: nvlink3, across: {latency: 10 us, bandwidth: 48 GB/s}, ' ELSE '' END AS within,
            CASE source_id WHEN 'bigscience_tr11' THEN 'ib-edr' ELSE nic END AS port,
            CASE WHEN source_id = 'bigscience_tr11' THEN 4 WHEN net THEN net / CASE nic WHEN 'ib-hdr' THEN 200 WHEN 'ib-ndr' THEN 400 END ELSE nics END AS ports FROM counted)
)
SELECT
    CASE WHEN fit = 1 OR model IN ('GPT-200B-h14400', 'GPT-194B-h14400', 'GPT-20B-h14400-l8', 'GPT-182B-h13312-l84', 'GPT-39B', 'GPT-3.6B (A100)')
         THEN 'calibration' ELSE 'test' END AS split,
    source_id || ', ' || model || ', ' || n || ' x ' || gpu || ', ' || precision || ', batch ' || batch || ' x ' || seq AS contest,
    source_id || ', ' || model || ', ' || gpu AS "group",
    CASE WHEN family IS NULL
         THEN 'gpt2:dropout=0.1,layers=' || depth || ',hidden=' || width || ',ffn=' || (4 * width) || ',vocab=' || words || ',heads='
            || CASE WHEN other LIKE 'heads=_%' AND CAST(substr(other, 7) AS INTEGER) > 0 THEN CAST(substr(other, 7) AS INTEGER) WHEN source_id = 'megatron_lm' THEN CASE WHEN width < 4096 THEN width / 96 ELSE width / 128 END WHEN width % 96 = 0 THEN 96 ELSE 32 END
         ELSE family || ':' || dims || CASE dims WHEN '' THEN '' ELSE ',' END END
        || CASE WHEN family IS NULL THEN ',' ELSE '' END
        -- its recipes predict two tokens (mtp_num_layers), but for a release that says so
        || CASE WHEN model = 'DeepSeekV3' AND other NOT LIKE '%w/o MTP%' THEN 'mtp=1,' ELSE '' END
        || 'seq=' || seq || ',global_batch=' || batch || ',precision=' || numbers AS model,
    'manual' AS planner,
    'pp=' || pps || ',tp=' || tp_used || ',micro_batch=' || micro
        || CASE WHEN vps > 1 THEN ',schedule=interleaved,virtual_stages=' || vps ELSE '' END
        || CASE WHEN cps > 1 THEN ',cp=' || cps || CASE WHEN software LIKE 'nemo%' OR software LIKE 'megatron%' THEN ',cp_comm=p2p' ELSE '' END ELSE '' END || CASE WHEN eps > 1 THEN ',ep=' || eps || whole ELSE '' END
        || CASE WHEN sequence_parallel AND tp_used > 1 THEN ',sequence_parallel=on' ELSE '' END
        || CASE WHEN again < 0.95 THEN ',recompute=full@1-' || CAST(round(again * CAST(substr(dims, 8) AS INTEGER)) AS INTEGER)
                WHEN recompute = 'selective op' OR (source_id = 'torchtitan' AND recompute = '') THEN ',recompute=alternate'
                WHEN recompute LIKE 'selective%' AND again IS NULL THEN ',recompute=selective'
                WHEN recompute = 'full' OR model = 'Kimi K2' OR again >= 0.95 OR crowded THEN ',recompute=full'
                -- recompute_modules of Megatron-Bridge's recipes; on GB300 none since June 2026
                WHEN model IN ('DeepSeekV3', 'Kimi_K2') AND NOT (gpu = 'GB300' AND micro = 1 AND software LIKE 'nemo%' AND software <> 'nemo-2025')
                THEN ',recompute=mla_up_proj' || CASE gpu WHEN 'H100' THEN '+mlp' ELSE '' END ELSE '' END
        || CASE WHEN stage > 0 AND dps > 1 THEN ',zero=' || stage ELSE '' END
        || CASE WHEN other LIKE '%sync periods %=%' THEN ',sync_every=' || CAST(substr(other, instr(other, 'Kx/Ku/Kv=') + 9) AS INTEGER) ELSE '' END
        || CASE WHEN fidelity = 'flow' THEN ',network=crossbar,streams=2' ELSE '' END
        -- these recipes set moe_flex_dispatcher_backend (HybridEP), which sends a token to a machine once
        || CASE WHEN model = 'DeepSeekV3' AND eps > 1 THEN ',dispatcher=once' ELSE '' END AS options, fidelity, software,
    CASE WHEN mixed THEN '{name: pcie, machines: [{device: rtx-a6000, gpus: 2, inner: pcie4, nic: pcie4}, {device: h100-nvl, gpus: 1, nic: pcie5}]}'
         ELSE '{name: ' || port || ' x ' || ports || ', machines: [{device: ' || CASE WHEN source_id = 'torchtitan' AND gpu = 'H100' THEN 'h100-hbm2e' ELSE device END || ', gpus: ' || min(n, of_machine) || ', count: '
            || max(1, n / of_machine) || ', ' || within || 'nic: ' || port || ', nics: ' || ports || '}]}' END AS cluster,
    CASE WHEN tokens_per_s_per_gpu = '' AND step_s <> '' THEN CAST(step_s AS REAL)
         WHEN tokens_per_s_per_gpu = '' AND active > 0 THEN batch * seq * (6 * active + 12.0 * deep * wide * seq) / (n * tflops * 1e12)
         -- FLOPs of an iteration by Narayanan et al. 2021, Eq. 3; of those without recomputation 3/4
         WHEN tokens_per_s_per_gpu = '' AND hw_tflops > 0 THEN 96.0 * batch * seq * depth * width * width * (1 + seq / (6.0 * width) + words / (16.0 * depth * width)) / (n * hw_tflops * 1e12)
         WHEN tokens_per_s_per_gpu = '' THEN 72.0 * batch * seq * depth * width * width * (1 + seq / (6.0 * width) + 131072 / (12.0 * depth * width)) / (n * mfu * 989.4e12)
    END AS measured_s,
    CASE WHEN tokens_per_s_per_gpu <> '' THEN CAST(tokens_per_s_per_gpu AS REAL) END AS tokens_per_s_per_gpu,
    CASE WHEN peak_gib <> '' THEN CAST(peak_gib AS REAL) END AS measured_gib, 0 AS failed, 1 AS steady, reason
FROM said
