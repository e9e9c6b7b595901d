/* Execution traces that run: what their nodes and their collectives share. Private to sim/flow. */
#ifndef KILTER_SIM_FLOW_EXECUTION_STATE_H
#define KILTER_SIM_FLOW_EXECUTION_STATE_H

#include "sim/flow/execution.h"
#include "sim/network/lower/lowering.h"

typedef struct {
    uint32_t *waiting, *first_next,
        *next;    /* of each node; in `next`, those that wait for it */
    GQueue ready; /* computations */
    bool busy;
    double *start_s; /* [node]; NAN when it has ended */
} ExecutionRank;

typedef struct {
    const GPtrArray *traces;
    SimEngine *engine;
    SimNetwork *network;
    ExecutionRank *rank;
    Algorithm algorithm[TRAFFICS];
    GHashTable *group, *mailbox; /* by name; by "from to tag" */
    GPtrArray *lowered, *runs;   /* kept until the end */
    uint64_t n_done;
    SimExecutionReport *report;
    GError *error;
} ExecutionRun;

static inline const TraceNode *execution_node(const ExecutionRun *run, uint32_t rank,
                                              uint32_t node)
{
    return trace_node(run->traces->pdata[rank], node);
}

static inline uint64_t execution_packed(uint32_t rank, uint32_t node)
{
    return (uint64_t)rank << 32 | node;
}

/* A node has ended; the second one is a handler, of execution_packed. */
void execution_communicated(ExecutionRun *run, uint32_t rank, uint32_t node);
void execution_ended(SimEngine *engine, void *context, uint64_t argument);

/* Which ranks each group has: run->group. A collective is ready on a rank. */
void execution_find_groups(ExecutionRun *run);
void execution_start_collective(ExecutionRun *run, uint32_t rank, uint32_t node);

#endif
