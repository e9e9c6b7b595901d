/* Messages that go straight from rank to rank. */
#include <math.h>

#include "sim/network/lower/lower.h"

static double direct_between(const Lower *lower, uint32_t i, uint32_t j)
{
    return lower_share_from(lower, i) * lower_share_to(lower, j) *
           lower->collective->bytes;
}

/* Round k: each rank sends to the k-th rank after it; the round lasts as long as its largest
 * message. */
bool lower_pairwise(Lower *lower, GError **error)
{
    const uint32_t n = lower->n, *ring = lower->ring;
    (void)error;
    for (uint32_t k = 1; k < n; k++) {
        const double largest =
            most_over(double, i, n, 0, direct_between(lower, ring[i], ring[(i + k) % n]));
        for (uint32_t g = 0; g < lower->n_groups; g++)
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t a = ring[(size_t)g * n + i],
                               b = ring[(size_t)g * n + (i + k) % n];
                lower_message(lower, g, a, b,
                              largest > 0 ? direct_between(lower, a, b) / largest : 0);
            }
        lower_rounds(lower, 1, largest, 0);
    }
    return true;
}

/* Messages between all pairs are kept one by one: an all-to-all of 4,096 ranks is the largest. */
static bool check_pairs(const Lower *lower, GError **error)
{
    const double n = lower->n, most = 0x1p24, messages = lower->n_groups * n * (n - 1);
    return messages <= most ||
           refuse(error,
                  "%u ranks would send %.3g messages, expected at most %.3g; an "
                  "algorithm of rounds takes more ranks",
                  lower->n, messages, most);
}

bool lower_direct_all_to_all(Lower *lower, GError **error)
{
    if (!check_pairs(lower, error))
        return false;
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t k = 1; k < lower->n; k++)
            for (uint32_t i = 0; i < lower->n; i++)
                lower_free(lower, g, i, (i + k) % lower->n,
                           direct_between(lower, i, (i + k) % lower->n));
    return true;
}

/* Every part goes from its owner to all other ranks, or from all other ranks to its owner; padded
 * or exact. */
bool lower_direct_parts(Lower *lower, GError **error)
{
    const Traffic traffic = lower->collective->traffic;
    const bool gather =
        traffic == TRAFFIC_ALL_GATHER || traffic == TRAFFIC_GROUPED_ALL_GATHER;
    const bool padded =
        traffic == TRAFFIC_ALL_GATHER || traffic == TRAFFIC_REDUCE_SCATTER;
    if (!check_pairs(lower, error))
        return false;
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t k = 1; k < lower->n; k++)
            for (uint32_t i = 0; i < lower->n; i++) {
                const uint32_t j = (i + k) % lower->n;
                const double share =
                    gather ? lower_share_from(lower, i) : lower_share_to(lower, j);
                lower_free(lower, g, i, j,
                           padded ? lower_part_bytes(lower)
                                  : share * lower->collective->bytes);
            }
    return true;
}

/* Broadcast, reduce and send, each directly from or to the root. */
bool lower_direct_root(Lower *lower, GError **error)
{
    const SimCollective *collective = lower->collective;
    (void)error;
    for (uint32_t g = 0; collective->weight && g < lower->n_groups; g++)
        lower_message(lower, g, 0, 1, collective->weight[g]);
    if (collective->weight) {
        lower_rounds(lower, 1, collective->bytes, 0);
        return true;
    }
    for (uint32_t g = 0; g < lower->n_groups; g++) {
        if (collective->traffic == TRAFFIC_SEND) {
            lower_free(lower, g, 0, 1, collective->bytes);
            continue;
        }
        const bool reduce = collective->traffic == TRAFFIC_REDUCE;
        for (uint32_t i = 0; i < lower->n; i++)
            if (i != collective->root)
                lower_free(lower, g, reduce ? i : collective->root,
                           reduce ? collective->root : i, collective->bytes);
    }
    return true;
}

/* Messages from workers to servers, or back. */
bool lower_direct_server(Lower *lower, GError **error)
{
    const SimCollective *collective = lower->collective;
    const bool push = collective->traffic == TRAFFIC_PUSH;
    (void)error;
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t server = 0; server < lower->n; server++) {
            if (collective->root < lower->n && server != collective->root)
                continue;
            const double bytes =
                collective->bytes *
                (collective->root < lower->n ? 1 : lower_share_to(lower, server));
            for (uint32_t i = 0; i < lower->n; i++)
                if (i != server)
                    lower_free(lower, g, push ? i : server, push ? server : i, bytes);
        }
    return true;
}
