torchrun --nproc_per_node=4 train.py \
    --model_name_or_path some/model-8b \
    --bf16 True \
    --output_dir out \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 16 \
    --fsdp "full_shard auto_wrap offload" \
    --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer \
    --model_max_length 2048 \
    --gradient_checkpointing True
