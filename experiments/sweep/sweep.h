/* Sweeps: many configurations on all cores, one row each, resumable.
 *
 * Worker threads evaluate; the calling thread alone writes the store, each result as it comes, so a
 * killed sweep loses only what was in flight. What a row holds does not depend on the number of
 * threads; the order of rows may. A plan that does not fit is a row with status "oom", a
 * model, a cluster and a planner that do not go together are one with status "impossible". A
 * configuration that fails in any other way gets no row, so that the next sweep tries it again, and
 * fails the sweep once all the others are done. */
#ifndef KILTER_EXPERIMENTS_SWEEP_SWEEP_H
#define KILTER_EXPERIMENTS_SWEEP_SWEEP_H

#include "experiments/sweep/experiment.h"

typedef struct {
    uint32_t total;      /* configurations of the experiment */
    uint32_t present;    /* of them in the store before */
    uint32_t done;       /* evaluated now and written */
    uint32_t oom;        /* of those done, */
    uint32_t impossible; /* and of the others */
    uint32_t failed;
    double elapsed_s;
} SweepProgress;

typedef struct {
    uint32_t threads; /* 0: one per core */
    /* Of `shards` shards (0: not cut) the one to evaluate, from 0: configurations are dealt by their hash, so that every
     * machine knows its own. The other ones do not count in the progress. */
    uint32_t shard, shards;
    /* Called from the calling thread after every result and several times a second; returns false
     * to stop: no further configuration is started, those in flight are finished and written. May
     * be NULL. */
    bool (*watch)(const SweepProgress *progress, void *data);
    void *data;
} SweepOptions;

/* Evaluates what the store lacks. KILTER_ERROR_FAILED, with the first reason, if configurations
 * failed or the sweep was stopped; *progress says how far it came in any case. */
bool sweep_run(const Experiment *experiment, Store *store, const SweepOptions *options,
               SweepProgress *progress, GError **error);

typedef struct {
    uint32_t total, present; /* as in SweepProgress */
    uint32_t tried;          /* of those that are missing, evenly spread */
    double each_s; /* one of them takes on one thread, on average; NaN: none was tried */
    double all_s;  /* what is missing takes on all threads */
} SweepEstimate;

/* Looks up what is missing (store NULL: all) and evaluates some of it, for a second or two; nothing is written. */
bool sweep_estimate(const Experiment *experiment, Store *store,
                    const SweepOptions *options, SweepEstimate *estimate, GError **error);

/* How far it is: [shard], or [0] where shards is 0. */
typedef struct {
    uint32_t total, ok, oom, impossible, missing;
} SweepStatus;

/* Caller frees. */
SweepStatus *sweep_status(const Experiment *experiment, Store *store, uint32_t shards,
                          GError **error);

#endif
