import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.parallelism_config import ParallelismConfig
from torch.distributed.fsdp import MixedPrecisionPolicy, ShardingStrategy

def main():
    pc = ParallelismConfig(dp_replicate_size=2, dp_shard_size=4, tp_size=2)
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        reshard_after_forward=True,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
        activation_checkpointing=True,
        cpu_offload=False,
        state_dict_type="SHARDED_STATE_DICT",
        mixed_precision_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
    )
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4, log_with="wandb",
                              fsdp_plugin=plugin, parallelism_config=pc)
