/* The ladder queue: a heap of events that come soon, and months of later events. */
#include "sim/event/queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/free.h"
#include "data/base/heap.h"
#include "data/base/order.h"
#include "data/base/units.h"

enum {
    FEW_EVENTS = 64,   /* so few that the heap by itself does well */
    SAMPLES = 64,      /* events whose times give the width of a month */
    MONTHS_AHEAD = 16, /* at least, when all events are spread evenly */
    LEAST_A_MONTH = 16,
    MOST_A_MONTH = 2048,
    SPREAD = 2, /* times as many months, for later events */
    CHUNK = 32, /* events */
    COST_A_POP =
        8, /* unneeded steps, beyond one for each event, after which months are made anew */
    MISFITS = 3,    /* remakings in quick succession after which no months are made */
    DEEP = 64,      /* depth of a heap at which an event costs as much as such a step */
    FEW_A_DAY = 12, /* so few that insertion sort does well */
};

/* Months are numbered up to this; all later events belong to the last one. */
static const double LAST_MONTH = 0x1p62;

struct SimChunk {
    SimChunk *next; /* the chunk filled after this one, or the next free one */
    SimEvent event[CHUNK];
};

void sim_queue_init(SimQueue *queue)
{
    *queue = (SimQueue){.most = FEW_EVENTS};
}

static void free_chunks(SimChunk *chunk)
{
    while (chunk) {
        SimChunk *next = chunk->next;
        put_block(chunk, next);
    }
}

void sim_queue_clear(SimQueue *queue)
{
    for (uint32_t m = 0; m < queue->n_months; m++)
        free_chunks(queue->month[m].first);
    free_chunks(queue->places.first);
    free_chunks(queue->now);
    free_chunks(queue->free_chunk);
    free_each(queue->month, queue->heap, queue->sorted, queue->scratch, queue->day);
}

/* --- chunks --- */

static SimChunk *chunk_new(SimQueue *queue)
{
    SimChunk *chunk = queue->free_chunk;
    if (!chunk)
        return g_new(SimChunk, 1);
    queue->free_chunk = chunk->next;
    return chunk;
}

/* Number of events in a chunk of a month. */
static inline uint32_t chunk_events(const SimMonth *month, const SimChunk *chunk)
{
    return chunk->next ? CHUNK : CHUNK - month->room;
}

/* Gives the chunks of a list back for further use. */
static void release_chunks(SimQueue *queue, SimChunk **chunks)
{
    while (*chunks) {
        SimChunk *next = (*chunks)->next;
        (*chunks)->next = queue->free_chunk;
        queue->free_chunk = *chunks;
        *chunks = next;
    }
}

/* Adds an event at the end of the chunks and returns its place. */
static inline SimEvent *month_add(SimQueue *queue, SimMonth *month, const SimEvent *event)
{
    if (month->room == 0) {
        SimChunk *chunk = chunk_new(queue);
        chunk->next = NULL;
        *(month->first ? &month->last->next : &month->first) = chunk;
        month->last = chunk;
        month->room = CHUNK;
    }
    SimEvent *place = &month->last->event[CHUNK - month->room--];
    *place = *event;
    __builtin_prefetch(place + 1, 1); /* the next one, to write */
    return place;
}

/* --- heap --- */

static inline bool before(const SimEventKey *a, const SimEventKey *b)
{
    return a->time_s != b->time_s ? a->time_s < b->time_s : a->order < b->order;
}

#define KEY_BEFORE(queue, a, b) ((void)(queue), before(a, b))
HEAP_DEFINE(key_heap, const SimQueue, SimEventKey, 2, KEY_BEFORE, heap_unplaced)

/* Stores the event and returns its place among the heap's events. */
static SimEvent *take_place(SimQueue *queue, const SimEvent *event)
{
    SimEvent *place = queue->free;
    if (!place)
        return month_add(queue, &queue->places, event);
    queue->free = place->context;
    *place = *event;
    return place;
}

static void heap_push(SimQueue *queue, const SimEvent *event)
{
    const SimEventKey key = {event->time_s, event->order, take_place(queue, event)};
    if (queue->n_heap == queue->heap_capacity) {
        queue->heap_capacity = MAX(64, 2 * queue->heap_capacity);
        queue->heap = g_renew(SimEventKey, queue->heap, queue->heap_capacity);
    }
    key_heap_rise(queue, queue->heap, queue->n_heap++, key);
    queue->cost += queue->n_heap > DEEP;
}

static SimEvent heap_pop(SimQueue *queue)
{
    KILTER_ASSERT(queue->n_heap > 0);
    SimEvent *place = queue->heap[0].event;
    const SimEvent first = *place;
    queue->n_heap--;
    key_heap_sink(queue, queue->heap, queue->n_heap, 0, queue->heap[queue->n_heap]);
    place->context = queue->free;
    queue->free = place;
    return first;
}

/* --- months --- */

/* The number of an event's month, from 1 on. It never falls as time rises, since products with a
 * positive constant and rounding down do not. */
static inline uint64_t month_of(const SimQueue *queue, double time_s)
{
    KILTER_ASSERT(time_s >= 0 && queue->months_per_s > 0);
    const double month = time_s * queue->months_per_s;
    return 1 + (month < LAST_MONTH ? (uint64_t)month : (uint64_t)LAST_MONTH);
}

static inline void month_push(SimQueue *queue, uint64_t number, const SimEvent *event)
{
    KILTER_ASSERT(number > queue->present || queue->n_months > 0);
    month_add(queue, &queue->month[number & (queue->n_months - 1)], event);
}

static inline void place(SimQueue *queue, const SimEvent *event)
{
    if (queue->month) {
        const uint64_t number = month_of(queue, event->time_s);
        if (number > queue->present) {
            month_push(queue, number, event);
            return;
        }
    }
    heap_push(queue, event);
}

static void grow_now(SimQueue *queue, uint32_t n)
{
    if (n <= queue->now_capacity)
        return;
    n = queue->now_capacity = MAX(n, 2 * queue->now_capacity);
    queue->sorted = g_renew(SimEventKey, queue->sorted, n);
    queue->scratch = g_renew(SimEventKey, queue->scratch, n);
    queue->day = g_renew(uint32_t, queue->day, n + 1);
}

static ORDER_DEFINE(by_order, SimEventKey, before(x, y) ? -1 : before(y, x));

static bool in_order(const SimEventKey *key, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (before(&key[i], &key[i - 1]))
            return false;
    return true;
}

/* Events of one time mostly come in their order. */
static void sort_day(SimEventKey *key, uint32_t n)
{
    if (n > FEW_A_DAY && !in_order(key, n)) {
        qsort(key, n, sizeof *key, by_order);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const SimEventKey moved = key[i];
        uint32_t k = i;
        for (; k > 0 && before(&moved, &key[k - 1]); k--)
            key[k] = key[k - 1];
        key[k] = moved;
    }
}

/* Sorts the present month, whose keys are in `scratch` and whose times lie between these two, first
 * into as many days as it has events. */
static void sort_month(SimQueue *queue, double first_s, double last_s)
{
    KILTER_ASSERT(queue->n_now > 0 && first_s <= last_s);
    const uint32_t n = queue->n_now;
    const double scale = (n - 1) / (last_s - first_s);
    const double days_per_s = isfinite(scale) ? scale : 0;
    memset(queue->day, 0, (n + 1) * sizeof *queue->day);
    for (uint32_t i = 0; i < n; i++) {
        const double time_s = queue->scratch[i].time_s;
        queue->day[MIN(n - 1, (uint32_t)((time_s - first_s) * days_per_s)) + 1]++;
    }
    for (uint32_t d = 0; d < n; d++)
        queue->day[d + 1] += queue->day[d];
    items_each (const SimEventKey, key, queue->scratch, n) {
        const uint32_t d = MIN(n - 1, (uint32_t)((key->time_s - first_s) * days_per_s));
        queue->sorted[queue->day[d]++] = *key;
    }
    for (uint32_t d = 0, first = 0; d < n; first = queue->day[d++])
        sort_day(&queue->sorted[first], queue->day[d] - first);
}

/* Memory is fetched while other events are moved; NULL: there is no further chunk. */
static void prefetch(const SimChunk *chunk)
{
    enum { LINE = 64 };
    for (size_t i = 0; chunk && i < sizeof *chunk; i += LINE)
        __builtin_prefetch((const char *)chunk + i);
}

/* Sorts the events of the present month; those of later years go back to their months. */
static void open_month(SimQueue *queue)
{
    KILTER_ASSERT((queue->n_months & (queue->n_months - 1)) == 0);
    SimMonth *month = &queue->month[queue->present & (queue->n_months - 1)];
    double first_s = INFINITY, last_s = -INFINITY;
    const SimMonth opened = *month;
    release_chunks(queue, &queue->now);
    queue->now = opened.first;
    *month = (SimMonth){0};
    queue->n_now = queue->at = 0;
    for (SimChunk *chunk = queue->now; chunk; chunk = chunk->next) {
        const uint32_t n = chunk_events(&opened, chunk);
        prefetch(chunk->next);
        grow_now(queue, queue->n_now + n);
        items_each (SimEvent, event, chunk->event, n) {
            const uint64_t number = month_of(queue, event->time_s);
            if (number <= queue->present) {
                first_s = event->time_s < first_s ? event->time_s : first_s;
                last_s = event->time_s > last_s ? event->time_s : last_s;
                queue->scratch[queue->n_now++] =
                    (SimEventKey){event->time_s, event->order, event};
            } else {
                month_push(queue, number, event);
                queue->cost++;
            }
        }
    }
    if (queue->n_now > 0)
        sort_month(queue, first_s, last_s);
}

/* Finds the first month that has an event. */
static uint64_t find_month(const SimQueue *queue)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t m = 0; m < queue->n_months; m++) {
        for (const SimChunk *c = queue->month[m].first; c; c = c->next)
            for (uint32_t i = 0; i < chunk_events(&queue->month[m], c); i++)
                first = MIN(first, month_of(queue, c->event[i].time_s));
    }
    return first;
}

/* Goes on to the next month with events. */
static void queue_advance(SimQueue *queue)
{
    for (uint32_t empty = 0; queue->at == queue->n_now; empty++) {
        queue->present = empty < queue->n_months ? queue->present + 1 : find_month(queue);
        queue->cost += empty < queue->n_months ? 1 : queue->n;
        open_month(queue);
    }
}

/* --- making the months --- */

/* Time between events near the front; 0 if no width tells them apart. */
static double find_gap(const SimEvent *pending, uint32_t n)
{
    double time_s[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; i++)
        time_s[i] = pending[(uint64_t)i * n / SAMPLES].time_s;
    qsort(time_s, SAMPLES, sizeof *time_s, number_compare);
    for (uint32_t i = SAMPLES / 4; i < SAMPLES; i++) {
        const double gap_s = (time_s[i] - time_s[0]) / ((double)n * i / SAMPLES);
        if (gap_s > 0 && isfinite(1 / (MOST_A_MONTH * gap_s)))
            return gap_s;
    }
    return 0;
}

/* Takes all events out, in arbitrary order. The caller frees the array. */
static SimEvent *take_all(SimQueue *queue)
{
    SimEvent *pending = g_new(SimEvent, MAX(1, queue->n));
    uint32_t n = 0;
    for (uint32_t i = 0; i < queue->n_heap; i++)
        pending[n++] = *queue->heap[i].event;
    for (uint32_t i = queue->at; i < queue->n_now; i++)
        pending[n++] = *queue->sorted[i].event;
    for (uint32_t m = 0; m < queue->n_months; m++) {
        for (const SimChunk *c = queue->month[m].first; c; c = c->next)
            for (uint32_t i = 0; i < chunk_events(&queue->month[m], c); i++)
                pending[n++] = c->event[i];
        release_chunks(queue, &queue->month[m].first);
    }
    g_assert(n == queue->n);
    release_chunks(queue, &queue->places.first);
    release_chunks(queue, &queue->now);
    g_clear_pointer(&queue->month, g_free);
    queue->n_months = queue->n_heap = queue->at = queue->n_now = 0;
    queue->places = (SimMonth){0};
    queue->free = NULL;
    return pending;
}

/* Makes months that fit the events, or none. */
static void remake(SimQueue *queue)
{
    const uint32_t n = queue->n;
    g_autofree SimEvent *pending = take_all(queue);
    const bool many = n > FEW_EVENTS / 2 && queue->misfits < MISFITS;
    const double gap_s = many ? find_gap(pending, n) : 0;
    queue->pops = queue->cost = 0;
    queue->most = MAX(FEW_EVENTS, 2 * n);
    queue->least = gap_s > 0 ? n / 8 : 0;
    if (queue->misfits == MISFITS)
        queue->misfits = 0;
    if (gap_s > 0) {
        const uint32_t a_month = CLAMP(n / MONTHS_AHEAD, LEAST_A_MONTH, MOST_A_MONTH);
        double first_s = INFINITY;
        for (uint32_t i = 0; i < n; i++)
            first_s = fmin(first_s, pending[i].time_s);
        queue->months_per_s = 1 / (a_month * gap_s);
        for (queue->n_months = 1; queue->n_months < SPREAD * n / a_month;)
            queue->n_months *= 2;
        queue->month = g_new0(SimMonth, queue->n_months);
        queue->present = month_of(queue, first_s) - 1;
    }
    for (uint32_t i = 0; i < n; i++)
        place(queue, &pending[i]);
}

/* --- queue --- */

/* The invariant: the heap is one, the present month is sorted, and no event is lost. */
static void walk_queue(const SimQueue *queue)
{
    uint32_t n = queue->n_heap + queue->n_now - queue->at;
    key_heap_walk(queue, queue->heap, queue->n_heap);
    for (uint32_t i = queue->at; i + 1 < queue->n_now; i++)
        g_assert(before(&queue->sorted[i], &queue->sorted[i + 1]));
    for (uint32_t m = 0; m < queue->n_months; m++)
        for (const SimChunk *c = queue->month[m].first; c; c = c->next)
            n += chunk_events(&queue->month[m], c);
    g_assert(n == queue->n);
}

void sim_queue_push(SimQueue *queue, const SimEvent *event)
{
    queue->n++;
    place(queue, event);
    if (queue->n > queue->most)
        remake(queue);
    if (kilter_walk_due(queue->n))
        KILTER_WALK(walk_queue(queue));
}

SimEvent sim_queue_pop(SimQueue *queue)
{
    g_assert(queue->n > 0);
    if (queue->n_heap == 0 && queue->at == queue->n_now)
        queue_advance(queue);
    const bool from_month =
        queue->at < queue->n_now &&
        (queue->n_heap == 0 || before(&queue->sorted[queue->at], &queue->heap[0]));
    const SimEvent event =
        from_month ? *queue->sorted[queue->at++].event : heap_pop(queue);
    queue->n--;
    if (!queue->month)
        return event;
    queue->pops++;
    if (queue->cost > COST_A_POP * (queue->pops + queue->n_months) + queue->n) {
        queue->misfits = queue->pops < queue->n_months ? queue->misfits + 1 : 0;
        remake(queue);
    } else if (queue->n < queue->least) {
        remake(queue);
    }
    return event;
}
