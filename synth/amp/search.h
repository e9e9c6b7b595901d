/* Declarations that the methods of synth_amp_search() share (private to synth). */
#pragma once

#include <gsl/gsl_rng.h>

#include "synth/amp/cost.h"

typedef struct {
    const AmpModel *model;
    const AmpCluster *cluster;
    const AmpOptions *options;
    AmpLayers *layers;
    /* AmpDegrees: all degrees and micro-batch sizes that the options leave */
    GArray *choices;
} AmpSearch;

/* A strategy of the choice, with devices and cuts still to be set. */
AmpStrategy amp_strategy_of(const AmpSearch *search, const AmpDegrees *choice);

/* Assigns the layers of a strategy whose devices are set. False if it does not fit. */
bool amp_assign_layers(const AmpSearch *search, AmpStrategy *strategy, AmpCost *cost);

/* Seconds that the fidelity `stage` never says fewer of the strategy's program; not of the faithful
 * reading, nor of measured times. */
double amp_least_s(const AmpSearch *search, const AmpStrategy *strategy);

/* Whether the fidelity `stage` gives every strategy of the choice at least `upper_s`, wherever its
 * devices are and its layers are cut (synth/amp/lost.c). */
bool amp_is_lost(const AmpSearch *search, const AmpDegrees *choice, double upper_s);

/* [pass * n_layers + layer]: seconds of the layer's computations on a device of the type. The
 * caller frees it. */
double *amp_computes(const AmpModel *model, uint32_t type, uint32_t degree, uint32_t mbs);
/* [layer]: seconds of the part of its backward that no other layer waits for. Caller frees. */
double *amp_late(const AmpModel *model, uint32_t type, uint32_t degree, uint32_t mbs);
/* As amp_computes: seconds of its all-reduces among the devices that share it. */
double *amp_exchanges(const AmpModel *model, uint32_t degree, uint32_t mbs,
                      LinkCost line);

/* --- placements: `order` is the devices in the order in which they are handed out --- */

/* All devices, machine by machine. The caller frees it. */
uint32_t *amp_machine_order(const AmpCluster *cluster, bool backwards);
/* The devices of the machine that has the fewest. */
uint32_t amp_smallest_machine(const AmpCluster *cluster);
/* Hands devices out to the positions of a tensor-parallel group first, then to replicas, then to
 * stages, as Megatron and the paper do. */
void amp_place_stages(AmpStrategy *strategy, const uint32_t *order);
/* Hands devices out to positions, then stages, then replicas, which keeps a pipeline together. */
void amp_place_replicas(AmpStrategy *strategy, const uint32_t *order);

/* --- the methods; each appends AmpCandidates that fit --- */

/* Tries n strategies that fit, or as many as are found soon. */
void amp_anneal(const AmpSearch *search, uint32_t n, GArray *candidates);

/* A strategy with devices, and cuts still to be set: degrees are drawn, all alike, then a placement
 * as a domino tiling, then the microbatch size. near: NULL, or degrees of which tmp or dp is kept.
 * False, and nothing to clear, if no tiling has these degrees. */
bool amp_draw_domino(gsl_rng *rng, const AmpSearch *search, const AmpDegrees *near,
                     AmpStrategy *strategy);
