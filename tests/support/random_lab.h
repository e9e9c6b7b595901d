/* Random clusters of a few unlike machines, small enough for every planner. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_LAB_H
#define KILTER_TESTS_SUPPORT_RANDOM_LAB_H

#include <math.h>

#include "data/cluster/cluster.h"
#include "tests/test.h"

/* Machines of up to three kinds of devices, up to 20 times as fast as one another, with little or
 * much memory. */
static inline Cluster *random_lab(GRand *rand)
{
    g_autoptr(GString) text = g_string_new("name: lab\ndevice_types:\n");
    g_autoptr(GError) error = NULL;
    const uint32_t kinds = (uint32_t)g_rand_int_range(rand, 1, 4);
    for (uint32_t k = 0; k < kinds; k++) {
        const double memory = exp(g_rand_double_range(rand, log(16), log(400))),
                     rate = exp(g_rand_double_range(rand, 0, log(20)));
        g_string_append_printf(
            text,
            "  - {name: t%u, rate: %.3f GFLOP/s, memory: %.3f MiB, source: random}\n", k,
            rate, memory);
    }
    g_string_append(text, "machines:\n");
    for (uint32_t k = 0; k < kinds; k++) {
        const double bandwidth = exp(g_rand_double_range(rand, log(100), log(5000)));
        const int count = g_rand_int_range(rand, 1, 3),
                  gpus = g_rand_int_range(rand, 1, 4);
        g_string_append_printf(
            text,
            "  - {name: m%u, type: t%u, gpus: %d, count: %d, inner: {latency: 5 us, "
            "bandwidth: %.3f MB/s}, source: random}\n",
            k, k, gpus, count, bandwidth);
    }
    const double network = exp(g_rand_double_range(rand, log(2), log(1000)));
    g_string_append(text, "collectives:\n");
    for (Collective c = 0; c < (Collective)COLLECTIVES_PRICED; c++)
        g_string_append_printf(text, "  %s: {latency: 20 us, bandwidth: %.3f MB/s}\n",
                               collective_name(c),
                               network * g_rand_double_range(rand, 0.5, 1));
    g_string_append(text, "  source: random\n");
    Cluster *cluster = cluster_parse("lab", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

#endif
