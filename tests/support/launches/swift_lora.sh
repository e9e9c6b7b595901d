# Environment variables stand before the command, on lines of their own.
gpus=4
CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=$gpus \
swift sft \
    --model some/model-8b \
    --tuner_type lora \
    --torch_dtype bfloat16 \
    --per_device_train_batch_size 1 \
    --lora_rank 16 \
    --target_modules all-linear \
    --gradient_accumulation_steps $(expr 32 / $gpus) \
    --max_length 2048 \
    --output_dir out \
    --deepspeed zero2_offload
