from transformers import Trainer, TrainingArguments
ds = {"a": 1}
trainer = Trainer(model, TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, bf16=True,
    deepspeed={"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": "auto"},
               "train_micro_batch_size_per_gpu": "auto"},
), train_dataset=data)
