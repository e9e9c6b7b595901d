/* The experiment file: a grid of configurations, as people write it.
 *
 *     name: my-ablation
 *     grid:
 *       model: [vgg19, "vit:layers=24,batch=64"]
 *       cluster: [hap-8, hap-16]
 *       planner: [hap, dp-ev, "hap:ratios=even"]   # options after a colon are this entry's own
 *       cluster.scale.network: [1, 2]   # any key of models, clusters, planners or the simulation
 *     set: ["bucket=25 MiB"]
 *     columns:                      # the same grid as NAME@best, with other entries (none: left out)
 *       - {name: best, replace: ["hap -> auto", "dp-ev -> none"], scale: ["*.rate=0.9"]}
 *
 * or, in place of the grid, `exchange`: collectives alone, as the cost model prices them.
 * docs/sweeps.md explains the keys, data/schemas/experiment-file.json, which a test compares with
 * the reader's tables, describes each.
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
AUTOPTR(experiment_free, Experiment)

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
/* The claims whose cause the column removes; *n gets their number. */
char *const *experiment_column_tests(const Experiment *experiment, uint32_t index,
                                     uint32_t *n);

/* All configurations as questions to a store, in the same order. The caller frees the array; the
 * experiment owns its texts. */
StoreAsked *experiment_asked(const Experiment *experiment);
/* Makes queries of the store see only the results of these configurations (store_select): those of
 * a column under the experiment's name, with the models, clusters and planners whose roles they
 * have. */
bool experiment_select(const Experiment *experiment, Store *store, GError **error);
