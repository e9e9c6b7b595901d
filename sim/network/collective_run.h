/* One collective, alone on the network (part of sim/sim.h). */
#ifndef KILTER_SIM_NETWORK_COLLECTIVE_RUN_H
#define KILTER_SIM_NETWORK_COLLECTIVE_RUN_H

#include "data/data.h"

#define SIM_EVERY_RANK UINT32_MAX

typedef struct {
    const char *kind;      /* all_reduce, ..., broadcast, reduce, send, push, pull */
    const char *algorithm; /* ring, ...; NULL: by the tuning table */
    double bytes;        /* of the tensor; of an all-to-all, of each rank (their mean) */
    const double *share; /* [rank], relative: what each has of it (all-gather), gets
                            (reduce-scatter), both (all-to-all), or serves (push, pull);
                            NULL: equal. No other kind takes any */
    uint32_t n_shares;
    uint32_t root; /* of broadcast, reduce, push, pull; SIM_EVERY_RANK (push, pull): all
                      are servers */
    double skew_s; /* ranks come at random within it */
    uint64_t seed;
} SimCollectiveOptions;

typedef struct {
    char *name; /* "host-0 -> switch-0": one direction */
    double bandwidth, bytes, busy_s;
} SimLinkReport;

typedef struct {
    const char *algorithm;
    uint32_t n_ranks, n_links;
    double *arrival_s, *end_s;     /* [rank] */
    double time_s, last_arrival_s; /* when the last rank is done, and when it came */
    double latency_s;              /* part of the time in which no byte moves */
    double sent_bytes;             /* by all ranks */
    SimLinkReport *link;           /* that carried any */
} SimCollectiveRun;

/* Over all devices of the view; rank 0 sends to rank 1. KILTER_ERROR_INPUT. */
SimCollectiveRun *sim_collective_run(const ClusterView *view,
                                     const SimCollectiveOptions *options, GError **error);
void sim_collective_run_free(SimCollectiveRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimCollectiveRun, sim_collective_run_free)

#endif
