-- MPT of 125 million to 70 billion parameters under FSDP on 8 to 128 A100 of 40 GB, sequences of 512 to 65,536 tokens
--
-- Biases, norms with biases and learned positions: NumParams are those of GPT-2, to the last one (its head is the embedding). Nothing is for
-- calibration: each model and length is a group. Machines of 8 have 1600 Gb/s.
WITH dims(name, text) AS (
    VALUES
    ('125m', 'layers=12,hidden=768,heads=12,ffn=3072'), ('350m', 'layers=24,hidden=1024,heads=16,ffn=4096'),
    ('760m', 'layers=24,hidden=1536,heads=12,ffn=6144'), ('1b', 'layers=24,hidden=2048,heads=16,ffn=8192'),
    ('3b', 'layers=32,hidden=2560,heads=20,ffn=10240'), ('7b', 'layers=32,hidden=4096,heads=32,ffn=16384'),
    ('13b', 'layers=40,hidden=5120,heads=40,ffn=20480'), ('30b', 'layers=48,hidden=7168,heads=56,ffn=28672'),
    ('70b', 'layers=80,hidden=8192,heads=64,ffn=32768')
),
trial AS (
    SELECT *, CAST("# GPUs" AS INTEGER) AS n, CAST("SeqLen (T)" AS INTEGER) AS seq, CAST(GlobalBatchSize AS INTEGER) AS batch
    FROM llm_foundry_a100_40 JOIN dims ON dims.name = Model
)
SELECT 'test' AS split, Model || ', ' || seq || ' tokens, ' || n || ' GPUs, batch ' || batch || ', ' || MicroBatchSize AS contest,
    Model || ', ' || seq AS "group", 'gpt2:attention=fused,dropout=0,' || text || ',vocab=50368,seq=' || seq || ',global_batch=' || batch || ',precision=bf16' AS model,
    'manual' AS planner, 'zero=3,micro_batch=' || CAST(MicroBatchSize AS INTEGER)
        || CASE WHEN "Activation Checkpointing" LIKE 'T%' THEN ',recompute=full' ELSE '' END || ',network=crossbar,streams=2' AS options,
    'llm-foundry' AS software, 'flow' AS fidelity,
    '{name: ib-hdr x 8, machines: [{device: a100-40g, gpus: 8, count: ' || max(1, n / 8) || ', nic: ib-hdr, nics: 8}]}' AS cluster,
    CAST(iter_time_s_derived AS REAL) AS measured_s, NULL AS measured_gib, 0 AS failed, 1 AS steady, NULL AS reason
FROM trial
