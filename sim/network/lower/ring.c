/* Rings and chains. */

#include "sim/network/lower/lower.h"

static void hops_around(Lower *lower)
{
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t i = 0; i < lower->n; i++)
            lower_hop(lower, g, i, (i + 1) % lower->n, 1);
}

bool lower_ring_all_reduce(Lower *lower, GError **error)
{
    const uint32_t steps = 2 * (lower->n - 1);
    (void)error;
    hops_around(lower);
    lower_rounds(lower, steps, steps * lower->collective->bytes / lower->n, 0);
    return true;
}

/* All-gather and reduce-scatter: every part passes n - 1 links. */
bool lower_ring_parts(Lower *lower, GError **error)
{
    const uint32_t steps = lower->n - 1;
    (void)error;
    hops_around(lower);
    lower_rounds(lower, steps, steps * lower_part_bytes(lower), 0);
    return true;
}

/* V in pieces, from the root along the ring, or back to it. */
static void chain(Lower *lower, uint32_t root, double bytes, bool to_root, uint32_t steps,
                  double idle_pieces)
{
    KILTER_ASSERT(root < lower->n);
    for (uint32_t g = 0; g < lower->n_groups; g++) {
        const uint32_t start = lower->position[(size_t)g * lower->n + root];
        for (uint32_t i = 0; i + 1 < lower->n; i++) {
            const uint32_t a = (start + i) % lower->n, b = (start + i + 1) % lower->n;
            lower_hop(lower, g, to_root ? b : a, to_root ? a : b, 1);
        }
    }
    const double pieces = lower_pieces(lower, bytes, steps);
    lower_rounds(lower, steps, bytes, idle_pieces * bytes / pieces);
}

bool lower_chain(Lower *lower, GError **error)
{
    const bool to_root = lower->collective->traffic == TRAFFIC_REDUCE;
    (void)error;
    chain(lower, lower->collective->root, lower->collective->bytes, to_root, lower->n - 1,
          lower->n - 2.0);
    return true;
}

/* A chain for each rank's part, one behind the other: the pipeline fills once, and each later
 * chain waits for one hop. */
bool lower_ring_grouped(Lower *lower, GError **error)
{
    const bool gather = lower->collective->traffic == TRAFFIC_GROUPED_ALL_GATHER;
    (void)error;
    for (uint32_t i = 0; i < lower->n; i++) {
        const double share =
            gather ? lower_share_from(lower, i) : lower_share_to(lower, i);
        chain(lower, i, share * lower->collective->bytes, !gather,
              i == 0 ? lower->n - 1 : 1, i == 0 ? lower->n - 2.0 : 0);
    }
    return true;
}
