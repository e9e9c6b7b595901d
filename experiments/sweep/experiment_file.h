/* Experiment files as they are written: texts under their keys, nothing of it looked up yet (private to experiments/sweep).
 * Beside the axes that every grid has, a grid has those that the file names by a key of the model, the cluster, the planner or
 * the simulation: `model.layers: [12, 24]`. */
#ifndef KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_FILE_H
#define KILTER_EXPERIMENTS_SWEEP_EXPERIMENT_FILE_H

#include "data/data.h"

typedef struct {
    char **value;
    uint32_t n;
} TextList;

/* The axes that every grid has, in the order in which the product is taken, the slowest first. */
typedef enum {
    GRID_MODEL,
    GRID_CLUSTER,
    GRID_PLANNER,
    GRID_GRANULARITY,
    GRID_FIDELITY,
    GRID_SEED,
    GRID_PLAIN
} GridAxis;

enum { GRID_KEYS = 24, GRID_AXES = GRID_PLAIN + GRID_KEYS };

/* Collectives alone, in place of plans. */
typedef struct {
    char **kind, **bytes, **share, **cluster, **granularity;
    uint32_t n_kind, n_bytes, n_share, n_cluster, n_granularity;
} Exchanges;

/* Configurations that are left out: each value that is given is a pattern with `*` and `?`. */
typedef struct {
    char *pattern[GRID_AXES]; /* NULL: any */
} Exclusion;

typedef struct {
    char *name, *description;
    TextList axis[GRID_AXES]; /* the plain ones, then the named ones */
    Exchanges exchange;
    char **set;
    uint32_t n_set;
    Exclusion *exclude;
    uint32_t n_exclude;
} ExperimentText;

typedef struct {
    Yaml *yaml;
    const ExperimentText *text;
    uint32_t n_axes;            /* GRID_PLAIN and the named ones */
    const char *key[GRID_AXES]; /* "model", ..., "model.layers" */
    struct ExperimentSchema *schema;
} ExperimentFile;

/* KILTER_ERROR_INPUT names file, line and key. */
ExperimentFile *experiment_file_read(const char *path, GError **error);
void experiment_file_free(ExperimentFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExperimentFile, experiment_file_free)

/* Fails at entry `index` of a list with the message of *cause, which is freed; always false. */
bool experiment_file_fail(const ExperimentFile *file, const char *list, uint32_t index,
                          GError *cause, GError **error);

/* The part of a named axis' key behind "OWNER."; NULL if it is not one of that owner. */
const char *experiment_file_key(const ExperimentFile *file, uint32_t axis,
                                const char *owner);

#endif
