/* Costs of all collectives, and their source, as the end of a cluster's file. */
#pragma once

#define COSTS_TEXT                                                   \
    "collectives:\n"                                                 \
    "  all_reduce: {latency: 8 us, bandwidth: 1 GB/s}\n"             \
    "  all_gather: {latency: 8 us, bandwidth: 1 GB/s}\n"             \
    "  grouped_all_gather: {latency: 8 us, bandwidth: 2 GB/s}\n"     \
    "  reduce_scatter: {latency: 8 us, bandwidth: 1 GB/s}\n"         \
    "  grouped_reduce_scatter: {latency: 8 us, bandwidth: 1 GB/s}\n" \
    "  all_to_all: {latency: 8 us, bandwidth: 0.5 GB/s}\n"           \
    "  source: s\n"
