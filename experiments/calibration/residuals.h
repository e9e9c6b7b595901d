/* Published iterations beside a prediction on devices of data sheets: how far such predictions were
 * off, and the published run that is most like it.
 *
 * data/residuals.csv has quantiles of measured over predicted time by kind: the costs of ops
 * (shares of the peak, or kernels), the generation of the devices, bits of the model's numbers, and
 * the family of its strategy. The row of a kind that says most counts; `any` says nothing.
 * data/published.csv has runs with their times and what was predicted for them, without anything
 * fitted. */
#pragma once

#include <jansson.h>

#include "sim/sim.h"

/* A question as these files see it. */
typedef struct {
    const char *costs;      /* shares or kernels */
    const char *generation; /* volta, ampere, hopper, blackwell or other */
    const char *device;     /* name of the fullest type; borrowed */
    uint32_t bits, gpus, tp, pp, cp, ep;
    const char *family; /* experts, sharded or dense */
    double flops;       /* of the model, of a token */
} ResidualKind;

ResidualKind residual_kind(const Plan *plan, const Graph *graph, const ClusterView *view,
                           bool kernels);

/* Adds to the object, which describes a prediction of time_s, interval_50_s and interval_90_s
 * ([low, high]), interval_of (text: of how many runs of which kind) and, where a run is like it,
 * nearest (text). Adds nothing where no file says anything. */
void residuals_add(json_t *object, const ResidualKind *kind, double time_s);
