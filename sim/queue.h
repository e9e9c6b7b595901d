/* The pending events, in the total order (time, priority, sequence number). Private to
 * sim/engine.c.
 *
 * A calendar queue (Brown 1988, doi:10.1145/63039.63045) in front of a binary heap. Time
 * is cut into days of equal width; day d is a list in bucket d mod (number of buckets).
 * Events of the present day and before are in the heap, which finds their exact order, so
 * that the calendar only sorts roughly. Few events stay in the heap altogether, and so do
 * events that no width tells apart. Width and number of buckets follow the events: a
 * function of what was pushed and popped, like everything else here.
 *
 * Chosen by the hold model (tests/bench/network.c): with 10^5 pending events 4 to 9 times
 * as many events a second as the binary heap alone, with 10^3 3 to 4 times. */
#ifndef KILTER_SIM_QUEUE_H
#define KILTER_SIM_QUEUE_H

#include <stdbool.h>

#include "sim/engine.h"

typedef struct {
    double time_s;
    uint64_t sequence;
    SimHandler handler;
    void *context;
    uint64_t argument;
    uint32_t priority;
    uint32_t next; /* in its bucket, or in the list of free places */
} SimEvent;

/* What the heap compares. */
typedef struct {
    double time_s;
    uint64_t sequence;
    uint32_t priority, event;
} SimEventKey;

typedef struct {
    SimEvent *event; /* places; `free` is the first that is not in use */
    uint32_t n, n_places, capacity, free;
    SimEventKey *heap;
    uint32_t n_heap, heap_capacity;
    uint32_t *bucket;   /* first event of each; NULL: all events are in the heap */
    uint32_t n_buckets; /* power of two */
    double days_per_s;
    uint64_t day;        /* the present one */
    uint64_t pops, cost; /* since the calendar was made: steps that were not needed */
    uint32_t misfits;    /* calendars in a row that did not fit */
    uint32_t retry;      /* number of events at which to try a calendar */
} SimQueue;

void sim_queue_init(SimQueue *queue);
void sim_queue_clear(SimQueue *queue);
void sim_queue_push(SimQueue *queue, const SimEvent *event);
/* The queue must not be empty. */
SimEvent sim_queue_pop(SimQueue *queue);

#endif
