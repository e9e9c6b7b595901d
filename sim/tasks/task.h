/* The task graph: what a plan makes the cluster do, for the event simulators. Private to sim.
 *
 * A task is a computation on one lane, a collective of a team or a transfer to one
 * (sim/tasks/team.h), or the launch of one of these by the host of a lane, with a duration and the
 * tasks it waits for. A lane is a set of devices that do the same at the same time: each of its
 * tasks stands for one on each of its devices. Simulators run task graphs and know no planner.
 * Tasks are in program order, so a task's dependencies have lower ids.
 *
 * Lowering: a computation becomes one task per lane of its group; a priced collective one task per
 * team and, where machines communicate inside for it, one computation a lane after it (equation 3
 * of sim/sim.h); a transfer one task per team of receivers, one after the other between two groups
 * of a pipeline (a program with microbatches): other transfers have nothing to do with one another.
 * Loads and local conversions cost nothing and become no task: who uses their result waits for the
 * maker of what they convert. A collective on the result of another collective waits for that one
 * only, not for its inner communication. Without overlap the inner communication of a step's
 * collectives comes after all of them.
 *
 * Where launching takes time (data/cluster/cluster.h), each task has a launch on each lane that
 * runs it, a transfer also where it is sent from; launches stand right before what they launch. A
 * lane's host launches one after the other, and waits for nothing else but, by the option `host`,
 * for what was sent before it launches a computation that uses it. What joins a bucket without
 * overlap is launched with it, and a collective of one device is none.
 *
 * When communication may overlap computation, the all-reduces of parameter gradients are held back
 * until somebody uses one of their results, and then fill buckets in the order in which their
 * operands are made: a bucket is closed by the gradient that makes it as large as its limit (the
 * first one of the program has its own limit), as in PyTorch's DistributedDataParallel. A bucket is
 * one task per team. */
#ifndef KILTER_SIM_TASKS_TASK_H
#define KILTER_SIM_TASKS_TASK_H

#include "sim/tasks/team.h"
#include "sim/tasks/transfer.h"

#define SIM_NO_TASK  UINT32_MAX
#define SIM_NO_SHARE UINT32_MAX

typedef enum { TASK_COMPUTE, TASK_COLLECTIVE, TASK_TRANSFER, TASK_LAUNCH } SimTaskKind;

typedef struct {
    SimTaskKind kind;
    Collective collective; /* COLLECTIVE: what, */
    double bytes;      /* on how many bytes of whole tensors a set, or of the tensor, */
    uint32_t from, to; /* whose shares before and after begin here in SimTasks.share, */
    uint32_t n_fused;  /* of how many instructions, */
    /* by a server: 1 + its rank; sums go to it, then, in a task of their own, back; 0: none */
    uint32_t server;
    bool back;
    bool gradient;               /* whether it reduces a parameter's gradient, */
    bool joins;                  /* and whether it is part of the bucket before it */
    uint32_t team;               /* COLLECTIVE; TRANSFER: the receivers */
    const SimTransfer *transfer; /* TRANSFER */
    uint16_t microbatch;
    uint32_t lane;  /* COMPUTE, LAUNCH */
    uint32_t instr; /* of the program; of a bucket the first one */
    uint32_t stage; /* of an SPMD program; otherwise the group */
    double duration_s;
    uint32_t first_dep, n_deps; /* in SimTasks.dep */
} SimTask;

typedef struct {
    uint32_t n_tasks, n_deps;
    SimTask *task;
    uint32_t *dep; /* task ids */
    SimTeams *teams;
    GPtrArray *transfers; /* SimTransfer */
    GArray *share;        /* double */
    uint32_t *bucket;     /* [instr]: the task that it was fused into, or SIM_NO_TASK */
} SimTasks;

typedef struct {
    bool overlap; /* fuse gradients in buckets when they are ready */
    /* limit of the first bucket; the plan's if that is less */
    uint64_t first_bucket_bytes;
    bool separate; /* each device has a lane of its own */
} SimLowering;

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how);
void sim_tasks_free(SimTasks *tasks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTasks, sim_tasks_free)

/* Adds the launches of tasks that are whole otherwise (sim/tasks/launch.c). */
void sim_tasks_launch(SimTasks *tasks, const SimCase *sim);

static inline bool sim_task_communicates(const SimTask *task)
{
    return task->kind == TASK_COLLECTIVE || task->kind == TASK_TRANSFER;
}

/* The lanes of a task; *n gets how many. Of a transfer those of the receivers. */
const uint32_t *sim_task_lanes(const SimTasks *tasks, const SimTask *task, uint32_t *n);

/* A timeline with a span a task; the simulator fills start_s, end_s, stream and cause. */
SimTimeline *sim_tasks_timeline(const SimTasks *tasks, uint32_t n_instrs);

/* Fills the report's stages. */
void sim_tasks_report(const SimTasks *tasks, const SimTimeline *timeline,
                      SimReport *report);

#endif
