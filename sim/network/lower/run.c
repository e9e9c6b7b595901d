/* Executions of lowered collectives. */
#include "data/base/free.h"
#include "sim/network/lower/lower.h"

/* A bundle in flight. */
typedef struct {
    SimFlowId flow;
    bool done;
    double bytes, latency_s; /* bytes and latency left, once it is split */
} Flying;

struct SimRun {
    SimNetwork *network;
    const SimLowered *lowered;
    SimHandler rank_done, done;
    void *context;
    uint64_t argument;
    uint32_t n_arrived, n_done; /* ranks */
    double start_s;             /* when all of them had arrived */
    uint32_t phase;             /* the next one */
    bool *arrived;              /* [rank]; NULL: none, or all at once */
    uint32_t *left;             /* [rank]: messages still to end; NULL with phases */
    Flying *flying;             /* [bundle]; NULL: messages fly one by one */
    uint32_t n_flying;
};

SimRun *sim_run_new(SimNetwork *network, const SimLowered *lowered, SimHandler rank_done,
                    SimHandler done, void *context, uint64_t argument)
{
    SimRun *run = g_new0(SimRun, 1);
    run->network = network;
    run->lowered = lowered;
    run->rank_done = rank_done;
    run->done = done;
    run->context = context;
    run->argument = argument;
    if (lowered->message->len > 0) {
        run->left = g_new(uint32_t, lowered->n_ranks);
        for (uint32_t i = 0; i < lowered->n_ranks; i++)
            run->left[i] = lowered->first_of[i + 1] - lowered->first_of[i];
    }
    return run;
}

void sim_run_free(SimRun *run)
{
    if (!run)
        return;
    if (run->n_flying > 0)
        sim_network_guard(run->network, NULL, NULL);
    free_each(run->arrived, run->left, run->flying, run);
}

/* Calls `done`, once the least time has passed; this may free the run. */
static void lower_end_run(SimRun *run, SimEngine *engine)
{
    const double end_s = run->start_s + run->lowered->least_s;
    if (!run->done)
        return;
    if (run->lowered->least_s > 0 && end_s > sim_engine_now(engine))
        sim_engine_schedule(engine, end_s, 0, run->done, run->context, run->argument);
    else
        run->done(engine, run->context, run->argument);
}

/* Counts a rank as done; the call for the last rank may free the run. */
static void finish_rank(SimRun *run, uint32_t rank)
{
    KILTER_ASSERT(rank < run->lowered->n_ranks);
    SimEngine *engine = sim_network_engine(run->network);
    const bool last = ++run->n_done == run->lowered->n_ranks;
    if (run->rank_done)
        run->rank_done(engine, run->context, rank);
    if (last)
        lower_end_run(run, engine);
}

/* Counts all ranks as done; the last call may free the run. */
static void finish_all(SimRun *run, SimEngine *engine)
{
    const uint32_t n_ranks = run->lowered->n_ranks;
    if (run->rank_done) {
        for (uint32_t rank = 0; rank < n_ranks; rank++)
            finish_rank(run, rank);
        return;
    }
    run->n_done = n_ranks;
    lower_end_run(run, engine);
}

static SimFlowId start_flow(SimRun *run, const SimUse *use, uint32_t n_uses, double bytes,
                            double payload, double latency_s, SimHandler done,
                            uint64_t argument)
{
    const SimFlow flow = {
        .use = use,
        .n_uses = n_uses,
        .bytes = bytes,
        .payload = payload,
        .efficiency = run->lowered->efficiency,
        .latency_s = latency_s,
        .done = done,
        .context = run,
        .argument = argument,
    };
    return sim_network_start(run->network, &flow);
}

/* --- phases in lockstep --- */

static void next_phase(SimEngine *engine, void *context, uint64_t argument)
{
    SimRun *run = context;
    (void)argument;
    if (run->phase == run->lowered->phase->len) {
        finish_all(run, engine);
        return;
    }
    const LoweredRound *round =
        &g_array_index(run->lowered->uses->round, LoweredRound, run->phase);
    const LoweredPhase *phase =
        &g_array_index(run->lowered->phase, LoweredPhase, run->phase++);
    start_flow(run, &g_array_index(run->lowered->uses->use, SimUse, round->first_use),
               round->n_uses, phase->bytes, phase->payload, phase->latency_s, next_phase,
               0);
}

/* --- free messages --- */

static void message_done(SimEngine *engine, void *context, uint64_t argument)
{
    SimRun *run = context;
    const LoweredMessage *message =
        &g_array_index(run->lowered->message, LoweredMessage, argument);
    const uint32_t from = message->from, to = message->to;
    /* Decide for both ranks whether it was their last message before a handler can free the run. */
    const bool from_done = --run->left[from] == 0, to_done = --run->left[to] == 0;
    (void)engine;
    if (from_done)
        finish_rank(run, from);
    if (to_done)
        finish_rank(run, to);
}

static void start_message(SimRun *run, uint32_t i, double bytes, double latency_s)
{
    KILTER_ASSERT(bytes >= 0 && latency_s >= 0);
    const LoweredMessage *message =
        &g_array_index(run->lowered->message, LoweredMessage, i);
    start_flow(run, &g_array_index(run->lowered->uses->use, SimUse, message->first_use),
               message->n_uses, bytes, run->lowered->payload, latency_s, message_done, i);
}

static void start_messages(SimRun *run, uint32_t rank)
{
    const SimLowered *lowered = run->lowered;
    for (uint32_t k = lowered->first_of[rank]; k < lowered->first_of[rank + 1]; k++) {
        const uint32_t i = lowered->message_of[k];
        const LoweredMessage *message =
            &g_array_index(lowered->message, LoweredMessage, i);
        if (run->arrived[message->from] && run->arrived[message->to])
            start_message(run, i, message->bytes, message->latency_s);
    }
}

/* --- bundles of messages --- */

static void bundle_done(SimEngine *engine, void *context, uint64_t argument)
{
    SimRun *run = context;
    const SimLowered *lowered = run->lowered;
    const LoweredBundle *bundle = &lowered->bundle[argument];
    run->flying[argument].done = true;
    if (run->n_flying > 0 && --run->n_flying == 0)
        sim_network_guard(run->network, NULL, NULL);
    for (uint32_t i = 0; i < bundle->n; i++) /* the last iteration may free the run */
        message_done(engine, run, lowered->member[bundle->first + i]);
}

/* Splits the bundles when another flow starts on the network: their messages go on one by one. */
static void split_bundles(SimEngine *engine, void *context, uint64_t argument)
{
    SimRun *run = context;
    const SimLowered *lowered = run->lowered;
    (void)engine, (void)argument;
    run->n_flying = 0;
    items_each (Flying, flying, run->flying, lowered->n_bundles) {
        /* it ended at this instant; its handler is still to be called */
        if (!flying->done)
            flying->done = !sim_network_cancel(run->network, flying->flow, &flying->bytes,
                                               &flying->latency_s);
    }
    items_at (const LoweredBundle, bundle, b, lowered->bundle, lowered->n_bundles) {
        for (uint32_t i = 0; i < bundle->n && !run->flying[b].done; i++)
            start_message(run, lowered->member[bundle->first + i], run->flying[b].bytes,
                          run->flying[b].latency_s);
    }
}

/* Starts the bundles, as all ranks have arrived at this instant. */
static void start_bundles(SimRun *run)
{
    const SimLowered *lowered = run->lowered;
    const uint32_t n_ranks = lowered->n_ranks;
    run->flying = g_new0(Flying, lowered->n_bundles);
    items_at (const LoweredBundle, bundle, b, lowered->bundle, lowered->n_bundles) {
        run->flying[b].flow = start_flow(
            run, &g_array_index(lowered->bundle_use, SimUse, bundle->first_use),
            bundle->n_uses, bundle->bytes, lowered->payload, bundle->latency_s,
            bundle_done, b);
    }
    run->n_flying = lowered->n_bundles;
    sim_network_guard(run->network, split_bundles, run);
    run->n_arrived = n_ranks;
    run->arrived = g_new(bool, n_ranks);
    for (uint32_t rank = 0; rank < n_ranks; rank++)
        run->arrived[rank] = true;
    for (uint32_t rank = 0; rank < n_ranks; rank++) /* ranks without a message */
        if (lowered->first_of[rank + 1] == lowered->first_of[rank])
            finish_rank(run, rank);
}

/* --- ranks --- */

void sim_run_arrive(SimRun *run, uint32_t rank)
{
    g_assert(rank < run->lowered->n_ranks);
    if (!run->arrived)
        run->arrived = g_new0(bool, run->lowered->n_ranks);
    g_assert(!run->arrived[rank]);
    run->arrived[rank] = true;
    run->n_arrived++;
    run->start_s = sim_engine_now(sim_network_engine(run->network));
    if (!run->left && run->n_arrived == run->lowered->n_ranks)
        next_phase(sim_network_engine(run->network), run, 0);
    else if (run->left && run->left[rank] == 0)
        finish_rank(run, rank);
    else if (run->left)
        start_messages(run, rank);
}

void sim_run_arrive_all(SimRun *run)
{
    const uint32_t n = run->lowered->n_ranks;
    run->start_s = sim_engine_now(sim_network_engine(run->network));
    if (run->left && run->n_arrived == 0 && run->lowered->n_bundles > 0 &&
        sim_network_is_idle(run->network)) {
        start_bundles(run);
        return;
    }
    if (!run->left) {
        g_assert(run->n_arrived == 0);
        run->n_arrived = n;
        next_phase(sim_network_engine(run->network), run, 0);
        return;
    }
    for (uint32_t rank = 0; rank < n; rank++)
        sim_run_arrive(run, rank);
}

static void end_at(SimEngine *engine, void *context, uint64_t argument)
{
    (void)argument;
    *(double *)context = sim_engine_now(engine);
}

double sim_run_alone_s(SimNetwork *network, const SimLowered *lowered)
{
    SimEngine *engine = sim_network_engine(network);
    const double start_s = sim_engine_now(engine);
    double end_s = start_s;
    g_autoptr(SimRun) run = sim_run_new(network, lowered, NULL, end_at, &end_s, 0);
    sim_run_arrive_all(run);
    sim_engine_run(engine);
    return end_s - start_s;
}
