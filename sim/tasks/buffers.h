/* Buffers of a program: what lies in memory and which instructions use it (the rules
 * under "Memory" in sim/sim.h). Private to sim. */
#ifndef KILTER_SIM_TASKS_BUFFERS_H
#define KILTER_SIM_TASKS_BUFFERS_H

#include "sim/evaluate.h"

typedef struct {
    uint32_t birth; /* the instruction that makes its first value */
    /* the last instruction, in program order, that uses its last value */
    uint32_t busy_until;
    bool at_rest; /* a parameter or optimizer state: alive all the time */
    bool stays;   /* the next iteration starts from it: alive to the end */
    /* it exists before its first value and after the last: alive all the time */
    bool stands;
    bool beside; /* the runtime holds it beside the plan */
    bool held; /* every GPU of a machine has all of it */
    uint16_t group;
    TensorId tensor; /* the tensor whose part in `form` has as many elements */
    Form form;
    uint32_t element_bytes;
    uint32_t first, n; /* range in SimBuffers.use */
} SimBuffer;

typedef struct {
    uint32_t n;
    SimBuffer *buffer;
    /* instructions that make or read a value in the buffer, in program order */
    uint32_t *use;
} SimBuffers;

SimMemoryCategory sim_buffer_category(const Graph *graph, const SimBuffer *buffer);

/* Bytes of a buffer where nothing is cut. */
double sim_buffer_whole_bytes(const Graph *graph, const SimBuffer *buffer);

/* The first and the last instruction, in program order, at which a buffer is alive. */
uint32_t sim_buffer_first(const SimBuffer *buffer);
uint32_t sim_buffer_last(const Program *program, const SimBuffer *buffer);

/* instance_segment: [tensor * FORM_MAX + form], as plan_segments. */
SimBuffers *sim_buffers(const Program *program, const Graph *graph,
                        const Instances *instances, const uint16_t *instance_segment);
/* Adds what the runtime holds beside the plan: gradients lie there all the time, copies of them and of the logits,
 * parameters gathered ahead. NULL: nothing. */
void sim_buffers_add_runtime(SimBuffers *buffers, const Runtime *runtime,
                             const Program *program, const Graph *graph);

/* Bytes on one device beside all buffers, whose peak is given; what the cluster's file says of the runtime counts
 * instead of context, workspace and communicators. */
double sim_runtime_bytes(const Runtime *runtime, const Plan *plan, const Device *device,
                         double peak_bytes);

void sim_buffers_free(SimBuffers *buffers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimBuffers, sim_buffers_free)

/* Where a device is in each group: [group], replica * n_devices + position. Caller frees. */
#define SIM_NOT_THERE UINT32_MAX
uint32_t *sim_group_places(const SimCase *sim, uint32_t device);

/* Bytes of a buffer in one GPU of device i (replica * n_devices + position) of its group. */
double sim_buffer_bytes(const SimCase *sim, const SimBuffer *buffer, uint32_t i);

/* Peak bytes of one GPU of device `device`, whose instructions run in program order, and the
 * instruction there. */
double sim_buffers_peak(const SimCase *sim, const SimBuffers *buffers, uint32_t device,
                        uint32_t *instr);

#endif
