/* Streams: in which order each device runs its tasks, and so what waits for what. Private to sim.
 *
 * A task starts when all that it depends on has ended and its stream is free; a collective when
 * that holds on every device of its group. Streams run their tasks in a fixed order, so that every
 * device calls its collectives in the same one:
 *
 *     overlap on     computations in program order on stream 0, collectives on stream 1.
 *                    A collective stands where the program has it, one that reduces a
 *                    parameter's gradient right after what makes its operand. With more
 *                    streams the latter take turns on streams 2 and up.
 *     overlap off    one stream for both, in the order of the tasks. With the
 *                    cost model's times that is equation (1) of sim/sim.h: a collective
 *                    is a barrier, and between two of them the slowest device decides.
 *
 * Transfers are in no stream: one between two groups of a pipeline waits for the one before it. The launches of a
 * lane have a stream of their own, in the order of what they launch. */
#ifndef KILTER_SIM_TASKS_STREAMS_H
#define KILTER_SIM_TASKS_STREAMS_H

#include "sim/tasks/task.h"

typedef struct {
    const SimTasks *tasks;
    bool overlap;
    uint32_t n_streams;
    uint8_t *stream;      /* [task] */
    uint32_t *first_next; /* [task]: in `next`; n_tasks + 1 of them */
    uint32_t *next;       /* tasks that wait for it */
    uint32_t *waiting;    /* [task]: for how many tasks it waits */
} SimStreams;

/* The tasks must outlive the streams. */
SimStreams *sim_streams_new(const SimTasks *tasks, const SimOptions *options);
void sim_streams_free(SimStreams *streams);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimStreams, sim_streams_free)

/* Streams of a device: computation and the communication streams that the options ask
 * for. */
uint32_t sim_streams_count(const SimOptions *options);

#endif
