/* Rounds of messages: the functions that the algorithms of a lowering call. */
#include "sim/network/lower/lower.h"

#include <math.h>

double lower_share_from(const Lower *lower, uint32_t rank)
{
    KILTER_ASSERT(rank < lower->n);
    const double *share = lower->collective->share_from;
    return share ? share[rank] : 1.0 / lower->n;
}

double lower_share_to(const Lower *lower, uint32_t rank)
{
    KILTER_ASSERT(rank < lower->n);
    const double *share = lower->collective->share_to;
    return share ? share[rank] : 1.0 / lower->n;
}

double lower_pieces(const Lower *lower, double bytes, uint32_t hops)
{
    g_assert(bytes >= 0);
    const Tuning *tuning = sim_network_topology(lower->network)->tuning;
    const double most = bytes / fmin(tuning->least_piece_bytes, tuning->piece_bytes);
    return fmax(fmax(1, ceil(bytes / tuning->piece_bytes)), fmin(hops, most));
}

double lower_part_bytes(const Lower *lower)
{
    const bool gather = lower->collective->traffic == TRAFFIC_ALL_GATHER;
    double largest = 0;
    for (uint32_t i = 0; i < lower->n; i++)
        largest =
            fmax(largest, gather ? lower_share_from(lower, i) : lower_share_to(lower, i));
    return largest * lower->collective->bytes;
}

static uint32_t find_route(const Lower *lower, uint32_t group, uint32_t from, uint32_t to,
                           uint32_t link[ROUTE_MAX_LINKS], double *latency_s)
{
    KILTER_ASSERT(group < lower->n_groups && from < lower->n && to < lower->n);
    const uint32_t *device = &lower->collective->device[(size_t)group * lower->n];
    const Topology *topology = sim_network_topology(lower->network);
    const uint32_t n = sim_network_route(lower->network, device[from], device[to], link);
    *latency_s = 0;
    for (uint32_t i = 0; i < n; i++)
        *latency_s += topology->link[link[i]].latency_s;
    return n;
}

/* Records a message if messages were asked for. */
static void note(Lower *lower, uint32_t group, uint32_t from, uint32_t to, double bytes)
{
    if (!lower->messages)
        return;
    const uint32_t *device = &lower->collective->device[(size_t)group * lower->n];
    const SimMessage message = {.phase = lower->lowered->phase->len,
                                .steps = 1,
                                .from = device[from],
                                .to = device[to],
                                .bytes = bytes};
    g_array_append_val(lower->messages, message);
}

void lower_message(Lower *lower, uint32_t group, uint32_t from, uint32_t to,
                   double weight)
{
    KILTER_ASSERT(weight >= 0);
    if (lower->known)
        return;
    uint32_t link[ROUTE_MAX_LINKS];
    double latency_s;
    const uint32_t n = find_route(lower, group, from, to, link, &latency_s);
    lower->longest_s = fmax(lower->longest_s, latency_s);
    lower->sent += weight;
    if (weight > 0)
        note(lower, group, from, to, weight);
    for (uint32_t i = 0; weight > 0 && i < n; i++) {
        if (lower->weight[link[i]] == 0)
            g_array_append_val(lower->touched, link[i]);
        lower->weight[link[i]] += weight;
    }
}

void lower_hop(Lower *lower, uint32_t group, uint32_t from, uint32_t to, double weight)
{
    KILTER_ASSERT(from < lower->n && to < lower->n);
    const uint32_t *ring = &lower->ring[(size_t)group * lower->n];
    lower_message(lower, group, ring[from], ring[to], weight);
}

/* Records the links of the messages so far as a round. */
static void close_round(Lower *lower)
{
    SimLowered *lowered = lower->lowered;
    const LoweredRound round = {lowered->uses->use->len, lower->touched->len, lower->sent,
                                lower->longest_s};
    for (uint32_t i = 0; i < lower->touched->len; i++) {
        const uint32_t link = g_array_index(lower->touched, uint32_t, i);
        SimUse use = {link, lower->weight[link]};
        g_array_append_val(lowered->uses->use, use);
        lower->weight[link] = 0;
    }
    g_array_append_val(lowered->uses->round, round);
    g_array_set_size(lower->touched, 0);
    lower->sent = 0;
    lower->longest_s = 0;
}

void lower_rounds(Lower *lower, uint32_t steps, double bytes, double idle_bytes)
{
    g_assert(bytes >= 0 && idle_bytes >= 0);
    for (; lower->messages && lower->round_first < lower->messages->len;
         lower->round_first++) {
        SimMessage *message =
            &g_array_index(lower->messages, SimMessage, lower->round_first);
        message->steps = steps;
        message->bytes *= bytes;
    }
    SimLowered *lowered = lower->lowered;
    if (!lower->known)
        close_round(lower);
    g_assert(lowered->phase->len < lowered->uses->round->len);
    const LoweredRound *round =
        &g_array_index(lowered->uses->round, LoweredRound, lowered->phase->len);
    const double whole = bytes + idle_bytes;
    const LoweredPhase phase = {whole, whole > 0 ? bytes / whole : 1,
                                steps * round->longest_s};
    g_array_append_val(lowered->phase, phase);
    lowered->sent += round->sent * bytes;
}

void lower_free(Lower *lower, uint32_t group, uint32_t from, uint32_t to, double bytes)
{
    g_assert(bytes >= 0);
    SimLowered *lowered = lower->lowered;
    uint32_t link[ROUTE_MAX_LINKS];
    SimUse use[ROUTE_MAX_LINKS];
    LoweredMessage message = {group * lower->n + from,
                              group * lower->n + to,
                              lowered->uses->use->len,
                              0,
                              bytes,
                              0};
    message.n_uses = find_route(lower, group, from, to, link, &message.latency_s);
    for (uint32_t i = 0; i < message.n_uses; i++)
        use[i] = (SimUse){link[i], 1};
    g_array_append_vals(lowered->uses->use, use, message.n_uses);
    g_array_append_val(lowered->message, message);
    lowered->sent += bytes;
    note(lower, group, from, to, bytes);
}
