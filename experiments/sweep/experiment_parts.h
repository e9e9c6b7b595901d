/* What the readers of experiment files share (private to experiments/sweep/experiment*.c). */
#ifndef KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_PARTS_H
#define KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_PARTS_H

#include "experiments/sweep/experiment.h"

typedef struct {
    char **model, **cluster, **planner, **granularity, **fidelity, **seed;
    uint32_t n_model, n_cluster, n_planner, n_granularity, n_fidelity, n_seed;
} Grid;

/* Collectives alone, instead of plans. */
typedef struct {
    char **kind, **bytes, **share, **cluster, **granularity;
    uint32_t n_kind, n_bytes, n_share, n_cluster, n_granularity;
} Exchanges;

typedef struct {
    char *name, *description;
    Grid grid;
    Exchanges exchange;
    char **set;
    uint32_t n_set;
} File;

struct Experiment {
    char *name, *description;
    GPtrArray *clusters;       /* Cluster */
    GPtrArray *parts;          /* StorePart of each cluster */
    GHashTable *subjects;      /* "GPUs MODEL" -> Subject */
    GPtrArray *configurations; /* Configuration */
};

/* The file while configurations are made from it. */
typedef struct {
    const Yaml *yaml;
    const File *file;
    const ExperimentChange *change;
    Experiment *experiment;
} Source;

/* Fails at entry `index` of list `list` with the message of *cause, which is freed; always false. */
bool experiment_fail_entry(const Source *source, const char *list, uint32_t index,
                           GError *cause, GError **error);
/* Describes a cluster for the store. */
bool experiment_add_part(Experiment *experiment, const Cluster *cluster, GError **error);
/* Takes the configuration. */
void experiment_add_configuration(Experiment *experiment, Configuration *configuration);

/* Configurations of the file's collectives. */
bool experiment_fill_exchanges(const Source *source, GError **error);

#endif
