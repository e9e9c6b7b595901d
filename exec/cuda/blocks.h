/* The data that an exchange sends and receives, packed in blocks, one after the other in a buffer
 * (private to exec). */
#pragma once

#include "exec/backend.h"
#include "exec/cuda/queue.h"

typedef struct {
    uint32_t n; /* ranks that take part */
    ExecNumbers numbers;
    /* [n]: the part of the whole tensor; empty where there is none */
    ExecShard *block;
    uint64_t *at;   /* [n]: first element in the buffer */
    uint64_t total; /* elements of the buffer */
    void *buffer;
} CudaBlocks;

/* The blocks that the `mine`-th of the n_ranks ranks that take part sends or receives in an
 * exchange. Blocks follow one another without gaps, or, if `padded`, at the distance of the largest
 * block's size. */
CudaBlocks cuda_blocks_sent(const ExecExchange *exchange, uint32_t n_ranks,
                            uint32_t mine);
CudaBlocks cuda_blocks_received(const ExecExchange *exchange, uint32_t n_ranks,
                                uint32_t mine);
void cuda_blocks_clear(CudaBlocks *blocks);

/* Distance of blocks in a padded exchange, in elements. */
uint64_t cuda_blocks_step(const ExecExchange *exchange, uint32_t n_ranks);

/* Address of block r. */
void *cuda_block(const CudaBlocks *blocks, const CudaQueue *queue, uint32_t r);

void cuda_blocks_pack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *from);
void cuda_blocks_unpack(const CudaBlocks *blocks, CudaQueue *queue, const ExecShard *to);
