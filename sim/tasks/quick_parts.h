/* The state of quick times (private to sim/tasks/quick*.c). */
#pragma once

#include "sim/tasks/quick.h"

#include "sim/tasks/task_lower.h"

typedef enum { RESULT_NONE, RESULT_COMPUTED, RESULT_SUMMED, RESULT_SENT } ResultKind;

/* Tasks that made a tensor in a group: one per lane, one in all, or one per team of replicas. */
typedef struct {
    uint32_t first;
    ResultKind kind;
} Result;

/* A result that an instruction replaced. */
typedef struct {
    Result *result, old;
} Replaced;

/* How many of each there were before an instruction. */
typedef struct {
    uint32_t n_tasks, n_deps, n_replaced;
} Mark;

/* The transfer of equally cut tensors from group to group. */
typedef struct {
    double latency_s, byte_s;
    /* [team of receivers + 1]: range in `sender` */
    uint32_t *first_sender;
    uint32_t *sender; /* lanes of the sending group, by index */
} Route;

typedef struct {
    double s, flow_s, stage_s; /* its duration; when it ends */
    uint32_t first_dep, n_deps;
    uint32_t place; /* its place in its stream */
    uint16_t group;
    bool collective, transfer;
    uint32_t lane; /* the lane of a computation */
} Task;

/* When the streams of lanes are free, and what they have computed: [lane] each, in one block. */
typedef struct {
    double *flow, *comm, *stage, *busy;
} Streams;

/* The first n tasks have run, in whatever order; the streams then are in `checked`. */
typedef struct {
    uint32_t n;
    double flow_s, stage_s; /* the latest end */
} Checkpoint;

struct SimQuick {
    const Graph *graph;
    const ClusterView *view;
    Plan *plan;
    SimParts *parts;
    SimCase sim;
    SimTeams *teams;
    uint32_t n_groups, n_tensors;
    Rule *rule;     /* [op]: everything whole */
    double **op_s;  /* [group]: [op * lanes + lane]; NaN: not known yet */
    double **sum_s; /* [group]: [tensor] */
    /* [group]: [(replica * 2 + back) * 2]: latency, seconds per byte */
    double **server_s;
    Route **route;  /* [(group * n_groups + to) * 2 + parts] */
    Result *result; /* [group * n_tensors + tensor] */
    GArray *instr;  /* of the program before */
    Mark *mark;     /* [instr] */
    Task *task;
    uint32_t *dep;
    Replaced *replaced; /* the last one last */
    uint32_t n_tasks, n_deps, n_replaced;
    uint32_t mark_room, task_room, dep_room, replaced_room;
    Streams now;
    GArray *check;   /* Checkpoint */
    GArray *checked; /* [checkpoint * 4 * n_lanes] */
    uint32_t *order; /* [n_order]: tasks */
    uint32_t *low;   /* [n_order]: the least place of a task and those after it */
    uint32_t n_order;
    SimQuickSums sums;
};

/* Runs the tasks, of which the first n_same are those of the run before. */
SimQuickTimes quick_run(SimQuick *q, uint32_t n_same);
void quick_streams_init(SimQuick *q);

/* Seconds of an op on a lane of a group, of a sum over the group's replicas, of the way to or from
 * its server, and of a transfer; bytes are the whole tensor's. Each is computed once. */
double quick_op_s(SimQuick *q, const Instr *instr, const SimGroupTeams *lanes,
                  uint32_t k);
double quick_sum_s(SimQuick *q, const Instr *instr);
double quick_server_s(SimQuick *q, const Instr *instr, bool back);
const Route *quick_route(SimQuick *q, const Instr *instr);
double quick_bytes(const SimQuick *q, TensorId tensor);
