/* The state of running execution traces, shared by their nodes and their collectives. Private to
 * sim/flow. */
#pragma once

#include "data/formats/trace/trace.h"
#include "sim/flow/execution.h"
#include "sim/network/measured.h"

typedef struct {
    uint32_t *waiting, *first_next,
        *next;    /* [node]: range in `next` of the nodes that wait for it */
    GQueue ready; /* computations that are ready */
    bool busy;
    double *start_s; /* [node]; NAN when it has ended */
} ExecutionRank;

typedef struct ExecutionRun ExecutionRun;
struct ExecutionRun {
    const GPtrArray *traces;
    SimEngine *engine;
    SimNetwork *network;
    SimMeasured *measured;
    ExecutionRank *rank;
    Algorithm algorithm[TRAFFICS];
    GHashTable *group, *mailbox; /* by name; by "from to tag" */
    GPtrArray *lowered, *runs;   /* kept until the end */
    uint64_t n_done;
    /* called when a collective's node has ended on a rank */
    void (*communicated)(ExecutionRun *run, uint32_t rank, uint32_t node);
    SimExecutionReport *report;
    GError *error;
};

static inline const TraceNode *execution_node(const ExecutionRun *run, uint32_t rank,
                                              uint32_t node)
{
    return trace_node(run->traces->pdata[rank], node);
}

static inline uint64_t execution_packed(uint32_t rank, uint32_t node)
{
    return (uint64_t)rank << 32 | node;
}

/* Finds the ranks of each group, of which `listed` (may be NULL) has some: run->group.
 * KILTER_ERROR_INPUT in run->error. */
void execution_find_groups(ExecutionRun *run, GHashTable *listed);
/* KILTER_ERROR_INPUT names a rank that never comes to a collective for which others wait, if there
 * is one. */
bool execution_check_meetings(const ExecutionRun *run, GError **error);
/* A collective is ready on a rank; run->communicated is called for each rank when it has ended. */
void execution_start_collective(ExecutionRun *run, uint32_t rank, uint32_t node);
