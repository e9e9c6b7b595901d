/* A request of kilter.h becomes an evaluation. */
#ifndef KILTER_EXPERIMENTS_LIBRARY_REQUEST_H
#define KILTER_EXPERIMENTS_LIBRARY_REQUEST_H

#include "experiments/sweep/configuration.h"

/* Plans as it is asked; the fidelity is the one that plans of the kind are made by, unless the request names one.
 * KILTER_ERROR_INPUT names the member and what was expected. */
bool request_plan(const char *request, Evaluation *evaluation, GError **error);
/* The same at the fidelity `stage` unless the request names one; or of a plan's file. */
bool request_evaluate(const char *request, Evaluation *evaluation, GError **error);

#endif
