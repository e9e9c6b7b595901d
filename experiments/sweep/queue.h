/* The order in which a sweep starts what its store lacks, shared with other processes by claims
 * (data/store/store.h).
 *
 * A configuration that a process ended with is started after all others and alone, so that a second
 * end shows that it was the cause. What another process works on waits until that has an answer, or
 * has ended. */
#pragma once

#include "experiments/sweep/configuration.h"

typedef struct Store Store; /* data/store/store.h */

typedef struct Queue Queue;

/* `missing`: Configurations, borrowed. `experiment`: the name that asks. `again`: configurations
 * that ended processes are tried again. */
Queue *queue_new(Store *store, const char *experiment, const GPtrArray *missing,
                 bool again);
void queue_free(Queue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Queue, queue_free)

/* Claims the next configuration while `in_flight` others are worked on. *next: NULL if none may
 * start now. */
bool queue_next(Queue *queue, uint32_t in_flight, const Configuration **next,
                GError **error);
/* Ends the claim of one that was not begun: it is again the next to be started. */
bool queue_give_back(Queue *queue, const Configuration *configuration, GError **error);
/* Whether nothing is left to start, now or later. */
bool queue_is_done(const Queue *queue);
/* Whether all that is left is worked on by other processes. */
bool queue_waits(const Queue *queue);
/* How many were answered by other processes meanwhile. */
uint32_t queue_answered(const Queue *queue);
/* Those that are not started, as they ended processes. */
const GPtrArray *queue_poison(const Queue *queue);
