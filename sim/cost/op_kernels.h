/* The kernels that an op of the table runs on a device's part of it, and how long they take.
 * Private to sim.
 *
 * Which kernels an op runs follows from its signature (data/graph/op.h) where it is a sum of
 * products: loops of the first operand and the output are rows, those of the second and the
 * output columns, those of both operands the sum, those of all three a batch. Ops named `expert`
 * are grouped products. Attention, norms, softmax and convolutions have kernels of their own;
 * all others pass over their operands once. Each kernel takes its time (sim/cost/kernel.h) and
 * the gap between two of a stream. */
#pragma once

#include "sim/cost/kernel.h"

/* A kernel that an op runs `times` times. */
typedef struct {
    Kernel kernel;
    double times, launches; /* launches: by the host, of it once */
    KernelClass class;
} OpKernel;

enum { OP_KERNELS_MAX = 10 };

/* part: [loop of the op's space], the part of its extent that the device has, above 0. Returns
 * their number. */
uint32_t op_kernels(const Graph *graph, OpId op, const double part[OP_MAX_LOOPS],
                    const Stack *stack, OpKernel kernel[OP_KERNELS_MAX]);

/* Seconds of these kernels on one GPU of a type with pricing. */
double op_kernels_s(const KernelPricing *pricing, const Graph *graph, OpId op,
                    const double part[OP_MAX_LOOPS]);

/* Seconds of the whole op that no cutting of it into parts avoids: what its kernels take in
 * parts of any size (KernelReport.least_s), passes over memory at the speed of L2 only where
 * starts and launches take as long, and its launches. *once_s gets what each part takes at
 * least. */
double op_kernels_least_s(const KernelPricing *pricing, const Graph *graph, OpId op,
                          double *once_s);
