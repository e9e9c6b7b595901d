/* The event loop: handlers in order of time, priority and scheduling. */
#include "sim/event/engine.h"

#include "data/base/free.h"
#include "sim/event/queue.h"

struct SimEngine {
    double now_s;
    uint64_t sequence; /* number of the next event scheduled */
    SimQueue queue;
};

SimEngine *sim_engine_new(void)
{
    SimEngine *engine = g_new0(SimEngine, 1);
    sim_queue_init(&engine->queue);
    return engine;
}

FREE_DEFINE(sim_engine_free, SimEngine, engine, sim_queue_clear(&engine->queue));

double sim_engine_now(const SimEngine *engine)
{
    return engine->now_s;
}

void sim_engine_schedule(SimEngine *engine, double time_s, uint32_t priority,
                         SimHandler handler, void *context, uint64_t argument)
{
    g_assert(time_s >= engine->now_s); /* fails on NaN too */
    const SimEvent event = {time_s, sim_event_order(priority, engine->sequence++),
                            handler, context, argument};
    sim_queue_push(&engine->queue, &event);
}

uint64_t sim_engine_run(SimEngine *engine)
{
    uint64_t handled = 0;
    for (; engine->queue.n > 0; handled++) {
        const SimEvent event = sim_queue_pop(&engine->queue);
        g_assert(event.time_s >= engine->now_s);
        engine->now_s = event.time_s;
        event.handler(engine, event.context, event.argument);
    }
    return handled;
}
