set -x
read -r -d '' training <<EOF
openrlhf.cli.train_sft \
   --data.max_len 2048 \
   --data.dataset some/data \
   --train.batch_size 256 \
   --train.micro_batch_size 2 \
   --model.model_name_or_path some/model-8b \
   --ckpt.output_dir ./out \
   --ds.zero_stage 2 \
   --ds.param_dtype bf16 \
   --ds.packing_samples \
   --adam.lr 5e-6 \
   --model.gradient_checkpointing_enable
EOF
deepspeed --module $training
