/* The tables of names (data/formats/launch/names.h). */
#include "data/formats/launch/names.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* Names without effect here. */
#define NOTHING(name) {name, WORD_NOTHING, "*"},
#define BENEATH(name) NOTHING(name)

/* Megatron-LM 0.20.0 (d98e8a64), megatron/training/arguments.py and megatron/core/transformer. */
const LaunchName MEGATRON_NAMES[] = {
    {"tensor-model-parallel-size", WORD_TP, NULL}, {"pipeline-model-parallel-size", WORD_PP, NULL},
    {"context-parallel-size", WORD_CP, NULL},
    {"cp-comm-type", WORD_CP_COMM, "all_gather=allgather"},
    {"cp-comm-type", WORD_CP_COMM, "a2a=a2a"}, {"expert-model-parallel-size", WORD_EP, NULL},
    {"expert-tensor-parallel-size", WORD_ETP, NULL}, {"bf16", WORD_NUMBERS, "bf16"},
    {"fp16", WORD_NUMBERS, "fp16"}, {"precision", WORD_NUMBERS, "bf16-mixed=bf16"},
    {"mixed-precision", WORD_NUMBERS, "bf16_mixed=bf16"}, {"mixed-precision", WORD_NUMBERS, "fp16_mixed=fp16"},
    {"fp8-format", WORD_FP8, "hybrid=on"},
    {"fp8-format", WORD_FP8, "e4m3=on"},
    {"grad-reduce-in-bf16", WORD_GRADIENTS, "bf16"}, {"sequence-parallel", WORD_SEQUENCE, "on"},
    {"recompute-granularity", WORD_RECOMPUTE, "full=full"},
    {"recompute-granularity", WORD_RECOMPUTE, "selective=selective"},
    {"recompute-activations", WORD_RECOMPUTE, "selective"}, {"checkpoint-activations", WORD_RECOMPUTE, "full"},
    {"pp-partition-method", WORD_COUNT_FIRST, "type:transformer|embedding=on"},
    {"pp-partition-method", WORD_COUNT_LAST, "type:transformer|embedding=on"},
    {"account-for-embedding-in-pipeline-split", WORD_COUNT_FIRST, "on"},
    {"account-for-loss-in-pipeline-split", WORD_COUNT_LAST, "on"},
    {"virtual-pipeline-model-parallel-size", WORD_VIRTUAL, NULL},
    {"recompute-modules", WORD_AGAIN, NULL}, {"recompute-method", WORD_METHOD, NULL},
    {"recompute-num-layers", WORD_RECOMPUTE_LAYERS, NULL},
    {"use-distributed-optimizer", WORD_ZERO, "1"},
    {"num-distributed-optimizer-instances", WORD_INSTANCES, NULL},
    {"data-parallel-sharding-strategy", WORD_ZERO, "optim=1"},
    {"data-parallel-sharding-strategy", WORD_ZERO, "optim_grads=2"},
    {"data-parallel-sharding-strategy", WORD_ZERO, "optim_grads_params=3"},
    {"data-parallel-sharding-strategy", WORD_ZERO, "no_shard=0"}, {"zero-stage", WORD_ZERO, NULL},
    {"pipeline-model-parallel-layout", WORD_LAYOUT, NULL},
    {"num-virtual-stages-per-pipeline-rank", WORD_VIRTUAL, NULL},
    {"num-layers-per-virtual-pipeline-stage", WORD_PER_VIRTUAL, NULL},
    {"decoder-first-pipeline-num-layers", WORD_FIRST_LAYERS, NULL},
    {"decoder-last-pipeline-num-layers", WORD_LAST_LAYERS, NULL},
    {"num-layers-in-first-pipeline-stage", WORD_FIRST_LAYERS, NULL},
    {"num-layers-in-last-pipeline-stage", WORD_LAST_LAYERS, NULL},
    {"hetero-pipeline-layer-split", WORD_SPLIT, NULL}, {"micro-batch-size", WORD_MICRO_BATCH, NULL},
    {"global-batch-size", WORD_GLOBAL_BATCH, NULL}, {"seq-length", WORD_SEQ, NULL},
    {"num-layers", WORD_LAYERS, NULL}, {"hidden-size", WORD_HIDDEN, NULL},
    {"ffn-hidden-size", WORD_FFN, NULL}, {"num-attention-heads", WORD_HEADS, NULL},
    {"group-query-attention", WORD_GROUPED, "on"}, {"num-query-groups", WORD_KV_HEADS, NULL},
    {"kv-channels", WORD_HEAD_SIZE, NULL}, {"max-position-embeddings", WORD_POSITIONS, NULL},
    {"vocab-size", WORD_VOCAB, NULL}, {"make-vocab-size-divisible-by", WORD_VOCAB_MULTIPLE, NULL},
    {"normalization", WORD_NORM, "RMSNorm=rms"}, {"normalization", WORD_NORM, "LayerNorm=layer"},
    {"norm-epsilon", WORD_NORM_EPSILON, NULL},
    {"position-embedding-type", WORD_POSITION, "rope=rope"},
    {"position-embedding-type", WORD_POSITION, "learned_absolute=learned"},
    {"position-embedding-type", WORD_POSITION, "none=none"}, {"position-embedding-type", WORD_POSITION, "alibi=alibi"},
    {"use-rotary-position-embeddings", WORD_POSITION, "rope"},
    {"rotary-base", WORD_ROPE_BASE, NULL}, {"use-rope-scaling", WORD_ROPE_SCALING, "llama3"},
    {"rope-scaling-factor", WORD_ROPE_FACTOR, NULL}, {"swiglu", WORD_ACTIVATION, "swiglu"},
    {"squared-relu", WORD_ACTIVATION, "relu2"},
    {"untie-embeddings-and-output-weights", WORD_UNTIED, "on"},
    {"disable-bias-linear", WORD_NO_BIAS, "on"}, {"add-qkv-bias", WORD_QKV_BIAS, "on"},
    {"qk-layernorm", WORD_QK_NORM, "on"}, {"hidden-dropout", WORD_DROPOUT, NULL},
    {"attention-dropout", WORD_ATTENTION_DROPOUT, NULL}, {"num-experts", WORD_EXPERTS, NULL},
    {"moe-router-topk", WORD_TOP, NULL}, {"moe-ffn-hidden-size", WORD_EXPERT_FFN, NULL},
    {"moe-shared-expert-intermediate-size", WORD_SHARED_FFN, NULL},
    {"moe-router-score-function", WORD_SCORE, NULL},
    {"moe-token-dispatcher-type", WORD_DISPATCHER, NULL},
    {"moe-expert-capacity-factor", WORD_CAPACITY, NULL},
    {"moe-pad-expert-input-to-capacity", WORD_PADDED, "on"},
    {"attention-backend", WORD_BACKEND, NULL}, {"use-flash-attn", WORD_BACKEND, "flash"},
    {"optimizer", WORD_OPTIMIZER, NULL}, {"nnodes", WORD_NODES, NULL},
    {"nproc-per-node", WORD_PER_NODE, NULL},
    NOTHING("enable-hetero") NOTHING("hetero-process-meshes") NOTHING("hetero-device-types") NOTHING("hetero-current-device-type")
    NOTHING("node-rank") NOTHING("master-addr") NOTHING("master-port") NOTHING("rdzv-backend")
    NOTHING("rdzv-endpoint") NOTHING("rdzv-id") NOTHING("rdzv-conf") NOTHING("max-restarts") NOTHING("role") NOTHING("tee") NOTHING("redirects") NOTHING("log-dir")
    NOTHING("lr") NOTHING("min-lr") NOTHING("lr-decay-style") NOTHING("lr-decay-iters") NOTHING("lr-decay-samples")
    NOTHING("lr-warmup-iters") NOTHING("lr-warmup-fraction") NOTHING("lr-warmup-samples") NOTHING("lr-warmup-init")
    NOTHING("weight-decay") NOTHING("clip-grad") NOTHING("adam-beta1") NOTHING("adam-beta2") NOTHING("adam-eps")
    NOTHING("init-method-std") NOTHING("train-iters") NOTHING("train-samples") NOTHING("eval-iters") NOTHING("eval-interval")
    NOTHING("exit-interval") NOTHING("exit-duration-in-mins") NOTHING("save") NOTHING("load") NOTHING("save-interval")
    NOTHING("log-interval") NOTHING("log-throughput") NOTHING("tensorboard-dir") NOTHING("tensorboard-queue-size") NOTHING("log-timers-to-tensorboard")
    NOTHING("log-batch-size-to-tensorboard") NOTHING("log-validation-ppl-to-tensorboard") NOTHING("wandb-project") NOTHING("wandb-exp-name")
    NOTHING("wandb-save-dir") NOTHING("timing-log-level") NOTHING("timing-log-option") NOTHING("log-params-norm") NOTHING("log-num-zeros-in-grad") NOTHING("log-progress")
    NOTHING("data-path") NOTHING("train-data-path") NOTHING("valid-data-path") NOTHING("test-data-path") NOTHING("data-args-path") NOTHING("data-cache-path")
    NOTHING("split") NOTHING("mock-data") NOTHING("num-workers") NOTHING("dataloader-type") NOTHING("no-create-attention-mask-in-dataloader")
    NOTHING("no-mmap-bin-files") NOTHING("reset-position-ids") NOTHING("reset-attention-mask") NOTHING("eod-mask-loss")
    NOTHING("tokenizer-type") NOTHING("tokenizer-model") NOTHING("tokenizer-name-or-path") NOTHING("vocab-file") NOTHING("merge-file") NOTHING("tiktoken-pattern")
    NOTHING("seed") NOTHING("distributed-backend") NOTHING("distributed-timeout-minutes") NOTHING("use-mcore-models") NOTHING("transformer-impl")
    NOTHING("ckpt-format") NOTHING("use-dist-ckpt") NOTHING("dist-ckpt-format") NOTHING("auto-detect-ckpt-format") NOTHING("async-save") NOTHING("use-checkpoint-args")
    NOTHING("no-load-optim") NOTHING("no-load-rng") NOTHING("no-save-optim") NOTHING("no-save-rng") NOTHING("finetune") NOTHING("ckpt-fully-parallel-save") NOTHING("ckpt-fully-parallel-load")
    NOTHING("ckpt-assume-constant-structure") NOTHING("override-opt_param-scheduler") NOTHING("override-opt-param-scheduler") NOTHING("exit-signal-handler")
    NOTHING("overlap-grad-reduce") NOTHING("overlap-param-gather") NOTHING("overlap-param-gather-with-optimizer-step") NOTHING("tp-comm-overlap")
    NOTHING("manual-gc") NOTHING("manual-gc-interval") NOTHING("no-gradient-accumulation-fusion") NOTHING("no-masked-softmax-fusion")
    NOTHING("no-bias-gelu-fusion") NOTHING("no-bias-swiglu-fusion") NOTHING("no-bias-dropout-fusion") NOTHING("no-rope-fusion") NOTHING("cross-entropy-loss-fusion")
    NOTHING("cross-entropy-fusion-impl") NOTHING("attention-softmax-in-fp32") NOTHING("apply-layernorm-1p") NOTHING("no-position-embedding") NOTHING("rotary-percent")
    NOTHING("accumulate-allreduce-grads-in-fp32") NOTHING("initial-loss-scale") NOTHING("loss-scale") NOTHING("loss-scale-window") NOTHING("min-loss-scale") NOTHING("hysteresis")
    NOTHING("fp8-margin") NOTHING("fp8-interval") NOTHING("fp8-amax-history-len") NOTHING("fp8-amax-compute-algo") NOTHING("fp8-recipe") NOTHING("fp8-param-gather")
    NOTHING("moe-aux-loss-coeff") NOTHING("moe-router-load-balancing-type") NOTHING("moe-grouped-gemm") NOTHING("moe-permute-fusion") NOTHING("moe-router-pre-softmax")
    NOTHING("moe-router-dtype") NOTHING("moe-z-loss-coeff") NOTHING("moe-per-layer-logging") NOTHING("moe-shared-expert-overlap") NOTHING("moe-layer-recompute")
    NOTHING("moe-router-enable-expert-bias") NOTHING("moe-router-bias-update-rate") NOTHING("moe-router-topk-scaling-factor") NOTHING("moe-token-drop-policy")
    NOTHING("use-megatron-fsdp") NOTHING("use-custom-fsdp") NOTHING("init-model-with-meta-device") NOTHING("local-rank")
    NOTHING("profile") NOTHING("pipeline-dtype") NOTHING("no-shared-fs") NOTHING("profile-step-start") NOTHING("profile-step-end") NOTHING("data-impl") NOTHING("valid-num-workers") NOTHING("kill-switch-path") NOTHING("abort-on-unmet-fused-kernel-constraints") NOTHING("rampup-batch-size") NOTHING("decoupled-lr") NOTHING("decoupled-min-lr") NOTHING("deepspeed-activation-checkpointing") NOTHING("grad-reduce-in-fp32")
    NOTHING("empty-unused-memory-level") NOTHING("check-for-nan-in-loss-and-grad") NOTHING("no-check-for-nan-in-loss-and-grad") NOTHING("calculate-per-token-loss") NOTHING("enable-experimental")
    {0}};

/* metaseq (OPT), dataclass/configs.py; Slurm 24. */
const LaunchName METASEQ_NAMES[] = {
    {"model-parallel-size", WORD_TP, NULL}, {"distributed-world-size", WORD_WORLD, NULL},
    {"batch-size", WORD_MICRO_BATCH, NULL}, {"update-freq", WORD_MICROBATCHES, NULL},
    {"tokens-per-sample", WORD_SEQ, NULL}, {"ddp-backend", WORD_ZERO, "fully_sharded=3"},
    {"ddp-backend", WORD_ZERO, "pytorch_ddp=0"}, {"no-reshard-after-forward", WORD_RESHARD, "off"},
    {"checkpoint-activations", WORD_RECOMPUTE, "full"}, {"decoder-layers", WORD_LAYERS, NULL},
    {"decoder-embed-dim", WORD_HIDDEN, NULL}, {"decoder-ffn-embed-dim", WORD_FFN, NULL},
    {"decoder-attention-heads", WORD_HEADS, NULL}, {"dropout", WORD_DROPOUT, NULL},
    {"fp16", WORD_NUMBERS, "fp16"}, {"memory-efficient-fp16", WORD_NUMBERS, "fp16"},
    {"nodes", WORD_NODES, NULL}, {"gpus-per-node", WORD_PER_NODE, NULL},
    NOTHING("ntasks-per-node") NOTHING("jobid") NOTHING("task") NOTHING("arch") NOTHING("criterion") NOTHING("sample-break-mode") NOTHING("distributed-port")
    NOTHING("fp16-init-scale") NOTHING("threshold-loss-scale") NOTHING("adam-betas") NOTHING("clip-norm") NOTHING("max-update") NOTHING("save-dir") NOTHING("optimizer")
    {0}};

/* DeepSpeed edaa7221, runtime/config.py and runtime/zero/config.py. */
const LaunchName DEEPSPEED_NAMES[] = {
    {"train_batch_size", WORD_GLOBAL_BATCH, NULL},
    {"train_micro_batch_size_per_gpu", WORD_MICRO_BATCH, NULL},
    {"gradient_accumulation_steps", WORD_MICROBATCHES, NULL},
    {"zero_optimization.stage", WORD_ZERO, NULL},
    {"zero_optimization.mics_shard_size", WORD_ZERO_RANKS, NULL},
    {"zero_optimization.zero_hpz_partition_size", WORD_ZERO_RANKS, NULL},
    {"tensor_parallel.autotp_size", WORD_TP, NULL}, {"sequence_parallel_size", WORD_CP, NULL},
    {"zero_optimization.offload_optimizer.device", WORD_OFFLOAD, "cpu=optimizer"},
    {"zero_optimization.offload_optimizer.device", WORD_NOTHING, "none=*"}, BENEATH("zero_optimization.offload_optimizer.pin_memory")
    {"zero_optimization.offload_param.device", WORD_NOTHING, "none=*"}, BENEATH("zero_optimization.offload_param.pin_memory")
    {"bf16.enabled", WORD_NUMBERS, "true=bf16"}, {"bf16.enabled", WORD_NOTHING, "false=*"},
    {"fp16.enabled", WORD_NUMBERS, "true=fp16"}, {"fp16.enabled", WORD_NOTHING, "false=*"},
    {"activation_checkpointing.partition_activations", WORD_RECOMPUTE, "false=full"},
    {"activation_checkpointing.partition_activations", WORD_RECOMPUTE, "true=full"},
    {"optimizer.type", WORD_OPTIMIZER, NULL},
    BENEATH("optimizer.*") BENEATH("scheduler.*") BENEATH("fp16.*") BENEATH("bf16.*") BENEATH("activation_checkpointing.*")
    BENEATH("steps_per_print") BENEATH("wall_clock_breakdown") BENEATH("gradient_clipping") BENEATH("prescale_gradients") BENEATH("tensorboard.*") BENEATH("wandb.*")
    BENEATH("flops_profiler.*") BENEATH("comms_logger.*") BENEATH("dump_state") BENEATH("zero_allow_untested_optimizer") BENEATH("zero_force_ds_cpu_optimizer") BENEATH("checkpoint.*") BENEATH("aio.*")
    BENEATH("zero_optimization.overlap_comm") BENEATH("zero_optimization.contiguous_gradients") BENEATH("zero_optimization.reduce_bucket_size")
    BENEATH("zero_optimization.allgather_bucket_size") BENEATH("zero_optimization.allgather_partitions") BENEATH("zero_optimization.reduce_scatter") BENEATH("zero_optimization.round_robin_gradients")
    BENEATH("zero_optimization.stage3_prefetch_bucket_size") BENEATH("zero_optimization.stage3_param_persistence_threshold") BENEATH("zero_optimization.stage3_max_live_parameters")
    BENEATH("zero_optimization.stage3_max_reuse_distance") BENEATH("zero_optimization.stage3_gather_16bit_weights_on_model_save") BENEATH("zero_optimization.sub_group_size")
    BENEATH("_comment") BENEATH("communication_data_type") BENEATH("data_types.*")
    {0}};

/* torchtitan b5bcd76c6 and, for TOML, its releases until 2025. */
const LaunchName TITAN_NAMES[] = {
    {"parallelism.pipeline_parallel_degree", WORD_PP, NULL},
    {"parallelism.context_parallel_degree", WORD_CP, NULL},
    {"parallelism.context_parallel_rotate_method", WORD_CP_COMM, "allgather=allgather"},
    {"parallelism.context_parallel_rotate_method", WORD_CP_COMM, "alltoall=a2a"},
    {"parallelism.expert_parallel_degree", WORD_EP, NULL},
    {"parallelism.expert_tensor_parallel_degree", WORD_ETP, NULL},
    {"parallelism.tensor_parallel_degree", WORD_TP, NULL},
    {"parallelism.enable_sequence_parallel", WORD_SEQUENCE, "True=on"},
    {"parallelism.enable_sequence_parallel", WORD_SEQUENCE, "False=off"},
    {"parallelism.enable_sequence_parallel", WORD_SEQUENCE, "true=on"},
    {"parallelism.enable_sequence_parallel", WORD_SEQUENCE, "false=off"},
    {"parallelism.data_parallel_shard_degree", WORD_SHARD, NULL},
    {"parallelism.data_parallel_replicate_degree", WORD_REPLICATE, NULL},
    {"parallelism.fsdp_reshard_after_forward", WORD_ZERO, "never=2"},
    {"parallelism.fsdp_reshard_after_forward", WORD_ZERO, "always=3"},
    {"parallelism.fsdp_reshard_after_forward", WORD_NOTHING, "default=*"},
    {"parallelism.pipeline_parallel_schedule", WORD_SCHEDULE, "1F1B=1f1b"},
    {"parallelism.pipeline_parallel_schedule", WORD_SCHEDULE, "GPipe=gpipe"},
    {"parallelism.pipeline_parallel_schedule", WORD_SCHEDULE, "Interleaved1F1B=interleaved"},
    {"parallelism.pipeline_parallel_schedule", WORD_SCHEDULE, "LoopedBFS=breadth-first"},
    {"parallelism.pipeline_parallel_schedule_csv", WORD_STEPS_FILE, NULL},
    {"parallelism.num_pp_microbatches", WORD_MICROBATCHES, NULL},
    {"parallelism.pipeline_parallel_microbatch_size", WORD_MICRO_BATCH, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage", WORD_PER_VIRTUAL, NULL},
    {"parallelism.module_fqns_per_model_part", WORD_MODULES, NULL},
    {"training.num_tokens_per_microbatch_per_dp_rank", WORD_TOKENS_MICRO, NULL},
    {"training.num_tokens_per_train_step", WORD_TOKENS_STEP, NULL},
    {"training.max_context_length", WORD_SEQ, NULL},
    {"training.mixed_precision_param", WORD_NUMBERS, "bfloat16=bf16"},
    {"training.mixed_precision_param", WORD_NUMBERS, "float32=fp32"},
    {"training.seq_len", WORD_SEQ, NULL}, {"training.local_batch_size", WORD_LOCAL_BATCH, NULL},
    {"training.batch_size", WORD_LOCAL_BATCH, NULL},
    {"training.global_batch_size", WORD_GLOBAL_BATCH, NULL},
    {"training.tensor_parallel_degree", WORD_TP, NULL},
    {"training.data_parallel_shard_degree", WORD_SHARD, NULL},
    {"training.data_parallel_replicate_degree", WORD_REPLICATE, NULL},
    {"experimental.pipeline_parallel_degree", WORD_PP, NULL},
    {"experimental.context_parallel_degree", WORD_CP, NULL},
    {"activation_checkpoint", WORD_RECOMPUTE, "FullAC.Config()=full"},
    {"activation_checkpoint", WORD_RECOMPUTE, "SelectiveAC.Config()=alternate"},
    {"activation_checkpoint", WORD_RECOMPUTE, "None=none"},
    {"activation_checkpoint.mode", WORD_RECOMPUTE, "full=full"},
    {"activation_checkpoint.mode", WORD_RECOMPUTE, "selective=alternate"},
    {"activation_checkpoint.selective_ac_option", WORD_NOTHING, "op=*"},
    {"activation_checkpoint.mode", WORD_RECOMPUTE, "none=none"},
    {"optimizer.name", WORD_OPTIMIZER, NULL},
    BENEATH("job.*") BENEATH("profiling.*") BENEATH("metrics.*") BENEATH("model.*") BENEATH("optimizer.*") BENEATH("lr_scheduler.*") BENEATH("checkpoint.*")
    {"model.converters", WORD_FP8, "[\"float8\"]=on"}, {"model.converters", WORD_NUMBERS, "[\"float8\"]=bf16"}, BENEATH("quantize.*")
    BENEATH("compile.*") BENEATH("comm.*") BENEATH("validation.*") BENEATH("debug.*") BENEATH("training.steps") BENEATH("training.max_norm") BENEATH("training.warmup_steps")
    BENEATH("training.dataset") BENEATH("training.dataset_path") BENEATH("training.compile") BENEATH("training.seed") BENEATH("training.deterministic") BENEATH("training.mixed_precision_reduce") BENEATH("training.gc_freq")
    BENEATH("parallelism.enable_async_tensor_parallel") BENEATH("parallelism.disable_loss_parallel") BENEATH("parallelism.enable_loss_parallel") BENEATH("parallelism.enable_compiled_autograd")
    BENEATH("experimental.*")
    {0}};

/* accelerate 1.10, utils/dataclasses.py and commands/config; TrainingArguments of transformers
 * 4.56. */
const LaunchName ACCELERATE_NAMES[] = {
    {"fsdp_config.fsdp_reshard_after_forward", WORD_ZERO, "true=3"},
    {"fsdp_config.fsdp_reshard_after_forward", WORD_ZERO, "false=2"},
    {"fsdp_config.fsdp_reshard_after_forward", WORD_ZERO, "FULL_SHARD=3"},
    {"fsdp_config.fsdp_reshard_after_forward", WORD_ZERO, "SHARD_GRAD_OP=2"},
    {"fsdp_config.reshard_after_forward", WORD_ZERO, "true=3"},
    {"fsdp_config.reshard_after_forward", WORD_ZERO, "false=2"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "FULL_SHARD=3"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "1=3"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "SHARD_GRAD_OP=2"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "2=2"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "HYBRID_SHARD=3"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO_RANKS, "HYBRID_SHARD=node"},
    {"fsdp_config.fsdp_offload_params", WORD_NOTHING, "false=*"}, {"fsdp_transformer_layer_cls_to_wrap", WORD_NOTHING, "*"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "NO_SHARD=0"},
    {"fsdp_config.fsdp_sharding_strategy", WORD_ZERO, "3=0"},
    {"fsdp_config.fsdp_activation_checkpointing", WORD_RECOMPUTE, "true=full"},
    {"fsdp_config.fsdp_activation_checkpointing", WORD_RECOMPUTE, "false=none"},
    {"fsdp_config.activation_checkpointing", WORD_RECOMPUTE, "true=full"},
    {"fsdp_config.activation_checkpointing", WORD_RECOMPUTE, "false=none"},
    {"parallelism_config.parallelism_config_dp_replicate_size", WORD_REPLICATE, NULL},
    {"parallelism_config.parallelism_config_dp_shard_size", WORD_ZERO_RANKS, NULL},
    {"parallelism_config.parallelism_config_tp_size", WORD_TP, NULL},
    {"parallelism_config.parallelism_config_cp_size", WORD_CP, NULL},
    {"deepspeed_config.zero_stage", WORD_ZERO, NULL},
    {"deepspeed_config.gradient_accumulation_steps", WORD_MICROBATCHES, NULL},
    {"megatron_lm_config.megatron_lm_tp_degree", WORD_TP, NULL},
    {"megatron_lm_config.megatron_lm_pp_degree", WORD_PP, NULL},
    {"megatron_lm_config.megatron_lm_num_micro_batches", WORD_MICROBATCHES, NULL},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", WORD_SEQUENCE, "true=on"},
    {"megatron_lm_config.megatron_lm_recompute_activations", WORD_RECOMPUTE, "true=selective"},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", WORD_ZERO, "true=1"},
    {"mixed_precision", WORD_NUMBERS, "bf16=bf16"}, {"mixed_precision", WORD_NUMBERS, "fp16=fp16"},
    {"mixed_precision", WORD_NUMBERS, "no=fp32"},
    {"num_processes", WORD_WORLD, NULL}, {"num_machines", WORD_NODES, NULL},
    {"deepspeed_config.offload_optimizer_device", WORD_OFFLOAD, "cpu=optimizer"},
    {"deepspeed_config.offload_optimizer_device", WORD_NOTHING, "none=*"},
    {"per_device_train_batch_size", WORD_MICRO_BATCH, NULL},
    {"gradient_accumulation_steps", WORD_MICROBATCHES, NULL},
    {"gradient_checkpointing", WORD_RECOMPUTE, "true=full"},
    {"gradient_checkpointing", WORD_NOTHING, "false=*"}, {"bf16", WORD_NUMBERS, "true=bf16"},
    {"bf16", WORD_NOTHING, "false=*"}, {"fp16", WORD_NUMBERS, "true=fp16"},
    {"fp16", WORD_NOTHING, "false=*"}, {"fsdp", WORD_ZERO, "full_shard=3"},
    {"fsdp", WORD_ZERO, "full_shard auto_wrap=3"},
    {"fsdp", WORD_ZERO, "hybrid_shard auto_wrap=3"}, {"fsdp", WORD_ZERO_RANKS, "hybrid_shard auto_wrap=node"},
    {"fsdp", WORD_ZERO, "shard_grad_op=2"}, {"fsdp", WORD_ZERO, "shard_grad_op auto_wrap=2"},
    {"max_seq_length", WORD_SEQ, NULL}, {"max_length", WORD_SEQ, NULL},
    {"optim", WORD_OPTIMIZER, NULL},
    BENEATH("compute_environment") BENEATH("distributed_type") BENEATH("debug") BENEATH("downcast_bf16") BENEATH("machine_rank") BENEATH("main_training_function")
    BENEATH("main_process_ip") BENEATH("main_process_port") BENEATH("rdzv_backend") BENEATH("same_network") BENEATH("tpu_*") BENEATH("use_cpu") BENEATH("dynamo_*") BENEATH("enable_cpu_affinity")
    BENEATH("fsdp_config.fsdp_version") BENEATH("fsdp_config.version") BENEATH("fsdp_config.fsdp_auto_wrap_policy") BENEATH("fsdp_config.fsdp_backward_prefetch*") BENEATH("fsdp_config.fsdp_forward_prefetch")
    BENEATH("fsdp_config.fsdp_state_dict_type") BENEATH("fsdp_config.fsdp_sync_module_states") BENEATH("fsdp_config.fsdp_use_orig_params") BENEATH("fsdp_config.fsdp_cpu_ram_efficient_loading")
    BENEATH("fsdp_config.fsdp_transformer_layer_cls_to_wrap") BENEATH("learning_rate") BENEATH("lr_scheduler_*") BENEATH("warmup_*") BENEATH("weight_decay") BENEATH("num_train_epochs") BENEATH("max_steps") BENEATH("logging_*")
    BENEATH("save_*") BENEATH("eval_*") BENEATH("evaluation_*") BENEATH("data_path") BENEATH("output_dir") BENEATH("report_to") BENEATH("seed") BENEATH("dataloader_*") BENEATH("adam_*") BENEATH("max_grad_norm") BENEATH("ddp_timeout") BENEATH("push_to_hub") BENEATH("tf32") BENEATH("gradient_checkpointing_kwargs.*")
    BENEATH("per_device_eval_batch_size") BENEATH("do_train") BENEATH("do_eval") BENEATH("overwrite_output_dir") BENEATH("model_name_or_path") BENEATH("dataset_*") BENEATH("run_name")
    {0}};
/* clang-format on */

/* Names match as they are, or by what stands before a '*' at the end. */
static bool name_is(const LaunchName *row, const char *name)
{
    const size_t n = strlen(row->name);
    return n > 0 && row->name[n - 1] == '*' ? strncmp(name, row->name, n - 1) == 0
                                            : strcmp(name, row->name) == 0;
}

bool launch_take(const LaunchName *names, const char *name, const char *text,
                 char **value)
{
    bool known = false;
    for (const LaunchName *row = names; row->name; row++) {
        const char *equal = row->says ? strchr(row->says, '=') : NULL;
        const size_t n = equal ? (size_t)(equal - row->says) : 0;
        const char *word = !row->says ? text : equal ? equal + 1 : row->says;
        if (!name_is(row, name) ||
            (equal && (!text || strlen(text) != n || strncmp(text, row->says, n) != 0)) ||
            !word)
            continue;
        /* a flag that divides states says less than another one that divides more of them */
        const bool less = row->word == WORD_ZERO &&
                          launch_number(value, WORD_ZERO) > strtoul(word, NULL, 10);
        if (row->word < WORDS && !less) {
            g_free(value[row->word]);
            value[row->word] = g_strdup(word);
        }
        known = true;
    }
    return known;
}

void launch_write(const LaunchName *names, char *const *value,
                  void (*write)(void *data, const char *name, const char *text),
                  void *data)
{
    bool said[WORDS] = {false};
    for (const LaunchName *row = names; row->name; row++) {
        const char *equal = row->says ? strchr(row->says, '=') : NULL;
        if (row->word == WORD_NOTHING || said[row->word] || !value[row->word] ||
            (row->says &&
             strcmp(equal ? equal + 1 : row->says, value[row->word]) != 0))
            continue;
        g_autofree char *text = equal ? g_strndup(row->says, (gsize)(equal - row->says))
                                      : NULL;
        said[row->word] = true;
        write(data, row->name, !row->says ? value[row->word] : text);
    }
}

uint32_t launch_number(char *const *value, LaunchWord word)
{
    guint64 number = 0;
    return value[word] &&
                   g_ascii_string_to_unsigned(value[word], 10, 0, 1u << 30, &number, NULL)
               ? (uint32_t)number
               : 0;
}
