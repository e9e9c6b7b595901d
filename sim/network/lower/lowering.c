/* Lowering a collective to messages: the choice of its algorithm, and what algorithms call. */
#include "sim/network/lower/lowering.h"

#include <math.h>
#include <stdlib.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/network/lower/lower.h"

#define LOWERING_ENTRY(traffic, algorithm, how) \
    [TRAFFIC_##traffic][ALGORITHM_##algorithm] = lower_##how,
static const LowerAlgorithm LOWER[TRAFFICS][ALGORITHMS] = {
    LOWERING_TABLE(LOWERING_ENTRY)};

/* The algorithm that is asked for or that the tuning table names; AUTO if neither is. */
static Algorithm choose(const SimCollective *collective, const Topology *topology,
                        GError **error)
{
    if (collective->algorithm != ALGORITHM_AUTO)
        return algorithm_check(collective->algorithm, collective->traffic, error)
                   ? collective->algorithm
                   : ALGORITHM_AUTO;
    const Algorithm chosen = tuning_choose(topology->tuning, collective->traffic,
                                           collective->n, collective->bytes);
    if (chosen == ALGORITHM_AUTO)
        refuse(error, "no tuning rule for %s of %.0f bytes among %u ranks",
               traffic_name(collective->traffic), collective->bytes, collective->n);
    return chosen;
}

/* The fitted collective whose part of the bandwidth each kind of traffic gets. */
static const Collective FITTED[TRAFFICS] = {
    [TRAFFIC_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE,
    [TRAFFIC_ALL_GATHER] = COLLECTIVE_ALL_GATHER,
    [TRAFFIC_GROUPED_ALL_GATHER] = COLLECTIVE_GROUPED_ALL_GATHER,
    [TRAFFIC_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER,
    [TRAFFIC_GROUPED_REDUCE_SCATTER] = COLLECTIVE_GROUPED_REDUCE_SCATTER,
    [TRAFFIC_ALL_TO_ALL] = COLLECTIVE_ALL_TO_ALL,
    [TRAFFIC_BROADCAST] = COLLECTIVE_GROUPED_ALL_GATHER,
    [TRAFFIC_REDUCE] = COLLECTIVE_GROUPED_REDUCE_SCATTER,
    [TRAFFIC_SEND] = COLLECTIVE_ALL_REDUCE,
    [TRAFFIC_PUSH] = COLLECTIVE_ALL_REDUCE,
    [TRAFFIC_PULL] = COLLECTIVE_ALL_REDUCE,
};

static bool check(const SimCollective *collective, const Topology *topology,
                  GError **error)
{
    const uint32_t groups = MAX(1, collective->n_groups);
    if (collective->n == 0 || !(collective->bytes >= 0 && isfinite(collective->bytes)))
        return refuse(error, "expected at least one rank and a finite amount of bytes");
    for (size_t i = 0; i < (size_t)groups * collective->n; i++)
        if (collective->device[i] >= topology->n_devices)
            return refuse(error, "device %u: the network has %u", collective->device[i],
                          topology->n_devices);
    const bool server =
        collective->traffic == TRAFFIC_PUSH || collective->traffic == TRAFFIC_PULL;
    if (collective->root >= collective->n + server)
        return refuse(error, "root %u: there are %u ranks", collective->root,
                      collective->n);
    if (collective->traffic == TRAFFIC_SEND && collective->n < 2)
        return refuse(error, "send: expected 2 ranks, got 1");
    return true;
}

typedef struct {
    uint32_t position, rank;
} Placed;

static ORDER_DEFINE(by_position, Placed, ASCENDING(position));

/* Ranks of each group in the topology's order. */
static void order_ranks(Lower *lower)
{
    const Topology *topology = sim_network_topology(lower->network);
    const uint32_t n = lower->n;
    g_autofree Placed *placed = g_new(Placed, n);
    lower->ring = g_new(uint32_t, (size_t)lower->n_groups * n);
    lower->position = g_new(uint32_t, (size_t)lower->n_groups * n);
    for (size_t first = 0; first < (size_t)lower->n_groups * n; first += n) {
        for (uint32_t i = 0; i < n; i++)
            placed[i] =
                (Placed){topology->order[lower->collective->device[first + i]], i};
        qsort(placed, n, sizeof *placed, by_position);
        for (uint32_t i = 0; i < n; i++) {
            lower->ring[first + i] = placed[i].rank;
            lower->position[first + placed[i].rank] = i;
        }
    }
}

/* Indexes the messages of each rank. */
static void index_messages(SimLowered *lowered)
{
    g_assert(lowered->n_ranks > 0);
    const GArray *messages = lowered->message;
    lowered->first_of = g_new0(uint32_t, lowered->n_ranks + 1);
    lowered->message_of = g_new(uint32_t, 2 * (size_t)messages->len);
    array_each (const LoweredMessage, message, messages) {
        lowered->first_of[message->from + 1]++;
        lowered->first_of[message->to + 1]++;
    }
    for (uint32_t i = 0; i < lowered->n_ranks; i++)
        lowered->first_of[i + 1] += lowered->first_of[i];
    g_autofree uint32_t *next =
        g_memdup2(lowered->first_of, lowered->n_ranks * sizeof *next);
    array_at (const LoweredMessage, message, i, messages) {
        lowered->message_of[next[message->from]++] = i;
        lowered->message_of[next[message->to]++] = i;
    }
}

static LoweredUses *uses_new(void)
{
    LoweredUses *uses = g_new(LoweredUses, 1);
    *uses = (LoweredUses){1, g_array_new(FALSE, FALSE, sizeof(SimUse)),
                          g_array_new(FALSE, FALSE, sizeof(LoweredRound))};
    return uses;
}

static LoweredUses *uses_share(LoweredUses *uses)
{
    g_assert(uses->n_owners > 0);
    uses->n_owners++;
    return uses;
}

static void uses_free(LoweredUses *uses)
{
    if (--uses->n_owners > 0)
        return;
    unref_arrays(uses->use, uses->round);
    g_free(uses);
}

static SimLowered *lowered_new(const SimCollective *collective, const Topology *topology,
                               const SimLowered *like)
{
    SimLowered *lowered = g_new0(SimLowered, 1);
    lowered->n_ranks = collective->n * MAX(1, collective->n_groups);
    lowered->efficiency = topology->efficiency[FITTED[collective->traffic]];
    lowered->payload = 1;
    lowered->uses = like ? uses_share(like->uses) : uses_new();
    lowered->phase = g_array_new(FALSE, FALSE, sizeof(LoweredPhase));
    lowered->bundle_use = g_array_new(FALSE, FALSE, sizeof(SimUse));
    lowered->message = g_array_new(FALSE, FALSE, sizeof(LoweredMessage));
    return lowered;
}

SimLowered *sim_lower(SimNetwork *network, const SimCollective *collective,
                      GError **error)
{
    return sim_lower_like(network, collective, NULL, NULL, error);
}

/* Whether the rounds of `like` are those of a collective by this algorithm. Without bytes a round
 * has no messages, and messages that are kept one by one are made anew. */
static bool knows_rounds(const SimLowered *like, const SimCollective *collective,
                         Algorithm algorithm)
{
    return like && like->algorithm == algorithm && like->message->len == 0 &&
           like->has_bytes && collective->bytes > 0;
}

SimLowered *sim_lower_like(SimNetwork *network, const SimCollective *collective,
                           const SimLowered *like, GArray *messages, GError **error)
{
    const Topology *topology = sim_network_topology(network);
    if (!check(collective, topology, error))
        return NULL;
    const Algorithm chosen = choose(collective, topology, error);
    if (chosen == ALGORITHM_AUTO)
        return NULL;
    const bool known = !messages && knows_rounds(like, collective, chosen);
    g_autoptr(SimLowered) lowered =
        lowered_new(collective, topology, known ? like : NULL);
    lowered->algorithm = chosen;
    lowered->has_bytes = collective->bytes > 0;
    const LowerAlgorithm algorithm = LOWER[collective->traffic][chosen];
    Lower lower = {.network = network,
                   .collective = collective,
                   .lowered = lowered,
                   .known = known,
                   .n = collective->n,
                   .n_groups = MAX(1, collective->n_groups),
                   .messages = messages,
                   .round_first = messages ? messages->len : 0,
                   .weight = g_new0(double, topology->n_links),
                   .touched = g_array_new(FALSE, FALSE, sizeof(uint32_t))};
    order_ranks(&lower);
    /* A single rank already has everything. */
    const bool good = collective->n == 1 || algorithm(&lower, error);
    free_each(lower.ring, lower.position, lower.weight);
    g_array_unref(lower.touched);
    if (!good)
        return NULL;
    if (lowered->message->len > 0)
        index_messages(lowered);
    lower_bundles(lowered, topology);
    return g_steal_pointer(&lowered);
}

void lowered_scale(SimLowered *lowered, double factor)
{
    g_assert(factor > 0);
    array_each (LoweredPhase, phase, lowered->phase) {
        phase->bytes *= factor;
        phase->payload /= factor;
        phase->latency_s *= factor;
    }
    array_each (LoweredMessage, message, lowered->message) {
        message->bytes *= factor;
        message->latency_s *= factor;
    }
    for (uint32_t i = 0; i < lowered->n_bundles; i++) {
        lowered->bundle[i].bytes *= factor;
        lowered->bundle[i].latency_s *= factor;
    }
    lowered->payload /= factor;
}

FREE_DEFINE(sim_lowered_free, SimLowered, lowered, uses_free(lowered->uses),
            unref_arrays(lowered->phase, lowered->message, lowered->bundle_use),
            free_each(lowered->bundle, lowered->member, lowered->first_of,
                      lowered->message_of));

Algorithm sim_lowered_algorithm(const SimLowered *lowered)
{
    return lowered->algorithm;
}

double sim_lowered_latency_s(const SimLowered *lowered)
{
    double latency_s = 0;
    for (uint32_t i = 0; i < lowered->phase->len; i++)
        latency_s += g_array_index(lowered->phase, LoweredPhase, i).latency_s;
    for (uint32_t i = 0; i < lowered->message->len; i++)
        latency_s =
            fmax(latency_s, g_array_index(lowered->message, LoweredMessage, i).latency_s);
    return latency_s;
}

double sim_lowered_bytes(const SimLowered *lowered)
{
    return lowered->sent;
}
