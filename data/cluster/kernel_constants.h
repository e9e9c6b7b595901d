/* The constants of the laws of kernels (sim/cost/kernel.h), one row per constant: member, unit,
 * range. Their values and sources are in data/kernels.yaml, which must give all rows; a folder of
 * KILTER_PATH may hold another. The laws themselves are above the code that computes them, in
 * sim/cost/kernel_*.c. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* Matrix products of one kind of unit: `simt` the lanes that compute fp64 and fp32, `tensor` the
 * matrix units. */
#define PRODUCT_CONSTANTS(X)                                                               \
    X(share, "1", 0.1, 2)          /* of the peak, by an endless tile */                   \
    X(tile_half, "elements", 0, 1000) /* 1/width + 1/height of a tile that halves it, inverse */ \
    X(k_start, "elements", 0, 1e4) /* steps of the sum that a tile loses at both ends */   \
    X(warps_half, "warps", 0, 100) /* resident warps at which half of the rate is reached */ \
    X(tail, "1", 0, 1)             /* of the last wave's idle part, how much is lost */    \
    X(bandwidth, "1", 0.1, 1)      /* share of the memory's */                             \
    X(cache, "B/clock", 1, 1000)   /* of a processor from L2 */                            \
    X(cache_keep, "1", 0.01, 4)    /* part of L2 that survives between kernels */          \
    X(energy_tile, "elements", 0, 1000) /* energy of operands: of 1/width + 1/height */    \
    X(flops_w, "GFLOP/s/W", 1, 1e5) /* at 12 nm */                                         \
    X(energy_clock, "1", 0, 4) /* power of clock / 1.5 GHz in the energy of a FLOP */ \
    X(energy_bytes, "1", 0, 4) /* power of an operand's bytes / 2 in it, matrix units */ \
    X(memory_j, "pJ/B", 0, 1000)                                                           \
    X(idle_w, "W", 0, 1000)                                                                \
    X(split, "us", 0, 1000)        /* more if the sum is split */                          \
    X(start, "us", 0, 1000)        /* before and after every kernel */                     \
    X(unaligned, "1", 0.1, 1)      /* sum or width no multiple of what a load takes */     \
    X(batched, "1", 0.1, 2)        /* batched products against one */                      \
    X(amd, "1", 0.1, 1)            /* what AMD's library reaches of it */                  \
    X(early, "1", 0.1, 1)          /* what sm 75 and older reach of it */ \
    X(burst, "ms", 0.01, 1000)     /* of work at peak that an idle board does before it throttles */ \
    X(burst_width, "1", 1.01, 1000) /* and the factor up to where it always does */

/* Only of products on lanes. */
#define LANE_CONSTANTS(X)                                                                  \
    X(issue, "1", 0.1, 1)          /* part of the slots left by loads where fp32 has all */ \
    X(pascal_tile, "elements", 0, 1000) /* tile_half of Pascal */                          \
    X(pascal_row, "elements", 1, 1e9) /* sum at which its linear kernels have half the rate */ \
    X(pascal_odd, "1", 0.1, 1)     /* unaligned linear kernels of sm 61 */

/* Between kernels, and of collectives' kernels beside others. */
#define STREAM_CONSTANTS(X)                                                                \
    X(gap, "us", 0, 1000)          /* of two kernels of a stream */                        \
    X(reach, "1", 0.1, 1)          /* of the 16-bit peak by the best product, if not measured */ \
    X(ring, "GB/s", 1, 1000)       /* of a ring of a collective inside a machine */        \
    X(blocks, "1", 1, 64)          /* multiprocessors of a collective's kernel for a ring */

/* Kernels that pass over memory. */
#define MEMORY_CONSTANTS(X)                                                                \
    X(share_hbm, "1", 0.1, 1)                                                              \
    X(share_gddr, "1", 0.1, 1)                                                             \
    X(start, "us", 0, 1000)                                                                \
    X(cache_gain, "1", 1, 100)     /* bandwidth of what stays in L2, of the memory's */    \
    X(cache_keep, "1", 0.01, 4)                                                            \
    X(miss_from, "1", 0, 10)       /* rows at work over L2: no second pass misses */       \
    X(miss_to, "1", 0, 10)         /* all do */                                            \
    X(row, "ns", 0, 1e5)           /* 32 threads take for a row, at least */               \
    X(odd_row, "1", 0.1, 1)        /* rows that are no multiple of 4 elements */           \
    X(moments, "clock", 0, 1e5)    /* a processor takes for a row's mean and variance */   \
    X(gate_clock, "B/clock", 0.1, 1000)                                                    \
    X(convert, "us", 0, 1000)      /* start of a pass that finds scales and turns to 8 or 4 bits */

#define CONVOLUTION_CONSTANTS(X)                                                           \
    X(implicit, "1", 0.1, 2)       /* rate of implicit products, of the same product's */  \
    X(fused, "1", 0.1, 2)          /* of blocks of Winograd F(2,3) */                      \
    X(fused_start, "channels", 0, 1000) /* that such a block takes at its ends */          \
    X(fused_filter, "1", 0, 100)   /* as filter, of F(2,3) */                              \
    X(large, "1", 0.1, 2)          /* of Winograd F(4,3) */                                \
    X(traffic, "1", 0, 100)        /* bytes of the transforms, of once each */             \
    X(filter, "1", 0, 100)         /* of the filters' transform */                         \
    X(choice, "1", 1, 100)         /* exponent of the soft minimum */                      \
    X(start, "us", 0, 10000)

/* Fused attention by generation of kernels. */
#define ATTENTION_CONSTANTS(X)                                                             \
    X(rate, "1", 0.1, 2)           /* of products, of the best dense product */            \
    X(warp, "1", 0.1, 1)           /* what its instructions reach of that from sm 90 on */ \
    X(exponential, "1", 0, 10)     /* of 16 exponentials a clock */                        \
    X(k_start, "keys", 0, 1e4)     /* that a tile of queries loses */                      \
    X(tail, "1", 0, 2)             /* of a longest tile, where they do not fill waves */   \
    X(start, "us", 0, 1000)                                                                \
    X(memory, "1", 0, 2)           /* part of the traffic that nothing hides */            \
    X(backward, "1", 1, 10)        /* backward over forward */                             \
    X(backward_wide, "1", 1, 10)   /* with more elements in a key than in a value */

/* Grouped products of experts by library. */
#define EXPERT_CONSTANTS(X)                                                                \
    X(rate, "1", 0.05, 2)          /* of the best dense product */                         \
    X(narrow, "elements", 0, 1e4)  /* width at which half of it is lost */                 \
    X(bandwidth, "1", 0.05, 1)                                                             \
    X(passes, "1", 0, 20)          /* over rows in and out, of memory at peak */           \
    X(start, "us", 0, 1000)
/* clang-format on */

/* The structs of laws, and their constants, of which each is a double. */
#define KERNEL_LAW_TABLE(Y)        \
    Y(ProductLaw, PRODUCT)         \
    Y(LaneLaw, LANE)               \
    Y(StreamLaw, STREAM)           \
    Y(MemoryLaw, MEMORY)           \
    Y(ConvolutionLaw, CONVOLUTION) \
    Y(AttentionLaw, ATTENTION)     \
    Y(ExpertLaw, EXPERT)
#define LAW_MEMBER(name, unit, low, high) double name;
#define Y(Struct, constants)              \
    typedef struct {                      \
        constants##_CONSTANTS(LAW_MEMBER) \
    } Struct;
KERNEL_LAW_TABLE(Y)
#undef Y
#undef LAW_MEMBER

/* id, name: the libraries of fused attention and of experts that were fitted. */
#define KERNEL_ATTENTION_TABLE(X)                                       \
    X(FA2, "flash2")  /* FlashAttention 2, and what is built like it */ \
    X(FA3, "flash3")  /* FlashAttention 3, cuDNN on sm 90 and newer */  \
    X(PLAIN, "plain") /* TensorRT-LLM's older kernels */
#define KERNEL_EXPERTS_TABLE(X)                                                      \
    X(TRAINING, "training") /* grouped products of Transformer Engine and CUTLASS */ \
    X(TRTLLM, "trtllm")                                                              \
    X(VLLM, "vllm")                                                                  \
    X(SGLANG, "sglang")

#define KERNEL_ATTENTION_ID(id, name) KERNEL_ATTENTION_##id,
typedef enum {
    KERNEL_ATTENTION_TABLE(KERNEL_ATTENTION_ID) KERNEL_ATTENTIONS,
    KERNEL_ATTENTION_AUTO = KERNEL_ATTENTIONS /* FA3 from sm 90 on, else FA2 */
} KernelAttention;
#define KERNEL_EXPERTS_ID(id, name) KERNEL_EXPERTS_##id,
typedef enum {
    KERNEL_EXPERTS_TABLE(KERNEL_EXPERTS_ID) KERNEL_EXPERTS_KINDS
} KernelExperts;

/* Numbers of a device whose sheet does not say them: the last row whose `least` is not above its
 * sm, or gcn. */
typedef struct {
    uint32_t sm, gcn;  /* the least; one of the two is 0 */
    double lanes;      /* of a processor, fp32 */
    double threads;    /* that a processor holds */
    double l2_bytes;   /* for each processor */
    double process_nm; /* as in Chip */
} KernelGeneration;
enum { KERNEL_GENERATIONS_MAX = 32 };

typedef struct {
    uint32_t n_generations;
    KernelGeneration generation[KERNEL_GENERATIONS_MAX];
    ProductLaw simt, tensor;
    LaneLaw lane;
    StreamLaw stream;
    MemoryLaw memory;
    ConvolutionLaw convolution;
    AttentionLaw attention[KERNEL_ATTENTIONS];
    ExpertLaw experts[KERNEL_EXPERTS_KINDS];
} KernelConstants;

/* Reads data/kernels.yaml, once in a process unless KILTER_PATH changes. KILTER_ERROR_INPUT with
 * file, line, key and what was expected. */
bool kernel_constants_load(KernelConstants *constants, GError **error);
