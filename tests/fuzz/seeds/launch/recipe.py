from torchtitan_recipes.llama3 import llama3_8b as base


def plan():
    config = base()
    config.parallelism.pipeline_parallel_degree = 2
    config.parallelism.tensor_parallel_degree = 1
    config.parallelism.data_parallel_shard_degree = 4
    config.parallelism.fsdp_reshard_after_forward = 'never'
    config.parallelism.pipeline_parallel_schedule = '1F1B'
    config.parallelism.module_fqns_per_model_part = [['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'layers.3', 'norm', 'lm_head']]
    config.training.num_tokens_per_microbatch_per_dp_rank = 2
    config.training.max_context_length = 2
    config.activation_checkpoint = FullAC.Config()
    return config
