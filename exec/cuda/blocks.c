/* Blocks of an exchange between GPUs. */
#include "exec/cuda/blocks.h"

#include "exec/cuda/kernels.h"

static bool is_gather(Collective kind)
{
    return kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_GROUPED_ALL_GATHER;
}

static bool is_padded(Collective kind)
{
    return kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER;
}

/* The cut side of a gather or reduce-scatter: one shard per rank. */
static const ExecShard *cut_side(const ExecExchange *exchange)
{
    return is_gather(exchange->kind) ? exchange->from : exchange->to;
}

uint64_t cuda_blocks_step(const ExecExchange *exchange, uint32_t n_ranks)
{
    uint64_t step = 0;
    for (uint32_t r = 0; r < n_ranks; r++)
        step = MAX(step, exec_shard_elements(
                             &cut_side(exchange)[exec_exchange_rank(exchange, r)]));
    return step;
}

static CudaBlocks cuda_blocks_make(uint32_t n, const ExecShard *mine)
{
    g_assert(n > 0);
    return (CudaBlocks){.n = n,
                        .numbers = mine->numbers,
                        .block = g_new0(ExecShard, n),
                        .at = g_new0(uint64_t, n)};
}

/* An empty shard of the same tensor as `shard`. */
static ExecShard nothing(const ExecShard *shard)
{
    ExecShard none = {.rank = MAX(shard->rank, 1), .numbers = shard->numbers};
    return none;
}

static void lay_out(CudaBlocks *blocks, uint64_t step)
{
    for (uint32_t r = 0; r < blocks->n; r++) {
        blocks->at[r] = blocks->total;
        blocks->total += step > 0 ? step : exec_shard_elements(&blocks->block[r]);
    }
}

/* The overlaps of `mine` with the others, rank by rank. */
static void overlap_all(CudaBlocks *blocks, const ExecExchange *exchange,
                        const ExecShard *mine, const ExecShard *other)
{
    for (uint32_t r = 0; r < blocks->n; r++)
        if (!exec_shard_overlap(mine, &other[exec_exchange_rank(exchange, r)],
                                &blocks->block[r]))
            blocks->block[r] = nothing(mine);
}

/* One block, `own`, which all ranks get or add to, or the overlaps with those of each rank. */
static CudaBlocks blocks_between(const ExecExchange *exchange, uint32_t n_ranks,
                                 const ExecShard *own, const ExecShard *others,
                                 bool is_one)
{
    CudaBlocks blocks = cuda_blocks_make(is_one ? 1 : n_ranks, own);
    if (is_one)
        blocks.block[0] = *own;
    else
        overlap_all(&blocks, exchange, own, others);
    lay_out(&blocks, is_padded(exchange->kind) ? cuda_blocks_step(exchange, n_ranks) : 0);
    return blocks;
}

/* In a gather every rank is sent the same block. */
CudaBlocks cuda_blocks_sent(const ExecExchange *exchange, uint32_t n_ranks, uint32_t mine)
{
    return blocks_between(exchange, n_ranks,
                          &exchange->from[exec_exchange_rank(exchange, mine)],
                          exchange->to, is_gather(exchange->kind));
}

/* In a scatter the result is the sum over all ranks. */
CudaBlocks cuda_blocks_received(const ExecExchange *exchange, uint32_t n_ranks,
                                uint32_t mine)
{
    return blocks_between(exchange, n_ranks,
                          &exchange->to[exec_exchange_rank(exchange, mine)],
                          exchange->from,
                          exchange->kind == COLLECTIVE_REDUCE_SCATTER ||
                              exchange->kind == COLLECTIVE_GROUPED_REDUCE_SCATTER);
}

void cuda_blocks_clear(CudaBlocks *blocks)
{
    g_free(blocks->block);
    g_free(blocks->at);
}

void *cuda_block(const CudaBlocks *blocks, const CudaQueue *queue, uint32_t r)
{
    return (char *)blocks->buffer + blocks->at[r] * (blocks->numbers == EXEC_PLAIN
                                                         ? cuda_queue_size(queue)
                                                         : sizeof(uint16_t));
}

void cuda_blocks_pack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *from)
{
    for (uint32_t r = 0; r < blocks->n; r++) {
        ExecShard part = blocks->block[r];
        part.data = cuda_block(blocks, queue, r);
        if (exec_shard_elements(&part) > 0)
            cuda_copy_overlap(queue, from, &part);
    }
}

void cuda_blocks_unpack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *to)
{
    for (uint32_t r = 0; r < blocks->n; r++) {
        ExecShard part = blocks->block[r];
        part.data = cuda_block(blocks, queue, r);
        if (exec_shard_elements(&part) > 0)
            cuda_copy_overlap(queue, &part, to);
    }
}
