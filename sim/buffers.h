/* Buffers of a program: what lies in memory and which instructions use it (the rules
 * under "Memory" in sim/sim.h). Private to sim. */
#ifndef KILTER_SIM_BUFFERS_H
#define KILTER_SIM_BUFFERS_H

#include "sim/sim.h"

typedef struct {
    uint32_t birth;    /* the instruction that makes its first value */
    bool at_rest;      /* a parameter or optimizer state: alive all the time */
    bool stays;        /* the next iteration starts from it: alive to the end */
    bool held;         /* every GPU of a machine has all of it */
    uint32_t split;    /* SPLIT_NONE: whole on every device */
    double bytes;      /* at share 1 */
    uint32_t first, n; /* in SimBuffers.use */
} SimBuffer;

typedef struct {
    uint32_t n;
    SimBuffer *buffer;
    uint32_t *use; /* instructions that make or read a value in it, in program order */
} SimBuffers;

SimBuffers *sim_buffers(const Program *program, const Graph *graph,
                        const SimLinear *linear, const uint16_t *segment);
void sim_buffers_free(SimBuffers *buffers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimBuffers, sim_buffers_free)

/* The instances that an instruction reads (at most OP_MAX_IN) and makes (OP_MAX_OUT). */
typedef struct {
    TensorId tensor;
    Form form;
} SimInstance;

uint32_t sim_instr_uses(const Graph *graph, const Instr *instr,
                        SimInstance use[OP_MAX_IN]);
uint32_t sim_instr_makes(const Graph *graph, const Instr *instr,
                         SimInstance make[OP_MAX_OUT]);

#endif
