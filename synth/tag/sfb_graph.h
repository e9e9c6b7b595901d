/* Sufficient factor broadcasting for a graph's data parallelism. Part of synth's public interface,
 * included by synth/synth.h. */
#ifndef KILTER_SYNTH_TAG_SFB_GRAPH_H
#define KILTER_SYNTH_TAG_SFB_GRAPH_H

#include "sim/sim.h"
#include "synth/tag/sfb.h"

/* How it is priced, with D devices and tau the bandwidth of an all-reduce:
 *
 *                duplicated op                   tensor L that is broadcast        gradient L that is not all-reduced
 *     kilter     on the whole batch less on the    all-gather by the cluster's     all-reduce by the cluster's lines
 *                slowest share of it               lines, once
 *     paper      (D-1) times its time on a share   D (D-1) L/D / tau, a reader     2 (D-1)/D L/tau
 *     ring       as the paper                      (D-1)/D L/tau, a reader         as the paper
 *
 * `ring` is the paper with what a ring's all-gather takes. L: the whole tensor, but for the paper's
 * L/D, one replica's part. */
typedef enum { SFB_KILTER, SFB_PAPER, SFB_RING, SFB_PRICES } SfbPrices;

/* Costs of everything, for one group of devices. */
typedef struct {
    double *compute_s; /* [op]; infinite: it is not cut with the batch */
    double *saved_s;   /* [op]: all-reduces of the parameters' gradients that it makes */
    double *broadcast_s; /* [tensor] */
    bool each_reader;
} SfbCosts;

/* Data parallelism over all devices of the view; share: [device], sums to 1. `batch` are the graph's. */
SfbCosts *synth_sfb_costs(const Graph *graph, const BatchForms *batch,
                          const ClusterView *view, const double *share, SfbPrices prices);
void synth_sfb_costs_free(SfbCosts *costs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SfbCosts, synth_sfb_costs_free)

/* The ops to duplicate, duplicated: out, [op], for all gradients at once; returns the seconds that
 * the costs say are saved. */
double synth_sfb_graph(const Graph *graph, const BatchForms *batch, const SfbCosts *costs,
                       bool *duplicated);

#endif
