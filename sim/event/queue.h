/* The pending events, in the total order (time, priority, sequence number). Private to
 * sim/event/engine.c.
 *
 * A ladder queue (Tang, Goh and Thng 2005, doi:10.1145/1103323.1103324) with one rung: time
 * is cut into months of equal width, and what is due in a later month is kept there
 * unsorted, in chunks that are written and read in a row, so that memory is not waited for.
 * When a month begins its events are sorted; those that come during it go to a binary heap.
 * Few events are in the heap altogether, and so are events that no width tells apart. Width
 * and number of months follow the events: a function of what was pushed and popped, like
 * everything else here.
 *
 * Chosen by the hold model (tests/bench/network.c). With 10^5 pending events it handles 8
 * times as many a second as the heap alone and 3 times as many as a calendar queue (Brown
 * 1988, doi:10.1145/63039.63045), which misses the cache at every event; with 10^3 and 10^4
 * 2 to 3 times as many as the heap and as many as the calendar. */
#ifndef KILTER_SIM_EVENT_QUEUE_H
#define KILTER_SIM_EVENT_QUEUE_H

#include <stdbool.h>

#include "data/data.h"
#include "sim/event/engine.h"

typedef struct {
    double time_s;
    uint64_t sequence;
    SimHandler handler;
    void *context;
    uint64_t argument;
    uint32_t priority;
    uint32_t next; /* in the list of free places of the heap */
} SimEvent;

/* The part of an event that is compared. */
typedef struct {
    double time_s;
    uint64_t sequence;
    uint32_t priority;
    uint32_t event; /* place in the heap's events, or among those of the month */
} SimEventKey;

typedef struct SimChunk SimChunk;

typedef struct {
    SimChunk *chunk; /* the last one; only it may have room */
    uint32_t room;   /* that it has left */
} SimMonth;

typedef struct {
    uint32_t n; /* events in all */
    /* the heap */
    SimEvent *event; /* places; `free` is the first that is not in use */
    uint32_t n_places, capacity, free;
    SimEventKey *heap;
    uint32_t n_heap, heap_capacity;
    /* the present month: sorted, from `at` on */
    SimEvent *now;
    SimEventKey *sorted, *scratch;
    uint32_t *day;
    uint32_t at, n_now, now_capacity;
    /* those to come */
    SimMonth *month; /* month m is at m mod n_months; NULL: all events are in the heap */
    uint32_t n_months; /* power of two */
    double months_per_s;
    uint64_t present;
    SimChunk *free_chunk;
    uint64_t pops, cost;  /* since the months were made: steps that were not needed */
    uint32_t misfits;     /* makings in a row that did not fit */
    uint32_t most, least; /* numbers of events at which to make the months anew */
} SimQueue;

void sim_queue_init(SimQueue *queue);
void sim_queue_clear(SimQueue *queue);
void sim_queue_push(SimQueue *queue, const SimEvent *event);
/* The queue must not be empty. */
SimEvent sim_queue_pop(SimQueue *queue);

#endif
