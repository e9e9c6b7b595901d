#include "sim/queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum {
    FEW_EVENTS = 256, /* that the heap alone does well */
    SAMPLES = 64,     /* of events' times, for the width of a day */
    EVENTS_A_DAY = 2,
    COST_A_POP = 8, /* unneeded steps after which the calendar is made anew */
    MISFITS = 3,    /* calendars in a row that soon had to be, after which none is made */
    DAYS_AHEAD = 6,
    DEEP = 64, /* a heap in which an event costs as much as such a step */
};

/* Days are numbered up to here; what comes later is of the last one. */
static const double LAST_DAY = 0x1p62;

void sim_queue_init(SimQueue *queue)
{
    *queue = (SimQueue){.free = NONE, .retry = FEW_EVENTS};
}

void sim_queue_clear(SimQueue *queue)
{
    g_free(queue->event);
    g_free(queue->heap);
    g_free(queue->bucket);
}

/* --- heap --- */

static inline bool before(const SimEventKey *a, const SimEventKey *b)
{
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static void heap_push(SimQueue *queue, uint32_t event)
{
    const SimEvent *e = &queue->event[event];
    const SimEventKey key = {e->time_s, e->sequence, e->priority, event};
    if (queue->n_heap == queue->heap_capacity) {
        queue->heap_capacity = MAX(64, 2 * queue->heap_capacity);
        queue->heap = g_renew(SimEventKey, queue->heap, queue->heap_capacity);
    }
    SimEventKey *heap = queue->heap;
    uint32_t i = queue->n_heap++;
    for (; i > 0 && before(&key, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = key;
    queue->cost += queue->n_heap > DEEP;
}

static uint32_t heap_pop(SimQueue *queue)
{
    SimEventKey *heap = queue->heap;
    const uint32_t first = heap[0].event;
    const SimEventKey last = heap[--queue->n_heap];
    uint32_t i = 0;
    for (uint32_t child = 1; child < queue->n_heap; child = 2 * i + 1) {
        if (child + 1 < queue->n_heap && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

/* --- calendar --- */

/* Rises with time, as products and cuts with a positive constant do. */
static inline uint64_t day_of(const SimQueue *queue, double time_s)
{
    const double day = time_s * queue->days_per_s;
    return day < LAST_DAY ? (uint64_t)day : (uint64_t)LAST_DAY;
}

static inline void place(SimQueue *queue, uint32_t event)
{
    if (queue->bucket) {
        const uint64_t day = day_of(queue, queue->event[event].time_s);
        if (day > queue->day) {
            uint32_t *bucket = &queue->bucket[day & (queue->n_buckets - 1)];
            queue->event[event].next = *bucket;
            *bucket = event;
            return;
        }
    }
    heap_push(queue, event);
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Days a second such that days near the front have EVENTS_A_DAY; 0 if none do. */
static double find_width(const SimQueue *queue, const uint32_t *pending)
{
    double time_s[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        time_s[i] = queue->event[pending[(uint64_t)i * queue->n / SAMPLES]].time_s;
    qsort(time_s, SAMPLES, sizeof *time_s, by_time);
    for (uint32_t i = SAMPLES / 4; i < SAMPLES; i++) {
        const double gap_s = (time_s[i] - time_s[0]) / ((double)queue->n * i / SAMPLES);
        const double days_per_s = 1 / (EVENTS_A_DAY * gap_s);
        if (gap_s > 0 && isfinite(days_per_s) && days_per_s > 0)
            return days_per_s;
    }
    return 0;
}

/* All events that are pending, in no order that matters. Caller frees. */
static uint32_t *collect(const SimQueue *queue)
{
    uint32_t *pending = g_new(uint32_t, MAX(1, queue->n)), n = 0;
    for (uint32_t i = 0; i < queue->n_heap; i++)
        pending[n++] = queue->heap[i].event;
    for (uint32_t b = 0; b < queue->n_buckets; b++)
        for (uint32_t e = queue->bucket[b]; e != NONE; e = queue->event[e].next)
            pending[n++] = e;
    g_assert(n == queue->n);
    return pending;
}

/* Makes the calendar that fits the events, or none. */
static void remake(SimQueue *queue)
{
    g_autofree uint32_t *pending = collect(queue);
    double first_s = INFINITY;

    for (uint32_t i = 0; i < queue->n; i++)
        first_s = fmin(first_s, queue->event[pending[i]].time_s);
    g_clear_pointer(&queue->bucket, g_free);
    queue->n_buckets = 0;
    queue->n_heap = 0;
    queue->pops = queue->cost = 0;
    const bool many = queue->n > FEW_EVENTS / 2 && queue->misfits < MISFITS;
    queue->days_per_s = many ? find_width(queue, pending) : 0;
    queue->retry = MAX(FEW_EVENTS, 2 * queue->n);
    if (queue->misfits == MISFITS)
        queue->misfits = 0;
    if (queue->days_per_s > 0) {
        queue->n_buckets = FEW_EVENTS;
        while (queue->n_buckets < queue->n)
            queue->n_buckets *= 2;
        queue->bucket = g_new(uint32_t, queue->n_buckets);
        memset(queue->bucket, 0xff, queue->n_buckets * sizeof *queue->bucket);
        queue->day = day_of(queue, first_s);
    }
    for (uint32_t i = 0; i < queue->n; i++)
        place(queue, pending[i]);
}

/* The first day that has an event. */
static uint64_t find_day(const SimQueue *queue)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t b = 0; b < queue->n_buckets; b++)
        for (uint32_t e = queue->bucket[b]; e != NONE; e = queue->event[e].next)
            first = MIN(first, day_of(queue, queue->event[e].time_s));
    return first;
}

/* Asks for the memory of the first events of a day soon to come. */
static inline void fetch_ahead(const SimQueue *queue)
{
    const uint32_t soon =
        queue->bucket[(queue->day + DAYS_AHEAD) & (queue->n_buckets - 1)];
    if (soon != NONE)
        __builtin_prefetch(&queue->event[soon]);
}

/* Goes on to the next day with events and moves them to the heap. */
static void advance(SimQueue *queue)
{
    for (uint32_t empty = 0; queue->n_heap == 0; empty++) {
        queue->day = empty < queue->n_buckets ? queue->day + 1 : find_day(queue);
        if (empty >= queue->n_buckets)
            queue->cost += queue->n_buckets;
        uint32_t *link = &queue->bucket[queue->day & (queue->n_buckets - 1)];
        fetch_ahead(queue);
        queue->cost++;
        while (*link != NONE) {
            const uint32_t event = *link;
            if (day_of(queue, queue->event[event].time_s) <= queue->day) {
                *link = queue->event[event].next;
                heap_push(queue, event);
            } else {
                link = &queue->event[event].next;
                queue->cost++;
            }
        }
    }
}

/* --- queue --- */

void sim_queue_push(SimQueue *queue, const SimEvent *event)
{
    uint32_t at = queue->free;
    if (at != NONE) {
        queue->free = queue->event[at].next;
    } else {
        if (queue->n_places == queue->capacity) {
            queue->capacity = MAX(64, 2 * queue->capacity);
            queue->event = g_renew(SimEvent, queue->event, queue->capacity);
        }
        at = queue->n_places++;
    }
    queue->event[at] = *event;
    queue->n++;
    place(queue, at);
    if (queue->n > queue->retry)
        remake(queue);
}

SimEvent sim_queue_pop(SimQueue *queue)
{
    if (queue->n_heap == 0)
        advance(queue);
    const uint32_t at = heap_pop(queue);
    const SimEvent event = queue->event[at];
    queue->event[at].next = queue->free;
    queue->free = at;
    queue->n--;
    if (queue->bucket) {
        queue->pops++;
        if (queue->cost > COST_A_POP * (queue->pops + queue->n_buckets)) {
            queue->misfits = queue->pops < queue->n_buckets ? queue->misfits + 1 : 0;
            remake(queue);
        } else if (queue->n < queue->n_buckets / 8) {
            remake(queue);
        }
    }
    return event;
}
