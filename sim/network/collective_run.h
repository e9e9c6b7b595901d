/* One collective alone on the network (part of sim/sim.h). */
#pragma once

#include "data/cluster/cluster.h"

#define SIM_EVERY_RANK UINT32_MAX

typedef struct {
    const char *kind;      /* all_reduce, ..., broadcast, reduce, send, push, pull */
    const char *algorithm; /* ring, ...; NULL: by the tuning table */
    /* bytes of the tensor; for an all-to-all the mean bytes of a rank */
    double bytes;
    /* [rank]: the relative shares that ranks have (all-gather), get (reduce-scatter), have and get
     * (all-to-all), or serve (push, pull); NULL: equal. Other kinds take none */
    const double *share;
    uint32_t n_shares;
    const uint32_t *device; /* [n_devices] of the view, the ranks; NULL: all */
    uint32_t n_devices;
    uint32_t root; /* of broadcast, reduce, push, pull; SIM_EVERY_RANK (push, pull): all
                      are servers */
    double skew_s; /* ranks arrive at random times within it */
    uint64_t seed;
} SimCollectiveOptions;

typedef struct {
    char *name; /* "host-0 -> switch-0": one direction */
    double bandwidth, bytes, busy_s;
} SimLinkReport;

typedef struct {
    const char *algorithm;
    uint32_t n_ranks, n_links;
    double *arrival_s, *end_s; /* [rank] */
    /* when the last rank was done; when the last rank arrived */
    double time_s, last_arrival_s;
    double latency_s;    /* part of the time in which no byte moves */
    double sent_bytes;   /* bytes sent by all ranks */
    SimLinkReport *link; /* links that carried bytes */
} SimCollectiveRun;

/* Runs the collective over devices of the view; for `send`, rank 0 sends to rank 1.
 * KILTER_ERROR_INPUT says which option is wrong. */
SimCollectiveRun *sim_collective_run(const ClusterView *view,
                                     const SimCollectiveOptions *options, GError **error);
AUTOPTR(sim_collective_run_free, SimCollectiveRun)
