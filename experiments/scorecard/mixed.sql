-- GPT of width 2048 and 768 on V100 in unlike machines and networks: DT-FM's measured runs of Megatron-LM, DeepSpeed's pipeline and GPipe
--
-- Rows that the collection calls weak are left out. The task is a classification: 64 words stand for the vocabulary without a head.
-- Machines of p3.16xlarge are a hybrid cube mesh. Runs between regions, and on networks whose delay was shaped, are left out: their
-- networks are not of one speed. Nothing is for calibration. Of DS3Lab/Decentralized_FM_alpha (cb03043), where the collection is silent or
-- writes the 1 of Megatron's scripts: the order of machines in case 2 (scripts/aws_run_megatron_heter_gpu_training.sh and
-- ds_hostnames_shuffled); DeepSpeed's 4 samples a micro-batch (scripts/local_run_deepspeed_on_rank0.sh; for ZeRO-3,
-- ZeRO_benchmark/zero_dp_s3_config.json of 335b5204); no dropout and checkpoints in the model of all but Megatron (modules/gpt_modules.py).
WITH trial AS (
    SELECT *, CAST(substr(params_dims, 8) AS INTEGER) AS layers, CAST(substr(params_dims, instr(params_dims, 'hidden=') + 7) AS INTEGER) AS hidden, CAST(global_batch AS INTEGER) AS batch,
        CAST(substr(strategy, instr(strategy, 'pp=') + 3) AS INTEGER) AS pp,
        CASE WHEN strategy LIKE '%tp=%' THEN CAST(substr(strategy, instr(strategy, 'tp=') + 3) AS INTEGER) ELSE 1 END AS tp,
        CAST(gpus AS INTEGER) AS n, CASE WHEN strategy LIKE 'DeepSpeed%' THEN 4 ELSE max(1, CAST(micro_batch AS INTEGER)) END AS micro,
        CASE WHEN strategy LIKE 'Megatron%' THEN 'megatron-2021' WHEN strategy LIKE 'DeepSpeed%' THEN 'deepspeed' ELSE 'pytorch-1' END AS software
    FROM mixed_trials WHERE source = 'decentralized_fm' AND note NOT LIKE '%weak%' AND gpus LIKE '%v100%'
),
placed AS (
    SELECT *, -- case 2: machines of four and of single GPUs by rank
        replace(replace(CASE WHEN strategy LIKE 'DeepSpeed%' THEN 'FSFFSSSFSSFSSSSSSFSSSSSSSSSFFSSSSSSSSSSS' ELSE replace('........', '.', 'SSSSF') END,
            'F', '{device: v100-16g, gpus: 4, nic: eth-10},'), 'S', '{device: v100-16g, gpus: 1, nic: eth-10},') AS spot
    FROM trial
),
said AS (
    SELECT *,
        CASE WHEN network LIKE 'NVLink inside; 25 Gb/s%' THEN '{name: case 1, machines: [{device: v100-16g, gpus: 8, count: ' || (n / 8) || ', nic: eth-25}]}'
             WHEN network = 'NVLink inside' THEN '{name: one, machines: [{device: v100-16g, gpus: 8, nic: eth-25}]}'
             WHEN network LIKE 'NVLink inside the 4-GPU%' THEN '{name: case 2, machines: [' || rtrim(spot, ',') || ']}'
             WHEN network LIKE '10 Gb/s%' THEN '{name: cloud, machines: [{device: v100-16g, gpus: 1, count: ' || n || ', nic: eth-10}]}' END AS cluster,
        CASE WHEN network LIKE 'tc-shaped%' OR network LIKE 'delay%' OR network LIKE 'inside:%' THEN 'the network is not of one speed'
             WHEN strategy LIKE '%parameter server%' THEN 'gradients go through parameter servers'
             WHEN strategy LIKE '%offload%' OR precision LIKE '%offload%' THEN 'states are offloaded to the host'
             WHEN layers = 0 OR batch = 0 THEN 'no layers or no batch are published' END AS reason
    FROM placed
)
SELECT 'test' AS split, network || ', ' || layers || ' layers, batch ' || batch || ', ' || n || ' GPUs' AS contest,
    network || ', ' || layers AS "group",
    'gpt2:' || CASE software WHEN 'megatron-2021' THEN 'dropout=0.1,' ELSE '' END || 'layers=' || layers || ',hidden=' || hidden || ',heads=' || CASE hidden WHEN 768 THEN 12 ELSE 16 END || ',ffn=' || (4 * hidden) || ',seq=2048,vocab=64,optimizer=sgd,global_batch=' || batch
        || ',precision=' || CASE WHEN precision LIKE 'fp32%' THEN 'single' ELSE 'mixed' END AS model,
    'manual' AS planner,
    CASE WHEN strategy LIKE '%ZeRO-3%' THEN 'zero=3,micro_batch=4'
         ELSE 'pp=' || pp || ',tp=' || tp || ',micro_batch=' || micro END
        || CASE WHEN strategy LIKE '%GPipe%' THEN ',schedule=gpipe' ELSE '' END
        || CASE WHEN strategy LIKE '%activation recomputation%' OR software != 'megatron-2021' THEN ',recompute=full' ELSE '' END AS options,
    software, NULL AS fidelity, cluster, CAST(step_s AS REAL) AS measured_s, NULL AS measured_gib, 0 AS failed, 1 AS steady,
    coalesce(reason, CASE WHEN cluster IS NULL THEN 'the network is not of one speed' END) AS reason
FROM said
