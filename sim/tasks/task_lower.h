/* How a plan becomes tasks (sim/tasks/task.h), in pieces: what they all keep and use, then a function
 * for each kind of instruction. Private to sim/flow/task*.c. */
#ifndef KILTER_SIM_TASKS_TASK_LOWER_H
#define KILTER_SIM_TASKS_TASK_LOWER_H

#include "sim/cost/step.h"
#include "sim/tasks/task.h"

/* Tasks that make an instance. */
typedef struct {
    /* of the first of the teams of `group` over `axis`, the others follow; SIM_NO_TASK: nobody
     * communicated for it */
    uint32_t communicate;
    /* of the group's first lane, the others follow; SIM_NO_TASK if it is none */
    uint32_t compute;
    uint16_t group;
    FormAxis axis;
} Made;

/* Inner communication that waits until the step's collectives are over, or a local conversion of
 * what it may make. */
typedef struct {
    uint32_t instr, stage;
} Inner;

typedef struct {
    const SimCase *sim;
    const SimLowering *how;
    SimTasks *tasks;
    GArray *task, *dep;
    Made *maker;   /* [place * FORM_MAX + form]: tasks that make the instance */
    GArray *held;  /* gradients' all-reduces that wait for their bucket (task_bucket.c) */
    bool *is_held; /* [place * FORM_MAX + form]: its all-reduce is in `held` */
    GArray **inner;  /* [group]: Inner */
    uint32_t *added; /* [op]: microbatches that have run */
    uint32_t *sent;  /* [group * n_groups + to_group]: first task of the last transfer */
    SimStep *step;   /* [group] */
    bool any_bucket;
} Lower;

/* --- task_made.c: instances, the tasks that make them, and new ones --- */

/* Its place in `maker` and `is_held`. */
uint32_t task_instance(const Lower *lower, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form);
Made *task_maker(const Lower *lower, const Instr *instr, TensorId tensor, Form form);
const Instr *task_instr(const Lower *lower, uint32_t i);
const SimGroupTeams *task_group_lanes(const Lower *lower, const Instr *instr);

/* SIM_NO_TASK is none. */
void task_add_dep(Lower *lower, uint32_t dep);

/* Appends a task whose dependencies were added since `first_dep`. */
uint32_t task_add(Lower *lower, SimTask task, uint32_t first_dep);

/* The task that communicates what a lane (of the group, by index) waits for. */
uint32_t task_communicated(const Lower *lower, const Made *made, uint32_t index);

/* The task that a computation on a lane waits for, or SIM_NO_TASK; and the task that a collective
 * waits for, which passes over the inner communication of another. */
uint32_t task_made_for_compute(const Lower *lower, const Made *made, uint32_t index);
uint32_t task_made_for_collective(const Lower *lower, const Made *made, uint32_t index);

/* --- task_compute.c --- */

void task_lower_compute(Lower *lower, const Instr *instr, SimTask task);

/* The inner communication that waits in a group, and the conversions of what it makes. */
void task_lower_inner(Lower *lower, uint32_t group);

void task_lower_local(Lower *lower, const Instr *instr, const SimTask *task);

/* --- task_collective.c --- */

void task_lower_collective(Lower *lower, const Instr *instr, SimTask task,
                           bool pays_latency);

/* The line of a message from each worker of a team's sets to the one that serves them, or `back`. */
void task_server_line(const ClusterView *view, const SimTeam *team, uint32_t server,
                      bool back, double *latency_s, double *byte_s);

bool task_reduces_gradient(const Graph *graph, const Instr *instr);

/* The teams that a collective runs in, from *first on. */
void task_teams(const Lower *lower, const Instr *instr, uint32_t *first, uint32_t *n);

/* Adds the tasks that a team's collective on an instance waits for; returns the last one + 1, or 0. */
uint32_t task_add_sources(Lower *lower, const Instr *instr, const SimTeam *team);

/* Bytes of one set's tensor: its replica's part, or what lies at its position. */
double task_bytes(const Lower *lower, const Instr *instr, const SimTeam *team);

/* --- task_transfer.c --- */

void task_lower_transfer(Lower *lower, const Instr *instr, SimTask task);

/* --- task_bucket.c --- */

void task_bucket_init(Lower *lower);

/* Whether the instruction is held back for a bucket. */
bool task_hold(Lower *lower, const Instr *instr, const SimTask *task);

/* Whether an instruction uses what is held back. */
bool task_uses_held(const Lower *lower, const Instr *instr);

/* Fills buckets with all that is held back. */
void task_flush(Lower *lower);

#endif
