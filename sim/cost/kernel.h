/* Times of single kernels, from a device's data sheet and a few constants that all devices share.
 *
 *     g_autoptr(KernelDevice) device = kernel_device_new(type, &error);    once per device type
 *     const Kernel kernel = {.kind = KERNEL_PRODUCT, .format = KERNEL_BF16,
 *                            .product = {.batch = 1, .m = 8192, .n = 8192, .k = 4096}};
 *     double s = kernel_time_s(device, &kernel);                           below a microsecond of the host
 *     KernelReport report = kernel_report(device, &kernel);                the same, and what it is made of
 *
 * A time is that of the device in a running iteration: at the clock that the board's power
 * sustains, without the launch by the host, and without the gap between two kernels of a stream
 * (constants.stream.gap). One analytic law per kind of kernel: its equations stand above its code
 * in sim/cost/kernel_*.c, its constants with unit and source in data/kernels.yaml, the device's
 * numbers in data/devices. `device->missing` says what a data sheet lacks and what is taken
 * instead. A time never falls where extents rise (products: by steps that keep their alignment),
 * nor rises with bandwidth, clock, power, L2 or processors.
 *
 * Extents are counts, but not always whole ones: searches price parts of a batch. */
#pragma once

#include "data/cluster/kernel_device.h"

typedef enum {
    KERNEL_PRODUCT, /* Y[m,n] = X[m,k] W[k,n] */
    KERNEL_BATCHED, /* `batch` such products of equal extents in one launch */
    /* one launch of `batch` products, each of m rows on average, one per expert */
    KERNEL_GROUPED,
    /* an experts' layer: rows sorted by expert, two or three grouped products, weighted sum */
    KERNEL_EXPERTS,
    /* any that passes over its operands once: add, activation, dropout, optimizer, copy */
    KERNEL_ELEMENTWISE,
    KERNEL_NORM,    /* layer norm or RMS norm of rows */
    KERNEL_SOFTMAX, /* of rows */
    /* fused: two products and the softmax between them, scores never written */
    KERNEL_ATTENTION,
    KERNEL_CONVOLUTION, /* two spatial dimensions, NCHW */
    KERNELS
} KernelKind;

/* How a product's operands lie. */
typedef enum {
    KERNEL_TN, /* the sum runs along rows of both operands: a linear layer's forward */
    KERNEL_NN, /* a batched product of attention, or an input's gradient */
    KERNEL_NT  /* a weight's gradient: the sum runs over the samples */
} KernelLayout;

/* Which of a convolution's three products. */
typedef enum { KERNEL_FORWARD, KERNEL_INPUT_GRADIENT, KERNEL_WEIGHT_GRADIENT } KernelPass;

typedef struct {
    KernelKind kind;
    /* that it computes in; sums and products of more than two factors are wider inside */
    KernelFormat format;
    /* ATTENTION, NORM, SOFTMAX: all gradients of it, instead of the forward */
    bool backward;
    /* one call on an idle board: short ones end before its power limits the clock */
    bool alone;
    union {
        struct {
            double batch, m, n, k;
            KernelLayout layout;
            /* of an element of Y; 0: as of the format (2 for 8 and 4 bits) */
            double out_bytes;
            bool accumulates; /* adds to Y, which is then also read */
            /* 8 and 4 bits: X comes in 16 bits, and a pass of its own turns it */
            bool converts;
            KernelExperts library; /* GROUPED */
        } product;                 /* PRODUCT, BATCHED, GROUPED */
        struct {
            double tokens, top_k; /* of this device, before routing; experts per token */
            double experts;       /* that the device holds */
            /* widths; `inner` that of the device's part of an expert */
            double hidden, inner;
            uint32_t matrices; /* 3: gated, 2: not */
            KernelExperts library;
        } experts;
        struct {
            double elements;
            double read, written; /* bytes of an element, over all operands */
            /* not vectorised: a processor moves a fixed number of bytes a clock */
            bool scalar;
        } elementwise;
        struct {
            double rows, width;
            double element_bytes; /* 0: as of the format */
            bool squares;         /* an RMS norm, which takes no mean */
        } rows;                   /* NORM, SOFTMAX */
        struct {
            /* lengths; causal: the last `queries` of `keys` */
            double batch, queries, keys;
            double heads, kv_heads; /* of this device */
            double head_qk, head_v; /* widths of a head */
            double window;          /* keys that a query sees at most; 0: all */
            /* cached: K and V are also written to a serving cache */
            bool causal, cached;
            /* KERNEL_ATTENTION_AUTO: by the device's generation */
            KernelAttention library;
        } attention;
        struct {
            double batch, in, out; /* samples, channels */
            double height, width;  /* of the output */
            double rows, columns;  /* of the filter */
            double stride, groups; /* 0: 1 */
            KernelPass pass;
        } convolution;
    };
} Kernel;

/* The largest part of a kernel's time. */
typedef enum {
    KERNEL_BY_COMPUTE, /* at full clock */
    KERNEL_BY_POWER,   /* at the clock that the board's power allows */
    KERNEL_BY_MEMORY,
    KERNEL_BY_CACHE, /* traffic between L2 and processors */
    KERNEL_BY_START, /* start and end of any kernel */
    KERNEL_LIMITS
} KernelLimit;

typedef struct {
    double time_s;
    /* its parts, which overlap: computing at full clock, at the clock that power allows, memory,
     * L2; and what is added */
    double compute_s, power_s, memory_s, cache_s, start_s;
    KernelLimit limit;
    /* however it is cut, its parts take at least that, one after the other; 0: not known */
    double least_s;
    /* of passes over memory that no cutting avoids; 0: another kind */
    double once_bytes;
    /* that the result needs: without padding, each operand once */
    double flops, bytes;
    double peak, bandwidth; /* of the data sheet, FLOP/s in that format, bytes/s */
    /* products; 0: the law has no tiles. m: rows of the output */
    double tile_m, tile_n, tiles, waves, splits;
} KernelReport;

/* Seconds of one kernel. Infinite where the device does not compute in that format. */
double kernel_time_s(const KernelDevice *device, const Kernel *kernel);
KernelReport kernel_report(const KernelDevice *device, const Kernel *kernel);

const char *kernel_limit_name(KernelLimit limit);
