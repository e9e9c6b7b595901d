NPROC_PER_NODE=8 \
megatron sft \
    --model some/model-8b \
    --tensor_model_parallel_size 2 \
    --sequence_parallel true \
    --micro_batch_size 1 \
    --global_batch_size 32 \
    --max_length 4096 \
    --optimizer_cpu_offload true \
    --use_precision_aware_optimizer true \
    --optimizer_offload_fraction 1
