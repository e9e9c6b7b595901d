/* Runs of the `flow` fidelity. Private to sim.
 *
 * Tasks run on streams (sim/tasks/streams.h). A collective starts when its last device arrives and
 * ends for all of them at once. It takes the cost model's time (an ideal crossbar) or is lowered to
 * flows that share the topology's links (sim/network/lower/lowering.h). While a device
 * communicates, its computations take `slowdown` times as long (data/cluster/cluster.h); while its
 * devices compute, a collective or transfer makes 1 / `interference` of its progress, averaged over
 * them, and what is left at its nominal end is made up then, on links that are counted as free. */
#pragma once

#include "sim/flow/faults.h"
#include "sim/flow/noise.h"
#include "sim/tasks/streams.h"

/* The parts of a simulation that all of its runs share. */
typedef struct {
    const SimCase *sim;
    SimTasks *tasks;
    SimStreams *streams;
    SimNoise *noise;    /* NULL: nominal durations */
    Topology *topology; /* NULL: an ideal crossbar, or one device */
    GArray *faults;     /* SimFault */
} SimFlowCase;

bool sim_flow_prepare(const SimCase *sim, SimFlowCase *flow, GError **error);
AUTOCLEAR(sim_flow_clear, SimFlowCase)

/* Runs sample number `sample`; fills the timeline's spans and, if `links`, its links. Safe
 * to call from several threads. KILTER_ERROR_FAILED if the iteration does not end. */
bool sim_flow_run(const SimFlowCase *flow, uint64_t sample, bool links,
                  SimTimeline *timeline, GError **error);

/* --- iterations one after the other, on an engine that others use, too --- */

typedef struct SimFlowRun SimFlowRun;
typedef struct SimFabric SimFabric; /* sim/network/transport.h */

/* A run on the case's own topology or, where it isn't NULL, on a fabric; fills the timeline's
 * spans. All arguments must outlive it. KILTER_ERROR_INPUT if a collective cannot be lowered. */
SimFlowRun *sim_flow_open(const SimFlowCase *flow, SimTimeline *timeline,
                          SimEngine *engine, const SimFabric *fabric, GError **error);
AUTOPTR(sim_flow_close, SimFlowRun)

/* Begins an iteration now, with the noise of a sample; none may be under way. `ended` (may be NULL)
 * is called as an event of its own when all tasks have ended. */
void sim_flow_begin(SimFlowRun *run, uint64_t sample, SimHandler ended, void *context);
