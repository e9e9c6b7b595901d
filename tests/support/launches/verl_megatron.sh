set -x
HOME_OF_DATA=${HOME_OF_DATA:-"${HOME}/data"}
FILES="['$HOME_OF_DATA/train.parquet']"
prompt=$((1024 * 2))
response=$((1024 * 6))
TP=${TP:-"4"}
python3 -m verl.trainer.main_ppo --config-path=./config --config-name='ppo_megatron_trainer' \
    data.train_files="${FILES}" \
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((prompt + response))) \
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${TP} \
    actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full \
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \
    actor_rollout_ref.ref.megatron.tensor_model_parallel_size=8 \
    trainer.logger=['console','wandb'] \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=2
