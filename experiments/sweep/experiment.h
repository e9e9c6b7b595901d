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
 *                                   # `none` and 1 change nothing), key of networks such as star:hosts=4,
 *       planner.beam: [100, 500]    # option of planners
 *       simulation.jitter: [0, 0.1] # or of the simulation
 *     exclude:                      # configurations to leave out: patterns with * and ?; all patterns of an entry must match
 *       - {model: vit*, planner: amp, model.layers: "24"}
 *     set: ["bucket=25 MiB"]
 *     columns:                      # the same grid as NAME@best: other entries (none: left out) in the
 *       - name: best                # roles of its own, scaled clusters (data/cluster/change.h), more options
 *         about: planned by Kilter
 *         replace: ["hap -> auto", "dp-ev -> none"]
 *         scale: ["*.rate=0.9"]
 *         set: [beam=0]
 *
 * or, in place of the grid, collectives alone, as the cost model prices them:
 *
 *     exchange:
 *       kind: [all_gather, grouped_all_gather]
 *       bytes: [4 MB]               # of the whole tensor
 *       share: [0.25, 0.5]          # of the first device; the others have equal parts of the rest
 *       cluster: [hap-a100-4]
 *       granularity: [gpu]          # default
 *
 * All words are looked up before anything is evaluated or written. A model, a cluster and a planner
 * that do not go together still make a configuration; its result is the reason. */
#pragma once

#include "experiments/sweep/configuration.h"

typedef struct Store Store; /* data/store/store.h */

typedef struct Experiment Experiment;

enum { EXPERIMENT_MOST = 1000000 }; /* configurations */

/* Changes that a command line makes to an experiment; NULL or empty members change nothing. */
typedef struct {
    const char *granularity; /* replaces the grid's */
    const uint64_t *seed;    /* replaces the grid's */
    char **set;              /* follow the file's `set:` */
    const char *column;      /* one of the file's `columns:` */
} ExperimentChange;

/* Reads a file, or NAME for experiments/NAME.yaml on the search path, NAME@COLUMN for one of its
 * columns. KILTER_ERROR_INPUT names file, line, key and what was expected: also for unknown models,
 * clusters, planners, fidelities and options, and for empty lists. */
Experiment *experiment_load(const char *name, const ExperimentChange *change,
                            GError **error);
void experiment_free(Experiment *experiment);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Experiment, experiment_free)

const char *experiment_name(const Experiment *experiment); /* of a column: NAME@COLUMN */
const char *experiment_description(const Experiment *experiment); /* "" if it has none */

/* The product of the grid, the models changing slowest and the seeds fastest, without repetitions;
 * borrowed. Points that ask the same question in other words (a default spelled out, two files of
 * one cluster) are each a configuration: one answer, a row for each. */
uint32_t experiment_count(const Experiment *experiment);
const Configuration *experiment_at(const Experiment *experiment, uint32_t index);

/* The columns of the experiment's file, beside the experiment itself. */
uint32_t experiment_n_columns(const Experiment *experiment);
const char *experiment_column(const Experiment *experiment, uint32_t index);
/* The column's description; "" if the file has none. */
const char *experiment_column_about(const Experiment *experiment, uint32_t index);

/* All configurations as questions to a store, in the same order. The caller frees the array; the
 * experiment owns its texts. */
StoreAsked *experiment_asked(const Experiment *experiment);
/* Makes queries of the store see only the results of these configurations (store_select): those of
 * a column under the experiment's name, with the models, clusters and planners whose roles they
 * have. */
bool experiment_select(const Experiment *experiment, Store *store, GError **error);
