/* The experiment file: a grid of configurations, as people write it.
 *
 *     name: my-ablation
 *     description: how much gradient bucketing saves
 *     grid:
 *       model: [vgg19, "vit:layers=24,batch=64"]
 *       cluster: [hap-8, hap-16]
 *       planner: [hap, dp-ev, "hap:ratios=even"]   # options after a colon are this entry's own
 *       granularity: [machine]      # machine (default) or gpu
 *       fidelity: [stage]           # default
 *       seed: [0, 1]                # default: the planners' own
 *       model.layers: [12, 24]      # any key of the models,
 *       cluster.scale.network: [1, 2]   # change of the clusters (data/cluster/change.h: only, without, add, scale.WHAT;
 *                                   # none and 1 change nothing) or key of networks such as star:hosts=4,
 *       planner.beam: [100, 500]    # and option of planners
 *       simulation.jitter: [0, 0.1] # or of the simulation
 *     exclude:                      # what is left out: patterns with * and ?, all of an entry have to match
 *       - {model: vit*, planner: amp, model.layers: "24"}
 *     set: ["bucket=25 MiB"]
 *
 * or, in place of the grid, collectives alone, as the cost model prices them:
 *
 *     exchange:
 *       kind: [all_gather, grouped_all_gather]
 *       bytes: [4 MB]               # of the whole tensor
 *       share: [0.25, 0.5]          # of the first device; the others share the rest alike
 *       cluster: [hap-a100-4]
 *       granularity: [gpu]          # default
 *
 * All words are looked up before anything is evaluated or written. A model, a cluster and a planner that do not go together
 * are configurations all the same, whose answer is why. */
#ifndef KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_H
#define KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_H

#include "experiments/sweep/configuration.h"

typedef struct Experiment Experiment;

enum { EXPERIMENT_MOST = 10000000 }; /* configurations */

/* Changes that a command line makes to an experiment; NULL or empty members change nothing. */
typedef struct {
    const char *granularity; /* replaces the grid's */
    const uint64_t *seed;    /* replaces the grid's */
    char **set;              /* comes after the file's `set:` */
} ExperimentChange;

/* Reads a file, or NAME for experiments/NAME.yaml on the search path. KILTER_ERROR_INPUT names
 * file, line, key and what was expected: also for unknown models, clusters, planners, fidelities,
 * options and empty lists. */
Experiment *experiment_load(const char *name, const ExperimentChange *change,
                            GError **error);
void experiment_free(Experiment *experiment);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Experiment, experiment_free)

const char *experiment_name(const Experiment *experiment);
const char *experiment_description(const Experiment *experiment); /* "" if it has none */

/* The product of the grid, models slowest and seeds fastest, without repetitions; borrowed. */
uint32_t experiment_count(const Experiment *experiment);
const Configuration *experiment_at(const Experiment *experiment, uint32_t index);

/* All of them as questions to a store, in that order. The caller frees the array, whose texts are the experiment's. */
StoreAsked *experiment_asked(const Experiment *experiment);
/* Queries of the store see the results of these configurations and no others (store_select). */
bool experiment_select(const Experiment *experiment, Store *store, GError **error);

#endif
