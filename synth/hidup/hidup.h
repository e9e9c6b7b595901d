/* HiDup's search, and duplex programs: two microbatches that take turns. */
#pragma once

#include "synth/spmd/spmd.h"

/* HiDup's search (Sec. 4): the best program for two microbatches that take turns (HiDup Eq. 4, 5),
 * for ratios [n_devices].
 *
 * The space: the forward ops in graph order, each under a rule whose backward is its adjoint
 * (Identity <-> Reduce, Gather(d) <-> Gather(d)), in stages of any length; before an op any of its
 * inputs can be converted by collectives and local conversions; a communicated conversion replaces
 * the form; parameters as in synth/hidup/search.c; the goal is loss | Reduce. A stage overlaps the
 * other microbatch's stage in the backward as in the forward. `optimal`: nothing in the space is
 * faster.
 *
 * The method: a prefix is a state, the forms of live tensors, and a label: psi and -phi of Eq. 4
 * and 5 with the stage that is still open, forward and backward; dominated labels are dropped
 * (Theorem 1). The time is linear in the number of layers.
 *
 * The options change the costs that the search believes, not the true costs: time_s is then the
 * believed time, and nothing is `optimal`.
 *
 * The program is for one microbatch; time_s is for both, at ratios that are not rounded: for BERT
 * exact up to rounding, for ViT and VGG up to 0.2 % more than the duplex program takes.
 * KILTER_ERROR_FAILED if a parameter has several consumers or nothing reaches the goal. */
typedef struct {
    double
        /* seconds charged per byte of parameters, gradients and optimizer states that a GPU keeps,
         * summed over devices; 0: memory is free */
        memory_s;
    double
        /* the times of each op and each kind of collective and the devices' speeds are off by up to
         * this part, at random by `seed` */
        noise;
    /* communication takes longer by this part of its time, -1 or more */
    double communication;
    bool serial_back; /* the backward does not overlap, as HiDup's artifact believes */
    uint64_t seed;
} SynthHidupOptions;

/* options: NULL for all 0. */
bool synth_hidup(const Graph *graph, const ClusterView *view, const double *ratio,
                 const SynthHidupOptions *options, SynthResult *result, GError **error);

/* The duplex program of a program of one group: its batch is cut in n_pieces microbatches, two or
 * more, that take turns (synth/hidup/turns.c). KILTER_ERROR_INPUT if the batch cannot be cut. */
Program *synth_duplex(const Program *program, const Graph *graph, uint32_t n_pieces,
                      GError **error);
