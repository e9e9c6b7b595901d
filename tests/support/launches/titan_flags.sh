# the configuration of titan_8b.toml with other degrees
NGPU=${NGPU:-8}
torchrun --nproc_per_node=${NGPU} -m torchtitan.train --job.config_file titan_8b.toml \
    --parallelism.tensor_parallel_degree=4 --parallelism.data_parallel_shard_degree 2
