/* Random clusters of devices on the market: unlike machines and NICs, topologies, regions. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_MARKET_H
#define KILTER_TESTS_SUPPORT_RANDOM_MARKET_H

#include "data/cluster/cluster.h"
#include "tests/test.h"

enum { MARKET_GROUPS = 3, MARKET_MOST_GPUS = 24 };

typedef struct {
    uint32_t n, count[MARKET_GROUPS];
} MarketGroups;

static inline uint32_t market_pick(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

/* Up to three groups of equal machines, of 24 GPUs at most. */
static inline MarketGroups market_machines(GRand *rand, bool regions, GString *text)
{
    static const char *const device[] = {"h100-sxm", "a100-80g", "a100-40g", "rtx-3090",
                                         "l40s",     "rtx-4090", "h20",      "mi300x"};
    static const char *const nic[] = {"eth-10", "eth-25", "eth-100",
                                      "ib-hdr", "ib-ndr", "ib-ndr"};
    static const uint32_t gpus[] = {1, 2, 4, 4, 8, 8};
    MarketGroups groups = {.n = 1 + market_pick(rand, MARKET_GROUPS)};
    g_string_append(text, "machines:\n");
    for (uint32_t g = 0, left = MARKET_MOST_GPUS; g < groups.n; g++) {
        const uint32_t most = left - 2 * (groups.n - 1 - g);
        uint32_t n = gpus[market_pick(rand, G_N_ELEMENTS(gpus))];
        n = MIN(n, most);
        groups.count[g] = 1 + market_pick(rand, MIN(most / n, 3));
        left -= n * groups.count[g];
        g_string_append_printf(
            text,
            "  - {name: m%u, device: %s, gpus: %u, count: %u, nic: %s, "
            "nics: %u",
            g, device[market_pick(rand, G_N_ELEMENTS(device))], n, groups.count[g],
            nic[market_pick(rand, G_N_ELEMENTS(nic))],
            n > 1 && market_pick(rand, 2) ? n / 2 : 1);
        g_string_append_printf(text, regions ? ", region: r%u}\n" : "}\n", g);
    }
    return groups;
}

/* Every two groups' regions are joined by a link of their own. */
static inline void market_regions(GRand *rand, const MarketGroups *groups, GString *text)
{
    static const char *const link[] = {
        "latency: 20 ms, bandwidth: 10 Gb/s", "latency: 2 ms, bandwidth: 10 Gb/s",
        "latency: 1 ms, bandwidth: 100 Gb/s", "latency: 100 ms, bandwidth: 1 Gb/s"};
    g_string_append(text, "regions:\n");
    for (uint32_t a = 0; a < groups->n; a++)
        for (uint32_t b = a + 1; b < groups->n; b++)
            g_string_append_printf(text, "  - {from: r%u, to: r%u, %s}\n", a, b,
                                   link[market_pick(rand, G_N_ELEMENTS(link))]);
}

/* A switch for each group, or a tree. */
static inline void market_topology(GRand *rand, const MarketGroups *groups, GString *text)
{
    static const uint32_t gbits[] = {10, 25, 100, 400};
    if (market_pick(rand, 3) == 0) {
        g_string_append_printf(text,
                               "topology: {builder: 'tree:leaf=2,bandwidth=%uGb/s'}\n",
                               gbits[market_pick(rand, G_N_ELEMENTS(gbits))]);
        return;
    }
    g_string_append(text, "topology:\n  nodes: [core");
    for (uint32_t g = 0; g < groups->n; g++)
        g_string_append_printf(text, ", s%u", g);
    g_string_append(text, "]\n  links:\n");
    for (uint32_t g = 0; g < groups->n; g++) {
        g_string_append_printf(
            text, "    - {from: s%u, to: core, latency: 2 us, bandwidth: %u Gb/s}\n", g,
            gbits[market_pick(rand, G_N_ELEMENTS(gbits))]);
        for (uint32_t m = 0; m < groups->count[g]; m++) {
            g_autofree char *number =
                groups->count[g] > 1 ? g_strdup_printf("-%u", m) : g_strdup("");
            g_string_append_printf(
                text,
                "    - {from: m%u%s, to: s%u, latency: 2 us, bandwidth: 400 Gb/s}\n", g,
                number, g);
        }
    }
}

/* The cluster's file; 2 to 24 GPUs. */
static inline char *random_market(GRand *rand)
{
    g_autoptr(GString) text = g_string_new("name: lab\n");
    const uint32_t kind = market_pick(rand, 3);
    const MarketGroups groups = market_machines(rand, kind == 2, text);
    if (kind == 1)
        market_topology(rand, &groups, text);
    else if (kind == 2 && groups.n > 1)
        market_regions(rand, &groups, text);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

#endif
