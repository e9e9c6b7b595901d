/* Devices that take what is ready first: the queues behind the option `order` of flow. Private to
 * sim/flow.
 *
 * Each stream of a lane has a queue. A computation or a collective joins the queues of its lanes
 * when all that it waits for has ended, and starts when it is the first of them all. A collective
 * joins all of its queues at once, so lanes agree on the order of their collectives and none waits
 * in a circle. */
#pragma once

#include "sim/tasks/streams.h"

typedef struct SimReady SimReady;

/* The streams must outlive it. */
SimReady *sim_ready_new(const SimStreams *streams);
void sim_ready_free(SimReady *ready);

/* Whether a task of this kind queues at all. */
static inline bool sim_ready_queues(const SimTask *task)
{
    return task->kind == TASK_COMPUTE || task->kind == TASK_COLLECTIVE;
}

/* The task joins its queues; returns whether it starts at once. */
bool sim_ready_join(SimReady *ready, uint32_t task);

/* The task, which has run, leaves its queues. started: the tasks that start, in order; valid until
 * the next call. */
const GArray *sim_ready_leave(SimReady *ready, uint32_t task);
