"""Fine-tunes a model on chats.

    torchrun --nproc_per_node 8 hf_sft.py --model_name_or_path meta-llama/Llama-3.1-8B
"""
import os

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

MODEL = "meta-llama/Llama-3.1-8B"
GLOBAL_BATCH = 128
MICRO_BATCH = 2  # fits with checkpointing
GPUS = 8


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="right")
    dataset = load_dataset("HuggingFaceH4/ultrachat_200k", split="train_sft")
    training_args = SFTConfig(
        output_dir="./sft-llama",
        num_train_epochs=1,
        per_device_train_batch_size=MICRO_BATCH,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=GLOBAL_BATCH // (MICRO_BATCH * GPUS),
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        max_length=4_096,
        packing=True,
        bf16=True,
        tf32=True,
        learning_rate=2e-5,
        lr_scheduler_type="cosine",
        warmup_ratio=0.03,
        optim="adamw_torch_fused",
        fsdp=["full_shard", "auto_wrap"],
        fsdp_config={
            "fsdp_version": 2,
            "reshard_after_forward": True,
            "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"],
        },
        logging_steps=10,
        save_strategy="epoch",
        report_to=["wandb"],
        seed=int(os.environ.get("SEED", 42)),
        dataloader_num_workers=os.cpu_count(),
    )
    model = AutoModelForCausalLM.from_pretrained(
        MODEL, torch_dtype=torch.bfloat16, attn_implementation="flash_attention_2")
    trainer = SFTTrainer(model=model, args=training_args, train_dataset=dataset, processing_class=tokenizer)
    trainer.train()


if __name__ == "__main__":
    main()
