#!/bin/bash
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-1}
TP=2; PP=2
export CUDA_DEVICE_MAX_CONNECTIONS=1
ARGS=(
    --num-layers 4 # all of them
    --seq-length 2
)
ARGS+=(--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py "${ARGS[@]}" \
    --global-batch-size $((NNODES * 8)) --micro-batch-size=1 --bf16 --lr 1e-4 \
    --recompute-granularity full --recompute-method block --recompute-num-layers 1 \
    --pipeline-model-parallel-layout 'Ett|(t)*2L'
