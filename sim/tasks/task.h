/* The task graph: the work of a plan's iteration on the cluster, for the event simulators. Private
 * to sim.
 *
 * A task is a computation on one lane, a collective of a team or a transfer to a team
 * (sim/tasks/team.h), or the launch of one of these by the host of a lane, with a duration and the
 * tasks it waits for. A lane is a set of devices that do the same at the same time: each of its
 * tasks stands for one on each of its devices. Simulators run task graphs and know no planner.
 * Tasks are in program order, so a task's dependencies have lower ids.
 *
 * A plan is lowered to tasks like this. A computation becomes one task per lane of its group. A
 * priced collective becomes one task per team and, where it needs communication inside machines,
 * one computation per lane after it (equation 3 of sim/sim.h). A transfer becomes one task per team
 * of receivers; between two groups of a pipeline (a program with microbatches) transfers run one
 * after the other, unless they are free of each other, all others are independent. Loads and local
 * conversions cost nothing and become no task: the users of their result wait for the maker of
 * their operand. A collective on the result of another collective waits for that collective only,
 * not for its inner communication. Without overlap the inner communication of a step's collectives
 * comes after all of them.
 *
 * Where launching takes time (data/cluster/cluster.h), each task has a launch on each lane that
 * runs it, a transfer also on the lanes of its senders; a launch stands right before its task. A
 * lane's host launches one task after the other and otherwise waits for nothing; with the option
 * `host` it also waits for received data before it launches a computation that uses them. Without
 * overlap, an all-reduce that joins a bucket is launched with the bucket. A collective of one
 * device is not launched.
 *
 * When communication may overlap computation, the all-reduces of parameter gradients are held back
 * until an instruction uses one of their results, and then fill buckets in the order in which their
 * operands are made: a bucket is closed by the gradient that makes it as large as its limit (the
 * first one of the program has its own limit), as in PyTorch's DistributedDataParallel. So do
 * reduce-scatters of gradients whose ranks get the same shares (ZeRO). A bucket is one task per
 * team. */
#pragma once

#include "data/program/blocks.h"
#include "sim/tasks/team.h"
#include "sim/tasks/transfer.h"

#define SIM_NO_TASK  UINT32_MAX
#define SIM_NO_SHARE UINT32_MAX

typedef enum { TASK_COMPUTE, TASK_COLLECTIVE, TASK_TRANSFER, TASK_LAUNCH } SimTaskKind;

/* There are millions of them: the order of the members leaves no gaps. */
typedef struct {
    SimTaskKind kind : 8;
    Collective collective : 8; /* COLLECTIVE: its kind */
    SimCopy copies : 8;        /* COMPUTE: to or from the host */
    bool back;
    bool gradient; /* it reduces a parameter's gradient */
    bool joins;    /* it is part of the bucket before it */
    uint16_t microbatch;
    /* COLLECTIVE: bytes of whole tensors per set; TRANSFER: bytes of the tensor */
    double bytes;
    /* COLLECTIVE: where its shares before and after begin in SimTasks.share */
    uint32_t from, to;
    uint32_t n_fused; /* COLLECTIVE: number of instructions fused in it */
    /* 1 + the rank of the server that sums go to, and come `back` from in a task of their own; 0:
     * none */
    uint32_t server;
    const SimTransfer *transfer; /* TRANSFER */
    uint32_t team;               /* COLLECTIVE; TRANSFER: the receivers */
    uint32_t lane;               /* COMPUTE, LAUNCH */
    uint32_t instr;              /* of the program; for a bucket its first instruction */
    uint32_t stage;              /* stage of an SPMD program; otherwise the group */
    double duration_s;
    uint32_t first_dep, n_deps; /* range in SimTasks.dep */
} SimTask;

typedef struct {
    uint32_t n_tasks, n_deps;
    SimTask *task;
    uint32_t *dep; /* task ids */
    SimTeams *teams;
    GPtrArray *transfers; /* SimTransfer */
    GArray *share;        /* double */
    /* the first computation of the backward; n_tasks if there is none */
    uint32_t backward;
    uint32_t *bucket; /* [instr]: the task that it was fused into, or SIM_NO_TASK */
} SimTasks;

typedef struct {
    /* SIM_OVERLAP_: where gradients are fused in buckets when they are ready */
    uint32_t overlap;
    /* limit of the first bucket, if it is less than the plan's */
    uint64_t first_bucket_bytes;
    bool separate; /* each device has a lane of its own */
    /* transfers between two groups of a pipeline wait for no other ones */
    bool free_transfers;
    /* layers whose gathered parameters there may be at once; 0: any number */
    uint32_t ahead;
} SimLowering;

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how);
AUTOPTR(sim_tasks_free, SimTasks)

/* Adds the launches to a task graph that is otherwise complete (sim/tasks/launch.c). */
void sim_tasks_launch(SimTasks *tasks, const SimCase *sim);

static inline bool sim_task_communicates(const SimTask *task)
{
    return task->kind == TASK_COLLECTIVE || task->kind == TASK_TRANSFER;
}

/* The lanes of a task, for a transfer the receivers' lanes; *n gets their number. */
const uint32_t *sim_task_lanes(const SimTasks *tasks, const SimTask *task, uint32_t *n);

/* A timeline with one span per task; the simulator fills in start_s, end_s, stream and cause. */
SimTimeline *sim_tasks_timeline(const SimTasks *tasks, uint32_t n_instrs);

/* Reports times of the whole program, by `stage`, from tasks of its part; NAN: they do not tell. */
bool sim_blocks_run(const SimCase *sim, const SimTasks *tasks, SimReport *report);
