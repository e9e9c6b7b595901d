import nemo_run as run
from nemo.collections import llm
import nemo.lightning as nl
import torch

def configure_recipe():
    recipe = llm.llama31_70b.pretrain_recipe(
        dir="/checkpoints/llama", name="llama31_70b", num_nodes=4, num_gpus_per_node=8)
    recipe.trainer.strategy = run.Config(
        nl.MegatronStrategy,
        tensor_model_parallel_size=4,
        pipeline_model_parallel_size=4,
        pipeline_dtype=torch.bfloat16,
        virtual_pipeline_model_parallel_size=5,
        context_parallel_size=1,
        sequence_parallel=True,
        gradient_as_bucket_view=True,
        ddp=run.Config(DistributedDataParallelConfig, use_distributed_optimizer=True, overlap_grad_reduce=True),
    )
    recipe.data.global_batch_size = 128
    recipe.data.micro_batch_size = 1
    recipe.data.seq_length = 8192
    recipe.trainer.max_steps = 100
    recipe.model.config.num_layers = 80
    return recipe

def run_pretraining():
    recipe = configure_recipe()
    executor = run.LocalExecutor(ntasks_per_node=8, launcher="torchrun")
    run.run(recipe, executor=executor)
