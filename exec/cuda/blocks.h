/* The data that an exchange sends and receives, packed in blocks, one after the other in a buffer
 * (private to exec). */
#ifndef KILTER_EXEC_CUDA_BLOCKS_H
#define KILTER_EXEC_CUDA_BLOCKS_H

#include "exec/backend.h"
#include "exec/cuda/queue.h"

typedef struct {
    uint32_t n; /* ranks */
    /* [n]: the part of the whole tensor; of no elements where there is none */
    ExecShard *block;
    uint64_t *at;   /* [n]: first element in the buffer */
    uint64_t total; /* elements of the buffer */
    void *buffer;
} CudaBlocks;

/* One side of rank `mine`'s part in an exchange. Blocks follow one another closely, or are as far
 * apart as the largest one is long (`padded`). */
CudaBlocks cuda_blocks_sent(const ExecExchange *exchange, uint32_t n_ranks,
                            uint32_t mine);
CudaBlocks cuda_blocks_received(const ExecExchange *exchange, uint32_t n_ranks,
                                uint32_t mine);
void cuda_blocks_clear(CudaBlocks *blocks);

/* Distance of blocks in a padded exchange. */
uint64_t cuda_blocks_step(const ExecExchange *exchange, uint32_t n_ranks);

/* Address of block r. */
void *cuda_block(const CudaBlocks *blocks, const CudaQueue *queue, uint32_t r);

void cuda_blocks_pack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *from);
void cuda_blocks_unpack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *to);

#endif
