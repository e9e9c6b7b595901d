/* Sweeps: many configurations on all cores, one row each, resumable.
 *
 * Worker threads evaluate; the calling thread alone writes the store, each result as it comes, so a
 * killed sweep loses only what was in flight. Several processes of one machine may sweep into one
 * store, and share the work; what ended two processes is passed over and named. The content of a
 * row does not depend on the number of threads; the order of rows may. A plan that does not fit
 * gives a row with status "oom"; a model, a cluster and a planner that do not go together give one
 * with status "impossible". A configuration that fails in any other way gets no row, so that the
 * next sweep tries it again, and fails the sweep once all the others are done. */
#pragma once

#include "experiments/sweep/experiment.h"

typedef struct Store Store;               /* data/store/store.h */
typedef struct StoreAttempt StoreAttempt; /* data/store/store.h */

typedef struct {
    uint32_t total; /* configurations of the experiment */
    /* of them in the store already, or put there by other processes meanwhile */
    uint32_t present;
    uint32_t done;       /* evaluated now and written */
    uint32_t oom;        /* of those done, how many do not fit the memory */
    uint32_t impossible; /* of those done, how many are impossible */
    uint32_t failed;
    double elapsed_s;
} SweepProgress;

typedef struct {
    uint32_t threads; /* 0: one per core */
    /* The shard to evaluate, from 0, of `shards` shards (0: the sweep is not divided).
     * Configurations are dealt by their hash, so that every machine knows its own; those of other
     * shards do not count in the progress. */
    uint32_t shard, shards;
    bool again; /* tries what ended processes before, too */
    /* Is told the file that the process makes if it ends by its own fault; NULL: it is over. May
     * be NULL. */
    void (*faults)(const char *file);
    /* Called in the calling thread after every result and several times per second. It returns
     * false to stop the sweep: no further configuration is started, and those in flight are
     * finished and written. May be NULL. */
    bool (*watch)(const SweepProgress *progress, void *data);
    void *data;
} SweepOptions;

/* Evaluates what the store lacks. KILTER_ERROR_FAILED, with the first reason, if configurations
 * failed or the sweep was stopped; in any case *progress says how far the sweep came. */
bool sweep_run(const Experiment *experiment, Store *store, const SweepOptions *options,
               SweepProgress *progress, GError **error);

typedef struct {
    uint32_t total, present; /* as in SweepProgress */
    uint32_t tried;          /* number evaluated of the missing ones, evenly spread */
    double each_s; /* mean time of one of them on one thread; NaN: none was tried */
    double all_s;  /* time of all missing configurations on all threads */
} SweepEstimate;

/* Looks up the missing configurations (store NULL: all) and evaluates some of them for a second or
 * two; nothing is written. */
bool sweep_estimate(const Experiment *experiment, Store *store,
                    const SweepOptions *options, SweepEstimate *estimate, GError **error);

/* The progress of each shard: [shard], or [0] where shards is 0. */
typedef struct {
    uint32_t total, ok, oom, impossible, missing;
    /* of the missing ones: worked on now; gave an error, or ended as many processes as they may */
    uint32_t running, failed;
} SweepStatus;

/* A configuration that has no result; attempt NULL: it was never tried. Everything is borrowed. */
typedef void (*SweepFailed)(const Configuration *configuration,
                            const StoreAttempt *attempt, void *data);

/* `failed`, which may be NULL, gets each without a result that is not worked on.
 * Caller frees. */
SweepStatus *sweep_status(const Experiment *experiment, Store *store, uint32_t shards,
                          SweepFailed failed, void *data, GError **error);
