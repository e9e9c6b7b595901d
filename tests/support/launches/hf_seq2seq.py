import argparse
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
training_args = Seq2SeqTrainingArguments(
    args.output, per_device_train_batch_size=8, gradient_accumulation_steps=args.steps,
    bf16=args.bf16, fp16=not args.bf16, num_train_epochs=args.epochs,
    predict_with_generate=True, learning_rate=5e-5, eval_strategy="epoch",
    deepspeed="ds_zero3.json", push_to_hub=False, **extra)
trainer = Seq2SeqTrainer(model=m, args=training_args)
