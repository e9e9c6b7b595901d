/* The task graph: what a plan makes the cluster do, for the event simulator. Private to
 * sim.
 *
 * A task is a computation on one device's stream or a collective over a group of devices,
 * with a duration and the tasks it waits for. Simulators run task graphs and know no
 * planner. Tasks are in program order, so a task's dependencies have lower ids.
 *
 * Lowering: a computation becomes one task a device; a priced collective one task over
 * its group and, where machines communicate inside for it, one computation a device after
 * it (equation 3 of sim/sim.h). Loads and local conversions cost nothing and become no
 * task: who uses their result waits for the maker of what they convert. A collective on
 * the result of another collective waits for that one only, not for its inner
 * communication. */
#ifndef KILTER_SIM_TASK_H
#define KILTER_SIM_TASK_H

#include "sim/evaluate.h"

typedef enum { TASK_COMPUTE, TASK_COLLECTIVE } SimTaskKind;

typedef struct {
    SimTaskKind kind;
    uint8_t stream; /* of each device: 0 computation, 1 communication */
    uint16_t group; /* COLLECTIVE: the devices that take part */
    uint16_t microbatch;
    uint32_t device; /* COMPUTE */
    uint32_t instr;  /* of the program */
    uint32_t stage;  /* of the program */
    double duration_s;
    uint32_t first_dep, n_deps; /* in SimTasks.dep */
} SimTask;

typedef struct {
    uint32_t first, n; /* in SimTasks.member */
} SimGroup;

typedef struct {
    uint32_t n_tasks, n_deps, n_groups;
    SimTask *task;
    uint32_t *dep;    /* task ids */
    SimGroup *group;  /* group 0 is all devices */
    uint32_t *member; /* device ids of the groups */
} SimTasks;

SimTasks *sim_tasks_lower(const SimCase *sim);
void sim_tasks_free(SimTasks *tasks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTasks, sim_tasks_free)

#endif
