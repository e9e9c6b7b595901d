/* Buffers of a program: what lies in memory and which instructions use it, by the rules under
 * "Memory" in sim/sim.h. Simulators count their bytes, replays (exec/replay.h) allocate them.
 *
 * Whoever has a program folds over its buffers: sim_memory (peaks as functions of the shares),
 * sim_buffers_peaks (of one device), sim_quick_memory (of all devices, quickly), sim_memory_record
 * (over the time of a simulation), sim_memory_table (by category), and the rooms of replays.
 * Searches decide before there is a program, and count without buffers; each errs on a known side:
 *
 *     sim_memory_floor            below every program of one microbatch
 *     charges (synth/spmd)        the bytes at two points of the iteration: below the peak
 *     tag_room_needs              below every program of the strategy
 *     AmpModel, JointEntry        at rest and per microbatch in flight: near the peak, either side
 *
 * The folds then decide whether the plan fits. */
#pragma once

#include "data/plan/plan.h"

/* The categories of a device's memory: id, name. Activations are tensors that the forward makes
 * and keeps; buffers are tensors in flight, such as gradients of activations and gathered
 * parameters. */
#define MEMORY_TABLE(X)           \
    X(WEIGHTS, "weights")         \
    X(GRADIENTS, "gradients")     \
    X(OPTIMIZER, "optimizer")     \
    X(ACTIVATIONS, "activations") \
    X(BUFFERS, "buffers")         \
    X(RUNTIME, "runtime")

#define MEMORY_ID(id, name) MEMORY_##id,
typedef enum { MEMORY_TABLE(MEMORY_ID) MEMORY_CATEGORIES } MemoryCategory;

const char *memory_category(MemoryCategory category);

/* Whether every GPU of a machine holds all of the tensor's shard. */
bool graph_is_held(const Graph *graph, const Tensor *tensor);

typedef struct {
    uint32_t birth; /* the instruction that makes its first value */
    /* the last instruction, in program order, that uses its last value */
    uint32_t busy_until;
    bool at_rest : 1; /* a parameter or optimizer state: alive all the time */
    bool stays : 1;   /* the next iteration starts from it: alive to the end */
    /* it exists before its first value and after the last: alive all the time */
    bool stands : 1;
    bool beside : 1; /* the runtime holds it beside the plan */
    bool kept : 1; /* data other than tensors that a forward op keeps for its backward */
    bool held : 1; /* every GPU of a machine has all of it */
    bool returns : 1; /* it comes from the host before its first use */
    uint16_t group;
    TensorId tensor; /* the tensor whose part in `form` has as many elements */
    Form form;
    /* 1 + the instruction after which it goes to the host, 0: it stays */
    uint32_t leaves;
    double element_bytes;
    /* of an element that the host keeps in the device's place; 0: none */
    double host_bytes;
    uint32_t first, n; /* range in PlanBuffers.use */
} PlanBuffer;

typedef struct {
    uint32_t n;
    PlanBuffer *buffer;
    /* instructions that make or read a value in the buffer, in program order */
    uint32_t *use;
    /* [instruction * OP_MAX_OUT + output]: the buffer of the value made there, and the last
     * instruction that uses the value; a load's parts have consecutive buffers */
    uint32_t *made, *end;
} PlanBuffers;

/* Whether it is activations, or what ops keep beside them. */
bool plan_buffer_is_kept(const Graph *graph, const PlanBuffer *buffer);
MemoryCategory plan_buffer_category(const Graph *graph, const PlanBuffer *buffer);

/* Bytes of a buffer where nothing is cut. */
double plan_buffer_whole_bytes(const Graph *graph, const PlanBuffer *buffer);

/* The first and the last instruction, in program order, at which a buffer is alive. */
uint32_t plan_buffer_first(const PlanBuffer *buffer);
uint32_t plan_buffer_last(const Program *program, const PlanBuffer *buffer);

/* instance_segment: [tensor * FORM_MAX + form], as plan_segments. */
PlanBuffers *plan_buffers(const Program *program, const Graph *graph,
                          const Instances *instances, const uint16_t *instance_segment);
AUTOPTR(plan_buffers_free, PlanBuffers)
