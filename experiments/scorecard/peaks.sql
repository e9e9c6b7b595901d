-- Peaks of memory: 149 published ones of pipelines, tensor and data parallelism, ZeRO and FSDP, V100 to B200
--
-- For `--plain`: nothing is fitted. Each source has the runtime that its framework is (data/runtimes), counted as the source measures: nvidia-smi sees
-- all of it, "reserved" and "allocated" what PyTorch's allocator has of the device and has given out. Where a page leaves something out, the default
-- of its framework is taken: torchtitan recomputes every second product and compiles; DeepSpeed's pipelines divide optimizer states. Layers
-- follow from the parameters where they are not given.
WITH models(name, dims) AS (
    VALUES
    ('Aquila2-7B', 'llama:layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=100008'),
    ('GPT3-6.7B', 'gpt2:attention=fused,dropout=0.1,layers=32,hidden=4096,heads=32,ffn=16384,vocab=50304'),
    ('GPT3-13B', 'gpt2:attention=fused,dropout=0.1,layers=40,hidden=5120,heads=40,ffn=20480,vocab=50304'),
    ('Llama1-7B', 'llama:layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocab=32000'),
    ('Llama1-13B', 'llama:layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000'),
    ('Baichuan2-13B', 'llama:layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13696,vocab=125696'),
    ('Qwen3-8B', 'llama:layers=36,hidden=4096,heads=32,kv_heads=8,ffn=12288,vocab=151936'),
    ('Qwen1.5-MoE-14B-A2.7B', 'mixtral:layers=24,hidden=2048,heads=16,kv_heads=16,ffn=1408,experts=64,top=8,vocab=151936'),
    ('Llama4-Scout-2layers', 'mixtral:layers=2,hidden=5120,heads=40,kv_heads=8,ffn=8192,experts=16,top=2,vocab=202048'),
    ('GPT2-700M', 'gpt2:attention=fused,layers=36,hidden=1280,heads=20,ffn=5120,vocab=50257'),
    ('GPT2-1.3B', 'gpt2:attention=fused,layers=24,hidden=2048,heads=16,ffn=8192,vocab=50257'),
    ('OPT-350', 'gpt2:dropout=0.1,layers=24,hidden=1024,heads=16,ffn=4096,vocab=50272'),
    ('GPT-NEO', 'gpt2:dropout=0.1,layers=32,hidden=2560,heads=20,ffn=10240,vocab=50257')
),
gpus(name, device, of_machine, nic) AS (
    VALUES
    ('A100-80GB', 'a100-80g', 8, 'ib-hdr'), ('A100-40GB', 'a100-40g', 8, 'ib-hdr'), ('A800-80GB', 'a800-80g', 8, 'ib-hdr'), ('H800-80GB', 'h800', 8, 'ib-ndr'),
    ('H200', 'h200', 8, 'ib-ndr'), ('B200', 'b200', 8, 'ib-ndr'), ('Blackwell-184GiB', 'b200', 8, 'ib-ndr'), ('V100-16GB', 'v100-16g', 8, 'ib-edr'),
    ('GH200', 'gh200', 4, 'eth-200'), ('2xRTX-A6000-48GB+1xH100-NVL-96GB', 'rtx-a6000', 3, 'eth-100')
),
-- The framework's runtime, the precision, and further keys of the strategy
sources(id, runtime, precision, further) AS (
    VALUES
    ('bigscience_tr11', 'megatron-deepspeed', 'mixed', ''), ('flagperf', 'flagscale', 'mixed-fp32-grads', ''), ('baichuan', 'deepspeed-2', 'bf16', ''),
    ('paddle', 'paddle', 'mixed', ''), ('colossalai', 'pytorch', 'bf16', ''), ('neuron_sp', 'ddp/allocated', 'bf16-fsdp', ''), ('torchtitan', 'fsdp/reserved', 'bf16-fsdp', ',recompute=alternate'),
    ('torchao', 'fsdp/reserved', 'bf16-fsdp', ''), ('dlperf', 'oneflow', 'mixed', ''), ('sailor', 'megatron-deepspeed', 'mixed', '')
),
page AS (
    SELECT * FROM modern_bigscience_tr11 UNION ALL SELECT * FROM modern_flagperf UNION ALL SELECT * FROM modern_colossalai
    UNION ALL SELECT * FROM modern_neuron_sp UNION ALL SELECT * FROM modern_torchtitan UNION ALL SELECT * FROM modern_torchao
),
run AS (
    SELECT CASE WHEN other LIKE '%PaddleNLP%' THEN 'paddle' WHEN model LIKE 'Baichuan%' THEN 'baichuan' ELSE source_id END AS source, model, gpu, CAST(n_gpus AS INTEGER) AS n, CAST(seq AS INTEGER) AS seq,
        CAST(gbs AS INTEGER) AS gbs, CAST(mbs AS INTEGER) AS mbs, CAST(tp AS INTEGER) AS tp, CAST(pp AS INTEGER) AS pp, max(1, CAST(ep AS INTEGER)) AS ep,
        CASE WHEN fsdp LIKE 'zero1%' OR source_id = 'flagperf' AND model = 'Aquila2-7B' THEN 1 WHEN fsdp LIKE 'zero2%' THEN 2 WHEN CAST(fsdp AS INTEGER) > 1 THEN 3 ELSE 0 END AS zero,
        recompute, '' AS cuts, layers, hidden, params, other, precision, CAST(step_s AS REAL) AS step_s, CAST(peak_gib AS REAL) AS peak
    FROM page WHERE peak_gib <> ''
    UNION ALL
    SELECT 'dlperf', params_dims, 'V100-16GB', n_gpus, seq, gbs, mbs, tp, pp, 1, 0, recompute, '', '', '', '', '', precision, step_s, CAST(peak_gib AS REAL)
    FROM dlperf_trials WHERE peak_gib <> ''
    UNION ALL
    SELECT 'sailor', model, 'GH200', 4 * pp * CAST(dp_per_stage AS INTEGER), 2048, gbs, mbs, 4, pp, 1, 0, '', layers_per_stage, '', '', '', '', '', measured_iter_s,
        measured_max_mem_bytes / 1073741824.0
    FROM sailor_validation_gh200
),
-- BLOOM's trials (tr11-176B-ml/chronicles-prequel.md). Those of 28 February have BF16_Optimizer ("from now on"), and the first and the last stage hold the
-- embedding in a layer's place; before, layers alone are divided (type:transformer), stages at the end get what is left, and embeddings come on top.
-- Where heads are not given there are 64 ("all", "above too"); the number of layers "had to be tweaked to fit PP".
places(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM places WHERE i < 23),
bloom AS (
    SELECT *, source = 'bigscience_tr11' AND other LIKE '%date=2022-02-28%' AS adds_floats,
        CASE layers WHEN '' THEN pp * CAST(round((CAST(params AS REAL) - 250880.0 * hidden) / (12.0 * hidden * hidden * pp)) AS INTEGER) ELSE CAST(layers AS INTEGER) END AS n_layers
    FROM run
),
laid AS (
    SELECT *, CASE WHEN source <> 'bigscience_tr11' OR adds_floats OR pp < 2 THEN cuts
        ELSE (SELECT group_concat(max(0, min((n_layers + pp - 1) / pp, n_layers - i * ((n_layers + pp - 1) / pp))) + (i = 0) + (i = pp - 1), '|') FROM places WHERE i < pp) END AS stages
    FROM bloom
),
said AS (
    SELECT run.*, run.n / (run.tp * run.pp) AS dp, CASE WHEN adds_floats THEN 'megatron-deepspeed-bf16' ELSE runtime END AS runtime, further, device, of_machine, nic,
        CASE WHEN adds_floats THEN 'bf16-fp32-grads' ELSE sources.precision END AS numbers,
        CASE WHEN source = 'bigscience_tr11'
             THEN 'gpt2:dropout=0.1,vocab=250880,layers=' || n_layers || ',hidden=' || hidden || ',ffn=' || (4 * hidden) || ',heads='
                || CASE WHEN CAST(substr(other, 7) AS INTEGER) > 0 THEN CAST(substr(other, 7) AS INTEGER) ELSE 64 END
             ELSE coalesce(dims, run.model) END AS text,
        CASE
            WHEN run.precision LIKE 'NVFP4%' THEN 'products of 4-bit numbers have no rate'
            WHEN other LIKE '%DESLOC%' THEN 'replicas exchange gradients every so many steps'
            WHEN run.model LIKE 'Qwen1.5-MoE%' THEN 'neither expert parallelism nor recomputation is published'
            WHEN source = 'colossalai' THEN 'neither micro-batch nor recomputation is published'
            WHEN source = 'dlperf' AND pp > 1 THEN 'how many micro-batches OneFlow keeps is not published'
            WHEN cuts <> '' AND CASE model WHEN 'OPT-350' THEN 26 ELSE 34 END <> (SELECT sum(value) FROM json_each('[' || replace(cuts, '|', ',') || ']')) THEN 'the stages have other layers than the model'
            WHEN EXISTS (SELECT 1 FROM run AS more WHERE more.source = 'bigscience_tr11' AND more.source = run.source AND more.model = run.model AND more.n = run.n AND more.tp = run.tp AND more.pp = run.pp
                         AND more.precision = run.precision AND more.mbs > run.mbs AND more.peak < run.peak) THEN 'a larger micro-batch is published with less memory'
            WHEN run.model = 'GPT2-1.3B' AND run.peak < 20 THEN 'the same run is published with 13.7 and 28.4 GiB'
        END AS reason
    FROM laid AS run LEFT JOIN models ON models.name = run.model LEFT JOIN gpus ON gpus.name = run.gpu LEFT JOIN sources ON sources.id = run.source
)
SELECT 'test' AS split, source || ', ' || model || ', ' || n || ' x ' || gpu || ', mbs ' || mbs || ', tp ' || tp || ', pp ' || pp || ', zero ' || zero || ' ' || gbs || recompute AS contest,
    source || model AS "group",
    text || ',seq=' || seq || ',global_batch=' || gbs || ',precision=' || numbers AS model, 'manual' AS planner,
    'pp=' || pp || ',tp=' || tp || ',micro_batch=' || mbs || CASE WHEN ep > 1 THEN ',ep=' || ep ELSE '' END
        || CASE WHEN stages <> '' AND pp > 1 THEN ',layers=' || replace(replace(stages, ' ', ''), '|', ' ') ELSE '' END
        || CASE WHEN recompute LIKE 'full%' THEN ',recompute=full' ELSE '' END || CASE WHEN zero > 0 AND dp > 1 THEN ',zero=' || zero ELSE '' END
        || ',runtime=' || runtime || further AS options,
    '{name: x, machines: [{device: ' || device || ', gpus: ' || min(n, of_machine) || ', count: ' || max(1, n / of_machine) || ', nic: ' || nic || '}]}' AS cluster,
    step_s AS measured_s, peak AS measured_gib, 0 AS failed, 1 AS steady, reason
FROM said
