/* From a request (kilter.h) to an evaluation. */
#pragma once

#include "experiments/sweep/configuration.h"

/* Makes the plan that the request asks for. Unless the request names a fidelity, it is the one that
 * plans of the kind are made by. KILTER_ERROR_INPUT names the member and what was expected. */
bool request_plan(const char *request, Evaluation *evaluation, GError **error);
/* The same, also for a plan's file, by the fidelity `stage` unless the request names one. */
bool request_evaluate(const char *request, Evaluation *evaluation, GError **error);
