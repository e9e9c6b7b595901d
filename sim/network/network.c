/* Flows on a network, run by events. */
#include "sim/network/network.h"

#include <math.h>

#include "data/base/free.h"
#include "sim/network/fairness.h"

enum { OPEN_BATCHES = 8 };

/* Flows whose ends lie closer together than this part of the time end at once. */
static const double SAME_TIME = 1e-12;

/* Flows that wait for the same instant. */
typedef struct {
    double due_s;
    uint32_t n, capacity;
    SimFlowId *flow;
} Batch;

struct SimNetwork {
    SimEngine *engine;
    const Topology *topology;
    Routes *routes;
    SimShare share;                        /* flows and links, sim/network/fairness.h */
    double *bytes, *busy_s, *busy_since_s; /* [link] */
    uint32_t n_waiting;
    GArray *free_flows; /* flow numbers to be reused */
    GArray *batch;      /* all batches ever made */
    GArray *free_batches;
    /* latest batches, which further flows may join */
    uint32_t open[OPEN_BATCHES], next_open;
    SharerDone guard; /* sim_network_guard */
    bool changed;     /* some bandwidth was changed */
    /* an event that solves for rates is scheduled */
    bool settling;
    /* number of the valid event for the next end; others are out of date */
    uint64_t tick;
    double tick_s;
    GArray *due;      /* scratch: SimFlowId */
    GArray *emptied;  /* scratch: links */
    GArray *finished; /* scratch: SharerDone */
};

SimNetwork *sim_network_new(SimEngine *engine, const Topology *topology)
{
    SimNetwork *network = g_new0(SimNetwork, 1);
    network->engine = engine;
    network->topology = topology;
    network->routes = routes_new(topology);
    share_init(&network->share, topology);
    network->bytes = g_new0(double, topology->n_links);
    network->busy_s = g_new0(double, topology->n_links);
    network->busy_since_s = g_new0(double, topology->n_links);
    network->free_flows = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
    network->batch = g_array_new(FALSE, FALSE, sizeof(Batch));
    network->free_batches = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    network->due = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
    network->emptied = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    network->finished = g_array_new(FALSE, FALSE, sizeof(SharerDone));
    network->tick_s = INFINITY;
    for (uint32_t i = 0; i < OPEN_BATCHES; i++)
        network->open[i] = UINT32_MAX;
    return network;
}

void sim_network_free(SimNetwork *network)
{
    if (!network)
        return;
    for (uint32_t i = 0; i < network->batch->len; i++)
        g_free(g_array_index(network->batch, Batch, i).flow);
    share_clear(&network->share);
    routes_free(network->routes);
    unref_arrays(network->free_flows, network->batch, network->free_batches, network->due,
                 network->emptied, network->finished);
    free_each(network->bytes, network->busy_s, network->busy_since_s, network);
}

SimEngine *sim_network_engine(const SimNetwork *network)
{
    return network->engine;
}

const Topology *sim_network_topology(const SimNetwork *network)
{
    return network->topology;
}

uint32_t sim_network_route(SimNetwork *network, uint32_t from, uint32_t to,
                           uint32_t link[ROUTE_MAX_LINKS])
{
    KILTER_ASSERT(from < network->topology->n_devices &&
                  to < network->topology->n_devices);
    return routes_find(network->routes, from, to, link);
}

/* --- rates and ends --- */

static void handle_tick(SimEngine *engine, void *context, uint64_t argument);

static void schedule_tick(SimNetwork *network)
{
    const double next_s = share_next_end_s(&network->share);
    if (next_s >= network->tick_s)
        return; /* the event that is scheduled looks again */
    network->tick_s = next_s;
    sim_engine_schedule(network->engine, next_s, 0, handle_tick, network,
                        ++network->tick);
}

static void handle_settle(SimEngine *engine, void *context, uint64_t argument)
{
    SimNetwork *network = context;
    (void)argument;
    network->settling = false;
    share_solve(&network->share, sim_engine_now(engine));
    schedule_tick(network);
}

static void network_settle(SimNetwork *network)
{
    if (network->settling)
        return;
    network->settling = true;
    sim_engine_schedule(network->engine, sim_engine_now(network->engine),
                        SIM_NETWORK_PRIORITY, handle_settle, network, 0);
}

/* Removes flows and collects their handlers, which are to be called. */
static void finish(SimNetwork *network, const SimFlowId *id, uint32_t n)
{
    const uint32_t first = network->finished->len;
    g_array_set_size(network->finished, first + n);
    for (uint32_t i = 0; i < n; i++) {
        g_array_index(network->finished, SharerDone, first + i) =
            network->share.rest[id[i]].done;
        share_release(&network->share, id[i]);
    }
    g_array_append_vals(network->free_flows, id, n);
}

static void call_finished(SimNetwork *network)
{
    /* A handler may start flows, but that does not change this list. */
    array_each (const SharerDone, done, network->finished)
        if (done->handler)
            done->handler(network->engine, done->context, done->argument);
    g_array_set_size(network->finished, 0);
}

/* Removes active flows from their links and counts the bytes that they moved. */
static void deactivate(SimNetwork *network, const SimFlowId *id, uint32_t n)
{
    const double now_s = sim_engine_now(network->engine);
    for (uint32_t i = 0; i < n; i++) {
        const Sharer *flow = &network->share.flow[id[i]];
        const SharerRest *rest = &network->share.rest[id[i]];
        for (uint32_t k = 0; k < flow->n_uses; k++)
            network->bytes[flow->use[k].link] +=
                rest->bytes * rest->payload * flow->use[k].weight;
    }
    g_array_set_size(network->emptied, 0);
    share_remove(&network->share, id, n, network->emptied);
    for (uint32_t i = 0; i < network->emptied->len; i++) {
        const uint32_t link = g_array_index(network->emptied, uint32_t, i);
        network->busy_s[link] += now_s - network->busy_since_s[link];
    }
}

static void handle_tick(SimEngine *engine, void *context, uint64_t argument)
{
    SimNetwork *network = context;
    const double now_s = sim_engine_now(engine);
    if (argument != network->tick)
        return;
    network->tick_s = INFINITY;
    g_array_set_size(network->due, 0);
    share_take_due(&network->share, now_s * (1 + SAME_TIME), network->due);
    const SimFlowId *due = (const SimFlowId *)(const void *)network->due->data;
    deactivate(network, due, network->due->len);
    finish(network, due, network->due->len);
    if (network->due->len)
        network_settle(network);
    else
        schedule_tick(network);
    call_finished(network);
}

/* --- starts --- */

void sim_network_guard(SimNetwork *network, SimHandler handler, void *context)
{
    g_assert(!handler || !network->guard.handler);
    network->guard = (SharerDone){handler, context, 0};
}

static void call_guard(SimNetwork *network)
{
    const SharerDone guard = network->guard;
    network->guard.handler = NULL;
    if (guard.handler)
        guard.handler(network->engine, guard.context, guard.argument);
}

static void activate(SimNetwork *network, SimFlowId id)
{
    const double now_s = sim_engine_now(network->engine);
    const Sharer *flow = &network->share.flow[id];
    for (uint32_t k = 0; k < flow->n_uses; k++)
        if (network->share.link[flow->use[k].link].n == 0)
            network->busy_since_s[flow->use[k].link] = now_s;
    share_add(&network->share, id, now_s);
    network_settle(network);
}

static bool is_empty(uint32_t n_uses, double bytes)
{
    return n_uses == 0 || !(bytes > 0);
}

static void handle_batch(SimEngine *engine, void *context, uint64_t argument)
{
    SimNetwork *network = context;
    const uint32_t slot = (uint32_t)argument;
    /* Handlers may make batches, which can move this one in memory. */
    Batch batch = g_array_index(network->batch, Batch, slot);
    (void)engine;
    g_array_index(network->batch, Batch, slot) = (Batch){-1, 0, 0, NULL};
    network->n_waiting -= batch.n;
    values_at (const SimFlowId, id, i, batch.flow, batch.n) {
        network->share.flow[id].waiting = false;
        if (is_empty(network->share.flow[id].n_uses, network->share.rest[id].bytes))
            finish(network, &id, 1);
        else
            activate(network, id);
    }
    g_free(batch.flow);
    g_array_append_val(network->free_batches, slot);
    call_finished(network);
}

/* A recent batch for that instant, or a new one. */
static Batch *find_batch(SimNetwork *network, double due_s)
{
    for (uint32_t i = 0; i < OPEN_BATCHES; i++) {
        if (network->open[i] == UINT32_MAX)
            continue;
        Batch *batch = &g_array_index(network->batch, Batch, network->open[i]);
        if (batch->due_s == due_s)
            return batch;
    }
    uint32_t slot = network->batch->len;
    if (network->free_batches->len > 0) {
        slot = g_array_index(network->free_batches, uint32_t,
                             network->free_batches->len - 1);
        g_array_set_size(network->free_batches, network->free_batches->len - 1);
    } else {
        g_array_set_size(network->batch, slot + 1);
    }
    Batch *batch = &g_array_index(network->batch, Batch, slot);
    *batch = (Batch){due_s, 0, 0, NULL};
    network->open[network->next_open++ % OPEN_BATCHES] = slot;
    sim_engine_schedule(network->engine, due_s, 0, handle_batch, network, slot);
    return batch;
}

SimFlowId sim_network_start(SimNetwork *network, const SimFlow *flow)
{
    const double now_s = sim_engine_now(network->engine);
    SimFlowId id = UINT32_MAX;
    g_assert(flow->bytes >= 0 && flow->payload >= 0 && flow->efficiency > 0);
    call_guard(network);
    if (network->free_flows->len > 0) {
        id = g_array_index(network->free_flows, SimFlowId, network->free_flows->len - 1);
        g_array_set_size(network->free_flows, network->free_flows->len - 1);
    }
    id = share_new(&network->share, id, flow);
    if (flow->latency_s > 0 || is_empty(flow->n_uses, flow->bytes)) {
        Batch *batch = find_batch(network, now_s + flow->latency_s);
        if (batch->n == batch->capacity) {
            batch->capacity = MAX(4, 2 * batch->capacity);
            batch->flow = g_renew(SimFlowId, batch->flow, batch->capacity);
        }
        batch->flow[batch->n++] = id;
        network->share.flow[id].waiting = true;
        network->share.flow[id].since_s = batch->due_s;
        network->n_waiting++;
    } else {
        activate(network, id);
    }
    return id;
}

void sim_network_set_bandwidth(SimNetwork *network, uint32_t link, double bandwidth)
{
    g_assert(bandwidth >= 0);
    call_guard(network);
    network->changed = true;
    share_set_bandwidth(&network->share, link, bandwidth);
    network_settle(network);
}

bool sim_network_cancel(SimNetwork *network, SimFlowId flow, double *bytes,
                        double *latency_s)
{
    const double now_s = sim_engine_now(network->engine);
    const Sharer *sharer = &network->share.flow[flow];
    SharerRest *rest = &network->share.rest[flow];
    *bytes = rest->bytes;
    *latency_s = 0;
    if (sharer->waiting) { /* it stays in its batch and ends there without effect */
        *latency_s = sharer->since_s - now_s;
        rest->bytes = 0;
        rest->done.handler = NULL;
        return true;
    }
    if (!sharer->active)
        return false;
    *bytes = share_take_back(&network->share, flow, now_s);
    rest->bytes -= *bytes;
    deactivate(network, &flow, 1);
    share_release(&network->share, flow);
    g_array_append_val(network->free_flows, flow);
    network_settle(network);
    return true;
}

/* --- state --- */

bool sim_network_is_idle(const SimNetwork *network)
{
    return network->n_waiting + network->share.n_active == 0 && !network->changed;
}

double sim_network_link_bytes(const SimNetwork *network, uint32_t link)
{
    g_assert(link < network->topology->n_links);
    return network->bytes[link] +
           share_link_moved(&network->share, link, sim_engine_now(network->engine));
}

double sim_network_link_busy_s(const SimNetwork *network, uint32_t link)
{
    g_assert(link < network->topology->n_links);
    const double since_s =
        network->share.link[link].n > 0
            ? sim_engine_now(network->engine) - network->busy_since_s[link]
            : 0;
    return network->busy_s[link] + since_s;
}

uint64_t sim_network_solved(const SimNetwork *network)
{
    return network->share.n_solved;
}
