/* Validation: predicted against measured times of a set of plans.
 *
 * The set is a CSV file whose first line names the columns, in any order:
 *
 *     plan          a plan's file, or any name if predicted_s is given
 *     measured_s    measured seconds of an iteration
 *     predicted_s   optional: seconds; without it the plan's file is evaluated on its own cluster
 * by its own fidelity, or,                   on a cluster of kilter fit, by the fidelity of its
 * fit where that takes the program     group         optional: plans that compete with one
 * another (a model under one slowdown); the best of each group counts     slowdown      optional:
 * "1=2 0=1.5", as given to kilter exec
 *
 * or it is a store with rows added by kilter exec, where a group is a model under one slowdown. */
#pragma once

#include "data/base/free.h"
#include "experiments/calibration/statistics.h"

typedef struct {
    char *plan, *group;
    double predicted_s, measured_s;
    /* of the device that needs most; NaN: not known */
    double predicted_bytes, measured_bytes;
    double low_s, high_s; /* the prediction's 90 % interval; 0: not known */
    /* number of instructions outside of the sizes that the cluster was calibrated on */
    uint32_t unmeasured;
} ValidationRow;

/* The ranking of one group: which plan is predicted to be the fastest, and how much slower it is
 * than the truly fastest. */
typedef struct {
    const char *name; /* borrowed from a row */
    uint32_t n;
    const char *chosen, *fastest; /* plans, borrowed */
    double regret;
    double spearman; /* NaN where there are fewer than two plans, or all are equal */
} ValidationGroup;

typedef struct {
    GArray *row;     /* ValidationRow */
    GArray *group;   /* ValidationGroup, for groups of at least two plans */
    GPtrArray *left; /* char *: rows without a prediction, each with the reason */
    Agreement agreement, memory;      /* memory: of rows whose bytes are known */
    double mean_regret, worst_regret; /* over groups */
    double within;                    /* share of groups with a regret of at most 5 % */
} Validation;

/* cluster: the cluster that every plan is evaluated on in place of its own; may be NULL.
 * KILTER_ERROR_INPUT with file and line. */
Validation *validate_csv(const char *file, const char *cluster, GError **error);
Validation *validate_store(const char *file, GError **error);
AUTOPTR(validation_free, Validation)
