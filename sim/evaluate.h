/* Fidelities: ways to evaluate a plan, behind one interface. Private to sim; sim_evaluate()
 * prepares their common input and completes the report. */
#pragma once

#include "data/plan/fidelity.h"
#include "data/program/blocks.h"
#include "sim/flow/tally.h"
#include "sim/tasks/parts.h"

typedef struct SimLayerTimes SimLayerTimes; /* sim/tasks/layer_times.h */

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
    const SimParts *parts;
    const SimLinear *linear; /* set for an SPMD program, else NULL */
    const double *share; /* [split * n_devices + device]: shares of its rounded splits */
    const SimOptions *options;
    const Runtime *runtime;      /* NULL: nothing is held beside the plan */
    const SimLayerTimes *layers; /* NULL: no measured times of layers */
    /* a step of a round (Strategy.sync_every) after which nothing is exchanged */
    bool alone;
} SimCase;

/* An evaluator for each row of FIDELITY_TABLE. Fills the stages, and either the times and busy
 * times or the timeline from which they follow. The report's arrays are allocated, zero, and each
 * stage's instructions are set. */
typedef bool SimEvaluator(const SimCase *sim, SimReport *report, GError **error);
#define SIM_EVALUATOR(name, word, abilities, words) SimEvaluator sim_##word;
FIDELITY_TABLE(SIM_EVALUATOR)
#undef SIM_EVALUATOR

/* A case with what it borrows, for all fidelities and for samples, traces and jobs of flow. */
typedef struct {
    SimCase sim;
    ClusterView *measured, *priced; /* NULL: not needed */
    Runtime *loaded;
    SimParts *parts;
    SimLinear *linear;
    double *share;
    SimLayerTimes *layers;
} SimPrepared;

/* Plan, graph, view and options must outlive it; it must be cleared all the same if it fails.
 * KILTER_ERROR_INPUT: sim_check_plan, cluster_view_check_times, runtime_load, or the file of layer
 * times. */
bool sim_prepare(SimPrepared *prepared, const Plan *plan, const Graph *graph,
                 const ClusterView *view, const SimOptions *options, GError **error);
AUTOCLEAR(sim_prepared_clear, SimPrepared)

/* The longest path of an iteration, or up to a span: its end and what it consists of. */
typedef struct {
    double end_s, comm_s, comp_s, launch_s;
} SimPath;

static inline void sim_path_add(SimPath *path, const SimSpan *span)
{
    const double s = span->end_s - span->start_s;
    *(span->lane == SIM_TEAM ? &path->comm_s : &path->comp_s) += s;
    path->launch_s += span->launch ? s : 0;
}

/* As sim_evaluate_with, on the microbatches that the program has, without those that it leaves
 * out. */
SimReport *sim_evaluate_part(const Plan *plan, const Graph *graph,
                             const ClusterView *view, const char *fidelity,
                             const SimOptions *options, GError **error);

/* The plan of the few microbatches that are unlike each other, and options for it; NULL: none. */
ProgramBlocks *sim_shorten(const Plan *plan, const Graph *graph, Plan *part,
                           SimOptions *options);

/* Times of the iteration, of its stages and of its devices. lane: [device]. */
void sim_report_times(SimReport *report, SimTally *tally, const SimPath *path,
                      const uint32_t *lane, bool successive);

/* The US dollars for what an iteration sends between regions (ClusterView.toll), by the algorithms
 * that flow takes; 0 where no link has a price (sim/flow/flow.c). KILTER_ERROR_INPUT: sim_lower. */
bool sim_flow_toll(const SimCase *sim, double *dollars, GError **error);

/* Fails for a plan whose steps are unlike each other (Strategy.sync_every), where only one kind of
 * step can be run. */
bool sim_check_steps(const Plan *plan, GError **error);

/* Checks the plan's number of devices and its program; a part was checked when it was made. */
bool sim_check_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                    const SimOptions *options, GError **error);

/* Devices of one kind with equal shares, which therefore have equal times and memory. */
typedef struct {
    uint32_t n;
    uint32_t *first; /* [n]: device */
    uint32_t *of;    /* [device]: the index of its kind */
} SimKinds;

/* The kinds of the view's devices, none empty; two kinds may be the same. Free with
 * sim_kinds_clear. */
SimKinds sim_kinds(const ClusterView *view, uint32_t n_splits, const double *share);
AUTOCLEAR(sim_kinds_clear, SimKinds)

/* The two parts of a stage in equation (1) (sim/cost/linear.c). *term walks the terms from 0
 * as stages are passed in order. */
double sim_linear_comm_s(const SimLinear *linear, const ClusterView *view,
                         const SimKinds *kinds, const double *share, uint32_t stage,
                         uint32_t *term);
double sim_linear_comp_s(const SimLinear *linear, const ClusterView *view,
                         const double *share, uint32_t stage, uint32_t device);

/* sim_memory of an SPMD plan, with what its runtime holds beside the plan, but
 * sim_runtime_bytes. */
SimMemory *sim_memory_of(const SimCase *sim);
