/* What a cluster's costs were fitted to, and how far its predictions may be off (kilter fit). */
#ifndef KILTER_DATA_CLUSTER_FITTED_H
#define KILTER_DATA_CLUSTER_FITTED_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* What of a trial a fit may not hold beyond: id, key, text. */
#define FITTED_RANGE_TABLE(X)                \
    X(TP, "tp", "devices that share layers") \
    X(PP, "pp", "pipeline stages")           \
    X(SHARED, "tp_pp", "tp x pp")            \
    X(RANKS, "ranks", "GPUs")                \
    X(WIDTH, "width", "width of the model")  \
    X(SEQUENCE, "sequence", "tokens of a sequence")

typedef enum {
#define X(id, key, text) FITTED_##id,
    FITTED_RANGE_TABLE(X)
#undef X
        FITTED_RANGES
} FittedRange;

const char *fitted_range_key(FittedRange range);
const char *fitted_range_text(FittedRange range);

/* A trial's prediction by a fit without its group. */
typedef struct {
    char *types;  /* of its devices, as "a100-80g+t4" */
    double error; /* log(measured / predicted) */
} FittedError;

typedef struct {
    char *fidelity, *planner; /* by which the trials were predicted */
    uint32_t least[FITTED_RANGES], most[FITTED_RANGES];
    uint32_t n_errors;
    FittedError *error; /* [n_errors] */
} Fitted;

void fitted_free(Fitted *fitted);

/* A prediction, as the fit's trials are described. */
typedef struct {
    const char *fidelity, *planner, *types;
    uint32_t at[FITTED_RANGES];
} FittedPoint;

/* Whether a trial's devices were among those fitted, ranges, ...: texts of what lies outside; free
 * with g_ptr_array_unref. Empty: all is inside. */
GPtrArray *fitted_outside(const Fitted *fitted, const FittedPoint *point);

/* Split conformal: measured times lie within predicted / *factor to predicted * *factor in `coverage` (0 to 1)
 * of cases that are like the trials. By the errors of the same device types where there are enough, else by
 * all. False: there are too few errors for that coverage. */
bool fitted_interval(const Fitted *fitted, const char *types, double coverage,
                     double *factor);

#endif
