/* Stages and buckets of a program: walks its instructions in order. Private to sim.
 *
 * A priced collective after a computation opens the next stage. Loads and local
 * conversions cost nothing and neither open a stage nor end a step of collectives or a
 * bucket. */
#pragma once

#include "sim/sim.h"

typedef struct {
    uint64_t bucket_bytes; /* capacity of a bucket; 0: no bucket */
    uint32_t stage;        /* stage of the instruction last passed to sim_step_next */
    bool computed;         /* the stage has computations */
    bool bucket_open;      /* the last priced collective may be fused with the next */
    bool across;           /* that collective was over the replicas */
    Collective kind;       /* and of this kind */
    uint64_t bucket_fill;  /* bytes in its bucket so far */
} SimStep;

static inline bool sim_is_priced(Collective kind)
{
    return kind < COLLECTIVE_SLICE;
}

static inline bool sim_is_priced_collective(const Instr *instr)
{
    return instr->kind == INSTR_COLLECTIVE && sim_is_priced(instr->collective);
}

/* Whether buckets fuse collectives of that kind, where they sum gradients of parameters:
 * all-reduces with one another, and (ZeRO) reduce-scatters with one another. */
bool sim_bucket_takes(Collective kind);

/* Reduces an op's work to the part `factor`: all its FLOPs and bytes are divided
 * (sim/cost/work.c). */
void sim_work_scale(SimWork *work, const ClusterView *view, double factor);

/* Adds the messages inside of machines that an op causes (equation 3 of sim/sim.h). */
void sim_work_inner(const Graph *graph, OpId op, const Rule *rule, SimWork *work);

/* Seconds of an op's kernels on a device that has kernels and these parts of the op's loops, of one
 * GPU; 0 where it has nothing of some loop. */
double sim_kernels_s(SimMemo *memo, const Graph *graph, OpId op, const Device *device,
                     const double of[OP_MAX_LOOPS]);

/* Passes to the next instruction. False if it is a priced collective that joins the open
 * bucket, so that it pays no latency. */
bool sim_step_next(SimStep *step, const Graph *graph, const Instr *instr);
