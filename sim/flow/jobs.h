/* Several jobs on one network: plans that train at the same time on devices of their own and share
 * links. Part of sim's public interface, included by sim/sim.h.
 *
 * Each job runs iterations by the fidelity `flow`, one after the other, all on one network. A job
 * that has run as many as were asked for goes on, so that the others are slowed down until they
 * have, too. */
#pragma once

#include "data/plan/plan.h"
#include "sim/options.h"

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
    /* [device of the view]: its place in the network's view; places differ, over all jobs too */
    const uint32_t *place;
} SimJob;

typedef struct {
    /* that ended before every job had run as many as were asked for */
    uint32_t iterations;
    /* mean time of an iteration where the job has the network to itself, */
    double alone_s;
    double together_s; /* and where all jobs run */
} SimJobTime;

/* Runs at least `iterations` of each of n jobs on the network of `view`, with the noise of the
 * options; time [n]. KILTER_ERROR_INPUT for faults, more than one device in a place, and a job
 * whose iterations take no time; also the errors of sim_evaluate_with. */
bool sim_jobs(const SimJob *job, uint32_t n, const ClusterView *view,
              const SimOptions *options, uint32_t iterations, SimJobTime *time,
              GError **error);
