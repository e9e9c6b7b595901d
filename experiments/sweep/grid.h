/* The axes of an experiment's grid, looked up: models, clusters and planners with the values of the
 * axes that belong to them (private to experiments/sweep). */
#pragma once

#include "experiments/sweep/experiment.h"
#include "experiments/sweep/experiment_file.h"

/* An entry of the axis `model`, `cluster` or `planner` with one value of each named axis that
 * belongs to it. */
typedef struct {
    char *text;     /* as it could stand in the file by itself */
    char *role;     /* of a column: what it stands for; otherwise the same */
    uint32_t entry; /* index in the plain axis */
    uint32_t value
        [GRID_AXES]; /* index in each named axis; GRID_NONE for axes that belong to others */
    /* of clusters */
    Cluster *cluster;
    StorePart *part;
    char *impossible; /* why the cluster cannot be changed so; NULL */
    uint32_t failed;  /* the named axis that asks for this change */
    /* of planners */
    const Planner *planner;
    PlannerOptions options;
} Variant;

#define GRID_NONE G_MAXUINT32

typedef struct {
    const ExperimentFile *file;
    GArray *model, *cluster, *planner; /* Variant */
    Granularity *granularity;
    const char **fidelity;
    uint64_t *seed;
    uint32_t n_granularity, n_fidelity, n_seed;
    bool by_planner; /* the granularity, as none is given */
} Grid;

/* KILTER_ERROR_INPUT names file, line and key of the first unknown name, or of an empty axis. */
bool grid_open(Grid *grid, const ExperimentFile *file, const ExperimentChange *change,
               GError **error);
void grid_clear(Grid *grid);

/* A place in the grid: indices of its six lists. */
typedef struct {
    uint32_t at[GRID_PLAIN];
} GridPlace;

/* Whether the file excludes this place. */
bool grid_excludes(const Grid *grid, const GridPlace *place);
/* The values of the named axes at the place, as a JSON object of texts; NULL if there are no named
 * axes. Caller frees. */
char *grid_axes(const Grid *grid, const GridPlace *place);
