/* Where several plans run on one cluster: the places that their GPUs take there. */
#pragma once

#include "experiments/sweep/evaluation.h"

typedef enum {
    JOBS_PACKED, /* one plan after the other */
    JOBS_SPREAD, /* a machine of each plan in turn */
    JOBS_ORDERS
} JobsOrder;

extern const char *const JOBS_ORDER_NAMES[JOBS_ORDERS + 1]; /* ends with NULL */

/* The places of n plans' devices in the cluster's view: [plan][device]; caller frees all n. A
 * plan's machine takes the machine of its own name, where there is one with these GPUs free, else
 * the first machine with so many free GPUs of its types in the same order. KILTER_ERROR_INPUT names
 * the plan (name [n]) and the machine for which none is left, and plans of different granularities.
 */
bool jobs_place(const Evaluation *plan, char *const *name, uint32_t n,
                const ClusterView *view, JobsOrder order, uint32_t **place,
                GError **error);
