#!/usr/bin/env bash
# 1024 A100 of 80 GB: 128 hosts
set -euo pipefail
NODES=${NODES:-128}
GPUS=8
MP=8
BS=8                    # per model-parallel group
UPDATE_FREQ=1
DATA=${DATA:?a folder of shards}

srun --nodes=$NODES --ntasks-per-node=$GPUS --gpus-per-node=$GPUS \
  python -m metaseq.cli.train $DATA \
    --task streaming_language_modeling --sample-break-mode none \
    --arch transformer_lm_megatron --criterion vocab_parallel_cross_entropy \
    --decoder-layers 96 --decoder-embed-dim 12288 --decoder-ffn-embed-dim 49152 --decoder-attention-heads 96 \
    --tokens-per-sample 2048 --batch-size $BS --update-freq $UPDATE_FREQ \
    --model-parallel-size $MP --distributed-world-size $((NODES * GPUS)) --distributed-port 13000 \
    --ddp-backend fully_sharded --no-reshard-after-forward --checkpoint-activations \
    --fp16 --memory-efficient-fp16 --fp16-init-scale 4 --threshold-loss-scale .25 \
    --optimizer adam --adam-betas "(0.9, 0.95)" --lr 1.2e-4 --clip-norm 1.0 \
    --max-update 143000 --save-dir ckpt --log-interval 1
