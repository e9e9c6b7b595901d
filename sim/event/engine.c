/* The event loop: handlers in order of time, priority and scheduling. Pending events are a heap,
 * four children a node. A ladder queue handled more events a second by themselves, but whole
 * simulations took as long: 65,536 GPUs in a fat tree .93 CPU s by either. */
#include "sim/event/engine.h"

#include "data/base/free.h"
#include "data/base/heap.h"

enum { SEQUENCE_BITS = 48 };

typedef struct {
    double time_s;
    uint64_t order; /* by priority, then by the number in the order of scheduling */
    SimHandler handler;
    void *context;
    uint64_t argument;
} Event;

struct SimEngine {
    double now_s;
    uint64_t sequence; /* number of the next event scheduled */
    Event *pending;    /* a heap */
    uint32_t n, room;
};

static inline bool event_before(const Event *a, const Event *b)
{
    return a->time_s != b->time_s ? a->time_s < b->time_s : a->order < b->order;
}

#define EVENT_BEFORE(engine, a, b) ((void)(engine), event_before(a, b))
HEAP_DEFINE(event_heap, const SimEngine, Event, 4, EVENT_BEFORE, heap_unplaced)

SimEngine *sim_engine_new(void)
{
    return g_new0(SimEngine, 1);
}

FREE_DEFINE(sim_engine_free, SimEngine, engine, g_free(engine->pending));

double sim_engine_now(const SimEngine *engine)
{
    return engine->now_s;
}

void sim_engine_schedule(SimEngine *engine, double time_s, uint32_t priority,
                         SimHandler handler, void *context, uint64_t argument)
{
    g_assert(time_s >= engine->now_s); /* fails on NaN too */
    g_assert(priority >> (64 - SEQUENCE_BITS) == 0 &&
             engine->sequence >> SEQUENCE_BITS == 0);
    const uint64_t order = (uint64_t)priority << SEQUENCE_BITS | engine->sequence++;
    const Event event = {time_s, order, handler, context, argument};
    if (engine->n == engine->room) {
        engine->room = MAX(64, 2 * engine->room);
        engine->pending = g_renew(Event, engine->pending, engine->room);
    }
    event_heap_rise(engine, engine->pending, engine->n++, event);
    if (kilter_walk_due(engine->n))
        KILTER_WALK(event_heap_walk(engine, engine->pending, engine->n));
}

uint64_t sim_engine_run(SimEngine *engine)
{
    uint64_t handled = 0;
    for (; engine->n > 0; handled++) {
        const Event event = engine->pending[0];
        engine->n--;
        event_heap_sink(engine, engine->pending, engine->n, 0,
                        engine->pending[engine->n]);
        g_assert(event.time_s >= engine->now_s);
        engine->now_s = event.time_s;
        event.handler(engine, event.context, event.argument);
    }
    return handled;
}
