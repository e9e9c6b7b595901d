/* What the parts of quick times share (private to sim/tasks/quick*.c). */
#ifndef KILTER_SIM_TASKS_QUICK_PARTS_H
#define KILTER_SIM_TASKS_QUICK_PARTS_H

#include "sim/tasks/quick.h"

#include "sim/tasks/task_lower.h"

typedef enum { RESULT_NONE, RESULT_COMPUTED, RESULT_SUMMED, RESULT_SENT } ResultKind;

/* Tasks that made a tensor in a group: a task a lane of it, one in all, or one a team of replicas. */
typedef struct {
    uint32_t epoch; /* of an older program: none */
    uint32_t first;
    ResultKind kind;
} Result;

/* Transfers of tensors that are cut alike, from group to group. */
typedef struct {
    double latency_s, byte_s;
    uint32_t *
        first_sender; /* [team of receivers], in `sender`; one more than there are teams */
    uint32_t *sender; /* lanes of the sending group, by index */
} Route;

typedef struct {
    double s, flow_s, stage_s; /* what it takes; when it ends */
    uint32_t first_dep, n_deps;
    uint32_t place; /* where it stands in its stream */
    uint16_t group;
    bool collective, transfer;
    uint32_t lane; /* of a computation */
} Task;

struct SimQuick {
    const Graph *graph;
    const ClusterView *view;
    Plan *plan;
    SimParts *parts;
    SimCase sim;
    SimTeams *teams;
    uint32_t n_groups, n_tensors;
    Rule *rule;        /* [op]: everything whole */
    double **op_s;     /* [group]: [op * lanes + lane]; NaN: not known yet */
    double **sum_s;    /* [group]: [tensor] */
    double **server_s; /* [group]: [(replica * 2 + back) * 2]: latency, a byte */
    Route **route;     /* [(group * n_groups + to) * 2 + parts] */
    Result *result;    /* [group * n_tensors + tensor] */
    uint32_t epoch;
    GArray *task, *dep;
    double *flow_last, *comm_last, *stage_last; /* [lane]: when its stream is free */
    double *busy;                               /* [lane] */
    uint32_t *order;
    uint32_t n_order;
    bool exact;
};

/* Seconds on a lane of a group; of a sum over the group's replicas; to or from its server; the way of a transfer; bytes of
 * the whole tensor. Looked up once each. */
double quick_op_s(SimQuick *q, const Instr *instr, const SimGroupTeams *lanes,
                  uint32_t k);
double quick_sum_s(SimQuick *q, const Instr *instr);
double quick_server_s(SimQuick *q, const Instr *instr, bool back);
const Route *quick_route(SimQuick *q, const Instr *instr);
double quick_bytes(const SimQuick *q, TensorId tensor);

#endif
