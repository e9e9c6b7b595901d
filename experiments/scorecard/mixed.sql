-- GPT of width 2048 and 768 on V100 in unlike machines and networks: DT-FM's measured runs of Megatron-LM, DeepSpeed's pipeline and GPipe
--
-- Rows that the collection calls weak are left out. The task is a classification: 64 words stand for the vocabulary without a head.
-- Machines of p3.16xlarge are a hybrid cube mesh. In case 2 the machines of 4 GPUs come first. Runs between regions, and on networks
-- whose delay was shaped, are left out: their networks are not of one speed. Nothing is for calibration. ZeRO-3 ran 4 samples a
-- micro-batch: train_micro_batch_size_per_gpu in ZeRO_benchmark/zero_dp_s3_config.json of DS3Lab/Decentralized_FM_alpha (335b5204);
-- the collection writes the 1 of Megatron's scripts.
WITH trial AS (
    SELECT *, CAST(substr(params_dims, 8) AS INTEGER) AS layers, CAST(substr(params_dims, instr(params_dims, 'hidden=') + 7) AS INTEGER) AS hidden, CAST(global_batch AS INTEGER) AS batch,
        CAST(substr(strategy, instr(strategy, 'pp=') + 3) AS INTEGER) AS pp,
        CASE WHEN strategy LIKE '%tp=%' THEN CAST(substr(strategy, instr(strategy, 'tp=') + 3) AS INTEGER) ELSE 1 END AS tp,
        CAST(gpus AS INTEGER) AS n, max(1, CAST(micro_batch AS INTEGER)) AS micro,
        CASE WHEN strategy LIKE 'Megatron%' THEN 'megatron-2021' WHEN strategy LIKE 'DeepSpeed%' THEN 'deepspeed' ELSE 'pytorch-1' END AS software
    FROM mixed_trials WHERE source = 'decentralized_fm' AND note NOT LIKE '%weak%' AND gpus LIKE '%v100%'
),
said AS (
    SELECT *,
        CASE WHEN network LIKE 'NVLink inside; 25 Gb/s%' THEN '{name: case 1, machines: [{device: v100-16g, gpus: 8, count: ' || (n / 8) || ', nic: eth-25}]}'
             WHEN network = 'NVLink inside' THEN '{name: one, machines: [{device: v100-16g, gpus: 8, nic: eth-25}]}'
             WHEN network LIKE 'NVLink inside the 4-GPU%' THEN '{name: case 2, machines: [{device: v100-16g, gpus: 4, count: 8, nic: eth-10}, {device: v100-16g, gpus: 1, count: 32, nic: eth-10}]}'
             WHEN network LIKE '10 Gb/s%' THEN '{name: cloud, machines: [{device: v100-16g, gpus: 1, count: ' || n || ', nic: eth-10}]}' END AS cluster,
        CASE WHEN network LIKE 'tc-shaped%' OR network LIKE 'delay%' OR network LIKE 'inside:%' THEN 'the network is not of one speed'
             WHEN strategy LIKE '%parameter server%' THEN 'gradients go through parameter servers'
             WHEN strategy LIKE '%offload%' OR precision LIKE '%offload%' THEN 'states are offloaded to the host'
             WHEN layers = 0 OR batch = 0 THEN 'no layers or no batch are published' END AS reason
    FROM trial
)
SELECT 'test' AS split, network || ', ' || layers || ' layers, batch ' || batch || ', ' || n || ' GPUs' AS contest,
    network || ', ' || layers AS "group",
    'gpt2:dropout=0.1,layers=' || layers || ',hidden=' || hidden || ',heads=' || CASE hidden WHEN 768 THEN 12 ELSE 16 END || ',ffn=' || (4 * hidden) || ',seq=2048,vocab=64,optimizer=sgd,global_batch=' || batch
        || ',precision=' || CASE WHEN precision LIKE 'fp32%' THEN 'single' ELSE 'mixed' END AS model,
    'manual' AS planner,
    CASE WHEN strategy LIKE '%ZeRO-3%' THEN 'zero=3,micro_batch=4'
         ELSE 'pp=' || pp || ',tp=' || tp || ',micro_batch=' || micro END
        || CASE WHEN strategy LIKE '%GPipe%' THEN ',schedule=gpipe' ELSE '' END
        || CASE WHEN strategy LIKE '%activation recomputation%' OR strategy LIKE 'DeepSpeed%' THEN ',recompute=full' ELSE '' END AS options,
    software, NULL AS fidelity, cluster, CAST(step_s AS REAL) AS measured_s, NULL AS measured_gib, 0 AS failed, 1 AS steady,
    coalesce(reason, CASE WHEN cluster IS NULL THEN 'the network is not of one speed' END) AS reason
FROM said
