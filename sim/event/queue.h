/* The pending events, in the total order (time, priority, sequence number). Private to
 * sim/event/engine.c.
 *
 * A ladder queue (Tang, Goh and Thng 2005, doi:10.1145/1103323.1103324) with one rung: time is cut
 * into months of equal width, and the events of a later month are kept there unsorted, in chunks
 * that are written and read sequentially, which caches serve well. When a month begins its events
 * are sorted; events added for the current month go to a binary heap. The heap also takes
 * everything if events are few, or if no width tells them apart. Width and number of months follow
 * from the events pushed and popped, so equal calls give an equal state.
 *
 * Chosen by the hold model (tests/bench/network.c), by which it handles twice as many events a
 * second as a heap with 100 pending events, 3 to 4 times as many with 10^3 and 10^4, and 6 times as
 * many with 10^5, where a calendar queue (Brown 1988, doi:10.1145/63039.63045) misses the cache at
 * every event. */
#pragma once

#include <stdbool.h>

#include "sim/event/engine.h"

typedef struct {
    double time_s;
    uint64_t order; /* sim_event_order() */
    SimHandler handler;
    void *context;
    uint64_t argument;
} SimEvent;

/* The part of an event that decides its order. */
typedef struct {
    double time_s;
    uint64_t order;
    SimEvent *event;
} SimEventKey;

enum { SIM_SEQUENCE_BITS = 48 };

/* The order of events at one time: by priority, then by sequence number, in one word, since moving
 * events is most of the work where many are pending. */
static inline uint64_t sim_event_order(uint32_t priority, uint64_t sequence)
{
    g_assert(priority >> (64 - SIM_SEQUENCE_BITS) == 0 &&
             sequence >> SIM_SEQUENCE_BITS == 0);
    return (uint64_t)priority << SIM_SEQUENCE_BITS | sequence;
}

typedef struct SimChunk SimChunk;

typedef struct {
    SimChunk *first, *last; /* only the last one may have room */
    uint32_t room;          /* left in it */
} SimMonth;

typedef struct {
    uint32_t n; /* number of all pending events */
    /* the heap */
    SimMonth places; /* of its events */
    SimEvent *free;  /* the first place that is not in use; its context is the next one */
    SimEventKey *heap;
    uint32_t n_heap, heap_capacity;
    /* the present month: sorted, from `at` on */
    SimChunk *now;
    SimEventKey *sorted, *scratch;
    uint32_t *day;
    uint32_t at, n_now, now_capacity;
    /* the months to come */
    SimMonth *month; /* month m is at m mod n_months; NULL: all events are in the heap */
    uint32_t n_months; /* power of two */
    double months_per_s;
    uint64_t present;
    SimChunk *free_chunk;
    uint64_t pops, cost;  /* since the months were made: pops, and wasted steps */
    uint32_t misfits;     /* remakings in a row that did not fit */
    uint32_t most, least; /* numbers of events beyond which the months are made anew */
} SimQueue;

void sim_queue_init(SimQueue *queue);
void sim_queue_clear(SimQueue *queue);
void sim_queue_push(SimQueue *queue, const SimEvent *event);
/* The queue must not be empty. */
SimEvent sim_queue_pop(SimQueue *queue);
