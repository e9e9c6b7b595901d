def pretrain_config(tensor_parallelism: int = 2) -> ConfigContainer:
    model_cfg = Llama31ModelProvider70B(
        tensor_model_parallel_size=4, pipeline_model_parallel_size=4, context_parallel_size=2,
        sequence_parallel=True, seq_length=8192, recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1,
    )
    return ConfigContainer(
        model=model_cfg,
        train=TrainingConfig(train_iters=1168251, eval_interval=2000, global_batch_size=512, micro_batch_size=1),
        optimizer=OptimizerConfig(optimizer="adam", lr=3e-4, bf16=True),
        ddp=DistributedDataParallelConfig(check_for_nan_in_grad=True, grad_reduce_in_fp32=True, use_distributed_optimizer=True),
        dataset=GPTDatasetConfig(random_seed=1234, sequence_length=8192),
        logger=LoggerConfig(log_interval=10),
        mixed_precision="bf16_mixed",
    )
