/* Experiment files as they are written: texts under their keys, before anything is looked up
 * (private to experiments/sweep). Beside the axes that every grid has, a file can name further axes
 * by a key of the model, the cluster, the planner or the simulation: `model.layers: [12, 24]`. */
#pragma once

#include "data/base/yaml.h"

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

/* Configurations to leave out: each given value is a pattern with `*` and `?`. */
typedef struct {
    char *pattern[GRID_AXES]; /* NULL: any */
} Exclusion;

/* A further column of an experiment's results: the same configurations, with some replaced and with
 * more options. */
typedef struct {
    char *name, *about;
    char **replace, **scale, **set, **tests;
    uint32_t n_replace, n_scale, n_set, n_tests;
} ColumnText;

typedef struct {
    char *name, *description;
    TextList axis[GRID_AXES]; /* plain axes, then named ones */
    Exchanges exchange;
    char **set;
    uint32_t n_set;
    Exclusion *exclude;
    uint32_t n_exclude;
    ColumnText *columns;
    uint32_t n_columns;
} ExperimentText;

/* A list of the grid, as it is in the requested column. */
typedef struct {
    TextList list;  /* borrowed texts */
    char **role;    /* the file's entry whose role each one has, borrowed */
    uint32_t *from; /* its place in the file's list */
} ColumnList;

typedef struct {
    Yaml *yaml;
    const ExperimentText *text;
    uint32_t n_axes;            /* number of plain and named axes */
    const char *key[GRID_AXES]; /* "model", ..., "model.layers" */
    const ColumnText *column;   /* NULL: the experiment itself */
    ColumnList plain[GRID_FIDELITY + 1];
    struct ExperimentSchema *schema;
} ExperimentFile;

/* The experiment, or one of its columns. KILTER_ERROR_INPUT names file, line and key. */
ExperimentFile *experiment_file_read(const char *path, const char *column,
                                     GError **error);
AUTOPTR(experiment_file_free, ExperimentFile)

/* Fails at entry `index` of a list with the message of *cause, which is freed; always false. */
bool experiment_file_fail(const ExperimentFile *file, const char *list, uint32_t index,
                          GError *cause, GError **error);

/* The part of a named axis' key behind "OWNER."; NULL if the axis belongs to another owner. */
const char *experiment_file_key(const ExperimentFile *file, uint32_t axis,
                                const char *owner);

/* The values of an axis; for models, clusters and planners those of the column. Borrowed. */
const TextList *experiment_file_list(const ExperimentFile *file, uint32_t axis);
