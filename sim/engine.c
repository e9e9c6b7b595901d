#include "sim/engine.h"

#include <stdbool.h>

typedef struct {
    double time_s;
    uint32_t priority;
    uint64_t sequence;
    SimHandler handler;
    void *context;
    uint64_t argument;
} Event;

struct SimEngine {
    double now_s;
    uint64_t sequence; /* of the next event scheduled */
    uint32_t n, capacity;
    Event *heap; /* binary: heap[i] comes before heap[2i+1] and heap[2i+2] */
};

SimEngine *sim_engine_new(void)
{
    return g_new0(SimEngine, 1);
}

void sim_engine_free(SimEngine *engine)
{
    if (!engine)
        return;
    g_free(engine->heap);
    g_free(engine);
}

double sim_engine_now(const SimEngine *engine)
{
    return engine->now_s;
}

static bool before(const Event *a, const Event *b)
{
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->sequence < b->sequence;
}

void sim_engine_schedule(SimEngine *engine, double time_s, uint32_t priority,
                         SimHandler handler, void *context, uint64_t argument)
{
    g_assert(time_s >= engine->now_s); /* fails on NaN too */
    if (engine->n == engine->capacity) {
        engine->capacity = engine->capacity ? 2 * engine->capacity : 64;
        engine->heap = g_renew(Event, engine->heap, engine->capacity);
    }
    const Event event = {time_s,  priority, engine->sequence++,
                         handler, context,  argument};
    uint32_t i = engine->n++;
    for (; i > 0 && before(&event, &engine->heap[(i - 1) / 2]); i = (i - 1) / 2)
        engine->heap[i] = engine->heap[(i - 1) / 2];
    engine->heap[i] = event;
}

static Event pop(SimEngine *engine)
{
    Event *heap = engine->heap;
    const Event first = heap[0], last = heap[--engine->n];
    uint32_t i = 0;

    for (uint32_t child = 1; child < engine->n; child = 2 * i + 1) {
        if (child + 1 < engine->n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

uint64_t sim_engine_run(SimEngine *engine)
{
    uint64_t handled = 0;

    for (; engine->n > 0; handled++) {
        const Event event = pop(engine);
        engine->now_s = event.time_s;
        event.handler(engine, event.context, event.argument);
    }
    return handled;
}
