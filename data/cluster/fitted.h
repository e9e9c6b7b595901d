/* The trials that a cluster's costs were fitted to, and the resulting errors of its predictions
 * (kilter fit). */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The ranges of a trial's numbers beyond which a fit may not hold: id, key, text. */
#define FITTED_RANGE_TABLE(X)                \
    X(TP, "tp", "devices that share layers") \
    X(PP, "pp", "pipeline stages")           \
    X(SHARED, "tp_pp", "tp x pp")            \
    X(RANKS, "ranks", "GPUs")                \
    X(WIDTH, "width", "width of the model")  \
    X(SEQUENCE, "sequence", "tokens of a sequence")

#define FITTED_RANGE_ID(id, key, text) FITTED_##id,
typedef enum { FITTED_RANGE_TABLE(FITTED_RANGE_ID) FITTED_RANGES } FittedRange;

const char *fitted_range_key(FittedRange range);

/* The error of a trial's prediction by a fit without the trial's group. */
typedef struct {
    char *types;  /* types of its devices, as in "a100-80g+t4" */
    double error; /* log(measured / predicted) */
} FittedError;

typedef struct {
    char *fidelity, *planner; /* the fidelity and planner that predicted the trials */
    char *software;           /* their runtimes, joined by "+"; NULL: not said */
    uint32_t least[FITTED_RANGES], most[FITTED_RANGES];
    uint32_t n_errors;
    FittedError *error; /* [n_errors] */
} Fitted;

void fitted_free(Fitted *fitted);

/* A prediction, described as the fit's trials are. */
typedef struct {
    const char *fidelity, *planner, *types,
        *software; /* software: NULL where not known */
    uint32_t at[FITTED_RANGES];
} FittedPoint;

/* Whether the names joined by "+" contain that one. NULL has none. */
bool fitted_names_have(const char *joined, const char *name);

/* Texts that say in what a point lies outside of the fit: device types, ranges, and so on. Empty if
 * it lies inside. Free with g_ptr_array_unref. */
GPtrArray *fitted_outside(const Fitted *fitted, const FittedPoint *point);

/* Split conformal: measured times lie within predicted / *factor to predicted * *factor in a part
 * `coverage` (0 to 1) of cases like the trials. Uses the errors of the same device types if there
 * are enough, else all errors. False if there are too few errors for that coverage. */
bool fitted_interval(const Fitted *fitted, const char *types, double coverage,
                     double *factor);
