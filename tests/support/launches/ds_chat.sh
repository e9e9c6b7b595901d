#!/bin/bash
# One step of fine-tuning as DeepSpeed-Chat starts it.
OUT=$1
STAGE=$2
if [ "$STAGE" == "" ]; then
    STAGE=3
fi
deepspeed main.py \
   --model_name_or_path some/model-8b \
   --data_split 1,0,0 \
   --per_device_train_batch_size 4 \
   --per_device_eval_batch_size 4 \
   --max_seq_len 1024 \
   --learning_rate 1e-5 \
   --gradient_accumulation_steps 2 \
   --num_warmup_steps 0 \
   --gradient_checkpointing \
   --dtype bf16 \
   --zero_stage $STAGE \
   --offload \
   --deepspeed \
   --output_dir $OUT \
   &> $OUT/log
