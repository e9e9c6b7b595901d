/* Streams: the order in which each device runs its tasks, and the waiting that follows from it.
 * Private to sim.
 *
 * A task starts when all its dependencies have ended and its stream is free, a collective when this
 * holds on every device of its group. Streams run their tasks in a fixed order, so that all devices
 * call their collectives in the same order:
 *
 *     overlap on     computations in program order on stream 0, collectives on stream 1.
 *                    A collective stands where the program has it, but the all-reduce of a
 *                    parameter's gradient right after the maker of its operand. With more
 *                    streams the latter rotate over streams 2 and up.
 *     overlap off    one stream for both, in the order of the tasks. With the cost model's
 *                    times this is equation (1) of sim/sim.h: a collective is a barrier, and
 *                    the slowest device decides the time between two of them.
 *     overlap forward  as with overlap until the first computation of the backward, which waits
 *                    for all communication before it; from there on as without.
 *
 * With the option order=ready streams have no fixed order (sim/flow/ready.h), and forward is as
 * with overlap.
 *
 * Transfers are in no stream; between two groups of a pipeline each waits for the transfer before
 * it. Copies to hosts have a stream of their own, copies from hosts another, and the launches of a
 * lane one in the order of the tasks that they launch. */
#pragma once

#include "sim/tasks/task.h"

typedef struct {
    const SimTasks *tasks;
    uint32_t overlap; /* SIM_OVERLAP_ */
    /* streams run what is ready first: only launches keep their order */
    bool by_readiness;
    uint32_t n_streams;
    uint8_t *stream;      /* [task] */
    uint32_t *first_next; /* [task + 1]: range in `next` */
    uint32_t *next;       /* the tasks that wait for a task */
    uint32_t *waiting;    /* [task]: number of tasks that it waits for */
} SimStreams;

/* The tasks must outlive the streams. */
SimStreams *sim_streams_new(const SimTasks *tasks, const SimOptions *options);
void sim_streams_free(SimStreams *streams);
