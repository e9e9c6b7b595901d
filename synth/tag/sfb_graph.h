/* Sufficient factor broadcasting for a graph's data parallelism. Part of synth's public interface,
 * included by synth/synth.h. */
#pragma once

#include "sim/sim.h"
#include "synth/tag/sfb.h"

/* How costs are priced, with D devices and tau the bandwidth of an all-reduce:
 *
 *                duplicated op                 tensor L broadcast             gradient L saved
 *     kilter     time on the whole batch       all-gather by the cluster's    all-reduce by the
 *                less on its slowest share     lines, once                    cluster's lines
 *     paper      (D-1) x its time on a share   D (D-1) L/D / tau per reader   2 (D-1)/D L/tau
 *     ring       as the paper                  (D-1)/D L/tau per reader       as the paper
 *
 * `ring` is the paper with the time of a ring's all-gather. L is the whole tensor; the paper's L/D
 * is one replica's part. */
typedef enum { SFB_KILTER, SFB_PAPER, SFB_RING, SFB_PRICES } SfbPrices;

/* All costs for one group of devices. */
typedef struct {
    double *compute_s; /* [op]; INFINITY: it is not cut with the batch */
    double *saved_s;   /* [op]: all-reduces of the parameters' gradients that it makes */
    double *broadcast_s; /* [tensor] */
    bool each_reader;
    /* a problem for each gradient, as in the paper, in place of one for all */
    bool one_by_one;
} SfbCosts;

/* All 0. */
SfbCosts *synth_sfb_costs_new(const Graph *graph);

/* The costs for data parallelism over the devices whose share is not 0; Kilter's prices are those
 * of all devices. share: [device], sums to 1; `batch`: the graph's batch forms. */
SfbCosts *synth_sfb_costs(const Graph *graph, const BatchForms *batch,
                          const ClusterView *view, const double *share, SfbPrices prices);
AUTOPTR(synth_sfb_costs_free, SfbCosts)

/* duplicated: out, [op], the ops to duplicate. Returns the seconds saved according to the costs, in
 * which several problems count a shared op for each. */
double synth_sfb_graph(const Graph *graph, const BatchForms *batch, const SfbCosts *costs,
                       bool *duplicated);
