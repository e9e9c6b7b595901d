/* The task graph: what a plan makes the cluster do, for the event simulators. Private to
 * sim.
 *
 * A task is a computation on one lane or a collective over a group of devices, with a
 * duration and the tasks it waits for. A lane is a set of devices that have the same
 * speed and the same shares, and so do the same at the same time: each of its tasks
 * stands for one on each of its devices. Simulators run task graphs and know no planner.
 * Tasks are in program order, so a task's dependencies have lower ids.
 *
 * Lowering: a computation becomes one task a lane; a priced collective one task over its
 * group and, where machines communicate inside for it, one computation a lane after it
 * (equation 3 of sim/sim.h). Loads and local conversions cost nothing and become no task:
 * who uses their result waits for the maker of what they convert. A collective on the
 * result of another collective waits for that one only, not for its inner communication.
 *
 * When communication may overlap computation, the all-reduces of parameter gradients are
 * held back until somebody uses one of their results, and then fill buckets in the order
 * in which their operands are made: a bucket is closed by the gradient that makes it as
 * large as its limit (the first one of the program has its own limit), as in PyTorch's
 * DistributedDataParallel. A bucket is one task. */
#ifndef KILTER_SIM_TASK_H
#define KILTER_SIM_TASK_H

#include "sim/evaluate.h"

#define SIM_NO_TASK UINT32_MAX

typedef enum { TASK_COMPUTE, TASK_COLLECTIVE } SimTaskKind;

typedef struct {
    SimTaskKind kind;
    Collective collective; /* COLLECTIVE: what, */
    double bytes;          /* on how many bytes of whole tensors, */
    uint32_t from, to;     /* cut by which splits before and after, */
    uint32_t n_fused;      /* of how many instructions, */
    bool gradient;         /* and whether it reduces a parameter's gradient */
    uint16_t group;        /* COLLECTIVE: the devices that take part */
    uint16_t microbatch;
    uint32_t lane;  /* COMPUTE */
    uint32_t instr; /* of the program; of a bucket the first one */
    uint32_t stage; /* of the program */
    double duration_s;
    uint32_t first_dep, n_deps; /* in SimTasks.dep */
} SimTask;

typedef struct {
    uint32_t first, n; /* in SimTasks.member */
} SimGroup;

typedef struct {
    uint32_t n_tasks, n_deps, n_groups, n_lanes, n_devices;
    SimTask *task;
    uint32_t *dep;    /* task ids */
    SimGroup *group;  /* group 0 is all devices */
    uint32_t *member; /* device ids of the groups */
    uint32_t *lane;   /* of each device */
    uint32_t *device; /* [lane]: its first device */
    uint32_t *bucket; /* [instr]: the task that it was fused into, or SIM_NO_TASK */
} SimTasks;

typedef struct {
    bool overlap; /* fuse gradients in buckets when they are ready */
    uint64_t
        first_bucket_bytes; /* limit of the first bucket; the plan's if that is less */
    bool separate;          /* each device has a lane of its own */
} SimLowering;

SimTasks *sim_tasks_lower(const SimCase *sim, const SimLowering *how);
void sim_tasks_free(SimTasks *tasks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTasks, sim_tasks_free)

/* A timeline with a span a task; the simulator fills start_s, end_s, stream and cause. */
SimTimeline *sim_tasks_timeline(const SimTasks *tasks, uint32_t n_instrs);

/* Lane of each device (caller frees); *n_lanes gets how many (sim/lane.c). */
uint32_t *sim_lanes(const SimCase *sim, bool separate, uint32_t *n_lanes);

#endif
