/* Buffers of a program (data/plan/buffers.h) on the devices of a cluster, and what a runtime holds
 * beside them. Private to sim. */
#pragma once

#include <math.h>

#include "sim/evaluate.h"

/* The buffers of the case's program, of which those that the strategy offloads take no bytes of the
 * device, with what its runtime holds beside the plan. The caller frees them. */
PlanBuffers *sim_held_buffers(const SimCase *sim);

/* Runs: computations of a group, one after the other, of one layer, and of one microbatch or one
 * pass. Groups of the same devices in the same places, which differ in their shards, are one. */
typedef struct {
    uint32_t n; /* with run 0, which has none */
    /* [instr]: a computation's run; of others the one of the group's next computation, or of the
     * layer whose parameter is gathered; 0: none */
    uint32_t *of;
    uint16_t *home;   /* [group]: the first group of the same devices */
    uint32_t *before; /* [run]: the group's run before it; 0: none */
    bool *again;      /* [run]: of the backward, maybe after computing its layer again */
} SimRuns;
/* Whether an instruction gathers a parameter. */
bool sim_gathers(const Instr *instr, const Graph *graph);
/* layer: [tensor]. */
SimRuns sim_runs(const Program *program, const Graph *graph, const uint32_t *layer);
AUTOCLEAR(sim_runs_clear, SimRuns)

/* Of keys and values that go around a ring two parts lie on a device (sim/tasks/task_ring.c). */
void sim_buffers_ring(PlanBuffers *buffers, const Strategy *strategy,
                      const Program *program, const Graph *graph);

/* Moves to hosts what the strategy offloads, but activations. */
void sim_buffers_offload(PlanBuffers *buffers, const Strategy *strategy,
                         const Program *program, const Graph *graph);

/* Whether an update reads the buffer last, which holds a gradient. use: of all buffers. */
bool sim_is_final_gradient(const uint32_t *use, const PlanBuffer *buffer,
                           const Program *program, const Graph *graph);

/* Adds what the runtime holds beside the plan: gradients lie there all the time, copies of them and
 * of the logits, and of the parameters of the largest gathered layer. NULL: nothing. */
void sim_buffers_add_runtime(PlanBuffers *buffers, const Runtime *runtime,
                             const Program *program, const Graph *graph);

/* Seconds that an update of offloaded states takes at place i of its group: its gradient goes to
 * the host (from level 2 of ZeRO on, with each microbatch), the host's memory passes by the states,
 * and the new parameter comes back. */
double sim_offload_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                     uint32_t i);
/* Seconds of bytes between a device and its host. */
double sim_link_s(const ClusterView *view, const Device *device, double bytes);
/* The buffers of the case as they lie on hosts; and the most bytes of device `device` there. */
PlanBuffers *sim_host_buffers(const SimCase *sim);
double sim_host_bytes(const SimCase *sim, const PlanBuffers *buffers, uint32_t device);

/* Bytes on one device beside all buffers, whose peak is given; what the cluster's file says of the
 * runtime counts instead of context, workspace and communicators. */
double sim_runtime_bytes(const Runtime *runtime, const Plan *plan, const Device *device,
                         double peak_bytes);

/* Where a device is in each group: [group], replica * n_devices + position. Caller frees. */
#define SIM_NOT_THERE UINT32_MAX
uint32_t *sim_group_places(const SimCase *sim, uint32_t device);

/* Bytes of a buffer in one GPU of device i (replica * n_devices + position) of its group. */
double sim_buffer_bytes(const SimCase *sim, const PlanBuffer *buffer, uint32_t i);

/* Peak bytes of one GPU of each of n devices, whose instructions run in program order, and the
 * instruction there. Of a part of a program (SimOptions.blocks) those of all of it; false: the part
 * does not tell. */
bool sim_buffers_peaks(const SimCase *sim, const PlanBuffers *buffers,
                       const uint32_t *device, uint32_t n, double *peak, uint32_t *instr);

/* Whole bytes of a sum, whose last digits depend on the order of its terms. */
static inline uint64_t sim_whole_bytes(double bytes)
{
    const double noise = 1e-3;
    return (uint64_t)ceil(fmax(bytes - noise, 0));
}
