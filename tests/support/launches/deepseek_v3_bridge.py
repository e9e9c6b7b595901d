# Recipe: DeepSeek-V3 pretraining
from megatron.bridge import AutoBridge

def deepseek_v3_pretrain_config() -> ConfigContainer:
    """Return a pre-training config: 1024 GPUs."""
    cfg = _pretrain_common()

    # Model config
    cfg.model = AutoBridge.from_hf_pretrained("deepseek-ai/DeepSeek-V3").to_megatron_provider(load_weights=False)
    cfg.tokenizer.tokenizer_type = "NullTokenizer"
    cfg.dataset.blend = None
    cfg.dataset.num_workers = 8

    # Parallelism
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_size = 16
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.num_layers_in_first_pipeline_stage = 4
    cfg.model.num_layers_in_last_pipeline_stage = 1
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.model.context_parallel_size = 1
    cfg.model.expert_model_parallel_size = 64
    cfg.model.expert_tensor_parallel_size = 1
    cfg.model.num_layers_per_virtual_pipeline_stage = args.virtual
    cfg.model.sequence_parallel = True
    cfg.model.seq_length = 4096

    # MoE
    cfg.model.moe_token_dispatcher_type = "alltoall"
    cfg.model.moe_grouped_gemm = True
    cfg.model.moe_router_fusion = False
    cfg.model.moe_permute_fusion = True
    cfg.model.moe_router_force_load_balancing = False

    # Memory saving: recompute
    cfg.model.recompute_granularity = "selective"
    cfg.model.recompute_modules = ["mla_up_proj", "layernorm"]
    cfg.model.recompute_method = None
    cfg.model.recompute_num_layers = None

    # Training
    cfg.train.train_iters = 1_000_000
    cfg.train.global_batch_size = 4096
    cfg.train.micro_batch_size = 1
    cfg.train.manual_gc = True

    cfg.mixed_precision = "bf16_mixed"
    cfg.ddp.use_distributed_optimizer = True
    cfg.ddp.overlap_grad_reduce = True
    cfg.ddp.grad_reduce_in_fp32 = False
    return cfg
