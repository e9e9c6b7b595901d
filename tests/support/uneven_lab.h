/* A cluster of two kinds of machines, for tests. */
#ifndef KILTER_TESTS_SUPPORT_UNEVEN_LAB_H
#define KILTER_TESTS_SUPPORT_UNEVEN_LAB_H

#include "data/data.h"
#include "tests/test.h"

/* Two kinds of machines of 4 and 2 GPUs, the second one slower and with less memory. */
static inline Cluster *uneven_lab(double memory_mib, double bandwidth_mb)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf(
        "name: lab\ndevice_types:\n"
        "  - {name: fast, rate: 20 GFLOP/s, memory: %.3f MiB, source: test}\n"
        "  - {name: slow, rate: 6 GFLOP/s, memory: %.3f MiB, source: test}\n"
        "machines:\n"
        "  - {name: f, type: fast, gpus: 4, inner: {latency: 2 us, bandwidth: 2 GB/s}, "
        "source: test}\n"
        "  - {name: s, type: slow, gpus: 2, count: 2, inner: {latency: 2 us, bandwidth: "
        "1 "
        "GB/s}, source: test}\n"
        "collectives:\n"
        "  all_reduce: {latency: 20 us, bandwidth: %.3f MB/s}\n"
        "  all_gather: {latency: 20 us, bandwidth: %.3f MB/s}\n"
        "  grouped_all_gather: {latency: 20 us, bandwidth: %.3f MB/s}\n"
        "  reduce_scatter: {latency: 20 us, bandwidth: %.3f MB/s}\n"
        "  grouped_reduce_scatter: {latency: 20 us, bandwidth: %.3f MB/s}\n"
        "  all_to_all: {latency: 20 us, bandwidth: %.3f MB/s}\n  source: test\n",
        memory_mib, memory_mib / 2, bandwidth_mb, bandwidth_mb, bandwidth_mb,
        bandwidth_mb, bandwidth_mb, bandwidth_mb);
    Cluster *cluster = cluster_parse("lab", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

#endif
