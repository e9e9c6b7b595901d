/* How a plan is lowered to tasks (sim/tasks/task.h): the common state, then functions for each kind
 * of instruction. Private to sim/tasks/task*.c. */
#pragma once

#include "sim/cost/step.h"
#include "sim/tasks/task.h"

/* The tasks that make an instance. */
typedef struct {
    /* task of the first team of `group` over `axis`; the other teams' tasks follow. SIM_NO_TASK: no
     * communication made it */
    uint32_t communicate;
    /* task of the group's first lane; the other lanes' tasks follow. SIM_NO_TASK: no computation
     * made it */
    uint32_t compute;
    uint16_t group;
    FormAxis axis : 8;
    /* if joined, `compute` is the first of a row of Lower.joined, which has a task, or SIM_NO_TASK,
     * for every lane */
    bool joined;
} Made;

/* Inner communication that waits until the step's collectives are over, or a local conversion of a
 * result that waits. */
typedef struct {
    uint32_t instr, stage;
} Inner;

typedef struct TaskAhead TaskAhead;
typedef struct TaskExperts TaskExperts;
typedef struct TaskRing TaskRing;

/* An exchange of tensor parallelism in a group, and the products next to it (task_overlap.c). */
typedef struct {
    uint32_t first, n; /* its tasks */
    double open_s;     /* what may still run beside later products */
    double products_s; /* of products since, which hide the next one */
    uint16_t microbatch;
} TaskOverlap;

typedef struct {
    const SimCase *sim;
    const SimLowering *how;
    bool overlap;     /* at this place of the program */
    TaskAhead *ahead; /* NULL: nothing waits but for its operands */
    SimTasks *tasks;
    GArray *task, *dep;
    Made *maker;   /* [place * FORM_MAX + form]: tasks that make the instance */
    GArray *held;  /* gradients' all-reduces that wait for their bucket (task_bucket.c) */
    bool *is_held; /* [place * FORM_MAX + form]: its all-reduce is in `held` */
    GArray **inner; /* [group]: Inner */
    /* uint32_t, rows of n_lanes: tasks that make instances of several groups */
    GArray *joined;
    uint32_t *alike; /* [op]: first task of its last computation, or SIM_NO_TASK */
    bool *last;      /* [instr]: no later instruction computes its op in its group */
    uint32_t *sent;  /* [group * n_groups + to_group]: first task of the last transfer */
    SimStep *step;   /* [group] */
    TaskOverlap *beside;  /* [group]; NULL: no software on the devices overlaps */
    TaskRing *ring;       /* NULL: keys and values are gathered */
    TaskExperts *experts; /* NULL: their exchanges are plain all-to-alls */
    GHashTable *shares;   /* tensor, team and form -> place in tasks->share, plus 1 */
    bool any_bucket;
} Lower;

/* --- task_made.c: instances, the tasks that make them, and new ones --- */

/* The index of an instance in `maker` and `is_held`. */
uint32_t task_instance(const Lower *lower, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form);
Made *task_maker(const Lower *lower, const Instr *instr, TensorId tensor, Form form);
const Instr *task_instr(const Lower *lower, uint32_t i);
const SimGroupTeams *task_group_lanes(const Lower *lower, const Instr *instr);

/* Adds a dependency to the next task; SIM_NO_TASK adds none. */
void task_add_dep(Lower *lower, uint32_t dep);

/* Appends a task whose dependencies begin at `first_dep`; returns its id. */
uint32_t task_add(Lower *lower, SimTask task, uint32_t first_dep);

/* The task that communicates an instance to a lane (by index in the group), or SIM_NO_TASK. */
uint32_t task_communicated(const Lower *lower, const Made *made, uint32_t index);

/* The task that a computation on a lane waits for, or SIM_NO_TASK; a collective waits for another
 * task, as it skips the inner communication of a collective before it. */
uint32_t task_made_for(const Lower *lower, const Made *made, uint32_t index,
                       bool collective);

/* Whether a collective sums the gradient of a parameter. */
bool task_reduces_gradient(const Graph *graph, const Instr *instr);

/* --- task_compute.c --- */

void task_lower_compute(Lower *lower, const Instr *instr, SimTask task);

/* Adds the inner communication that waits in a group, and the conversions of its results. */
void task_lower_inner(Lower *lower, uint32_t group);

void task_lower_local(Lower *lower, const Instr *instr, const SimTask *task);

/* --- task_collective.c --- */

void task_lower_collective(Lower *lower, const Instr *instr, SimTask task,
                           bool pays_latency);

/* The latency and seconds per byte of messages from each worker of a team's sets to the worker that
 * serves them, or `back`. */
void task_server_line(const ClusterView *view, const SimTeam *team, uint32_t server,
                      bool back, double *latency_s, double *byte_s);

/* The teams that a collective runs in, from *first on. */
void task_teams(const Lower *lower, const Instr *instr, uint32_t *first, uint32_t *n);

/* Adds the tasks that a team's collective on an instance waits for; returns 1 + the last of them,
 * or 0. */
uint32_t task_add_sources(Lower *lower, const Instr *instr, const SimTeam *team);

/* Bytes of one set's tensor: the part of its replica, or of its position. */
double task_bytes(const Lower *lower, const Instr *instr, const SimTeam *team);

/* --- task_transfer.c --- */

void task_lower_transfer(Lower *lower, const Instr *instr, SimTask task);

/* Where SimTasks.share has the shares of a team's ranks in the form, kept once; *largest gets the
 * largest share. SIM_NO_SHARE if the form does not cut. */
uint32_t task_shares_of(Lower *lower, const Instr *instr, const SimTeam *team, Form form,
                        double *largest);

/* --- task_bucket.c --- */

void task_bucket_init(Lower *lower);

/* Holds the instruction back for a bucket if possible; returns whether it does. */
bool task_hold(Lower *lower, const Instr *instr, const SimTask *task);

/* Whether an instruction uses a result that is held back. */
bool task_uses_held(const Lower *lower, const Instr *instr);

/* Fills buckets with all instructions that are held back. */
void task_flush(Lower *lower);
/* Makes those of full buckets of reduce-scatters, which computations wait for. */
void task_close_full(Lower *lower);

/* --- task_ring.c --- */

/* NULL: the strategy has no ring. */
TaskRing *task_ring_new(const SimCase *sim, uint32_t n_groups);
void task_ring_free(TaskRing *ring);
/* Of an exchange by heads and around rings, how much of its tensor is exchanged for heads, and
 * whether that comes first; 0: it is another one, or around one ring. */
double task_ring_heads(const Lower *lower, const Instr *instr, bool *forward);
/* Sees an exchange's tasks, and a computation's least time. */
void task_ring_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n);
void task_ring_attention(Lower *lower, const Instr *instr, double seconds);

/* --- task_overlap.c --- */

/* [group]; NULL where no device's software overlaps: then the others do nothing. */
TaskOverlap *task_overlap_new(const ClusterView *view, uint32_t n_groups);
/* A computation on all lanes of the group that takes so long, and an exchange among positions by
 * the tasks from `first` on. */
void task_overlap_product(Lower *lower, const Instr *instr, double seconds);
void task_overlap_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n);

/* Makes collectives' tasks shorter by so many seconds, and their bytes fewer. */
void task_shorten(Lower *lower, uint32_t first, uint32_t n, double seconds);

/* --- task_experts.c --- */

/* NULL where no device's software does more with experts' tokens than an all-to-all of copies: then
 * the others do nothing. */
TaskExperts *task_experts_new(const Lower *lower);
void task_experts_free(TaskExperts *experts);
/* Of a collective's bytes the part that a team sends; 1 for all but tokens of experts. */
double task_experts_part(const Lower *lower, const Instr *instr, const SimTeam *team);
/* A computation of a group that takes so long, and an exchange by the tasks from `first` on. */
void task_experts_compute(Lower *lower, const Instr *instr, double seconds);
void task_experts_exchange(Lower *lower, const Instr *instr, uint32_t first, uint32_t n);

/* --- task_ahead.c --- */

void task_ahead_init(Lower *lower);
void task_ahead_clear(Lower *lower);
/* Of an instruction that gathers a parameter: adds to the next task what it waits for. */
void task_ahead_gather(Lower *lower, const Instr *instr, uint32_t i);
/* The tasks that reduce a parameter's gradient. */
void task_ahead_reduce(Lower *lower, const Instr *instr, uint32_t first, uint32_t n);
/* Brings back the activations that the instruction needs; the first of a task per lane, or
 * SIM_NO_TASK. */
uint32_t task_ahead_return(Lower *lower, SimTask task);
/* Adds to the next task, a computation on the group's k-th lane, the copies that it waits for. */
void task_ahead_wait(Lower *lower, uint32_t i, uint32_t k);
/* After a computation by the tasks from `first` on: sends to the host what it is the last to
 * need. */
void task_ahead_end(Lower *lower, const Instr *instr, SimTask task, uint32_t first);
