/* The laws of kernels, one file each (private to sim). Each returns the seconds and fills in the
 * parts of `report`, which is zeroed but for peak and bandwidth; NULL: not wanted. */
#pragma once

#include "sim/cost/kernel.h"

/* The extents of a matrix product, and bytes of an element of its operands and of its result. */
typedef struct {
    double batch, m, n, k;
    double in_bytes, out_bytes;
    KernelFormat format;
    bool batched, alone;
    double overlap; /* how often a convolution's product has an element of X */
    bool whole;     /* the library does not split the sum */
} LawProduct;

typedef double KernelLaw(const KernelDevice *device, const Kernel *kernel,
                         KernelReport *report);
KernelLaw law_grouped_s, law_experts_s, law_elementwise_s, law_rows_s, law_attention_s,
    law_convolution_s;
double law_product_s(const KernelDevice *device, const LawProduct *product,
                     KernelReport *report);
/* FLOP/s of the largest tiles at the clock that the board's power sustains, in (4) of products. */
double law_power_rate(const KernelDevice *device, KernelFormat format);
/* Seconds of a pass over memory, with the gap before it, that no cutting into parts avoids
 * where each part takes at least floor_s. */
double law_pass_least_s(const KernelDevice *device, double bytes, double floor_s);

/* The part of traffic that L2 does not hold: 0 to 1 on the log of bytes over what stays in it. */
static inline double law_clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}
