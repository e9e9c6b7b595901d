/* Dropout's mask, for kernels on the host and on GPUs (private to exec). */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define EXEC_INLINE static inline __host__ __device__
#else
#define EXEC_INLINE static inline
#endif

/* The finalizer of SplitMix64 (Steele et al. 2014). */
EXEC_INLINE uint64_t mask_mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number in [0, 1), uniform, as a function of the stream and the element's index in the whole
 * tensor. */
EXEC_INLINE double mask_uniform(uint64_t stream, uint64_t index)
{
    const uint64_t z =
        mask_mix(mask_mix((stream * UINT64_C(0x9e3779b97f4a7c15)) ^ index));
    return (double)(z >> 11) * 0x1p-53;
}

/* Index in the tensor of shape `whole` of element `i` of a shard of shape `dim` at `offset`. */
EXEC_INLINE uint64_t mask_index(uint32_t rank, const uint32_t *dim,
                                const uint32_t *offset, const uint32_t *whole, uint64_t i)
{
    uint64_t index = 0, size = 1;
    for (uint32_t d = rank; d-- > 0;) {
        index += (i % dim[d] + offset[d]) * size;
        i /= dim[d];
        size *= whole[d];
    }
    return index;
}

/* A square matrix of `size` rows for each head of each sample: attention's probabilities. A shard
 * has some of the samples and `heads` of `all_heads` heads. */
typedef struct {
    double rate;
    uint64_t seed, heads, first_sample, first_head, all_heads, size;
} MaskRows;

/* The factor of dropout for element `column` of row `row`, counted in the shard. */
EXEC_INLINE double mask_factor(const MaskRows *m, uint64_t row, uint64_t column)
{
    if (m->rate == 0)
        return 1;
    const uint64_t matrix = row / m->size;
    const uint64_t sample = matrix / m->heads + m->first_sample,
                   head = matrix % m->heads + m->first_head;
    const uint64_t whole = (sample * m->all_heads + head) * m->size + row % m->size;
    return mask_uniform(m->seed, whole * m->size + column) >= m->rate ? 1 / (1 - m->rate)
                                                                      : 0;
}
