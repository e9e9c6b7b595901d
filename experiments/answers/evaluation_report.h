/* A plan and its evaluation as an answer. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"

/* The keys of every plan and simulation (verbose: each stage, too). */
json_t *evaluation_json(const Evaluation *evaluation, bool verbose);
/* The same keys and, if there is a timeline, the lost time and (on demand) links and the critical
 * path. */
json_t *evaluation_simulation_json(const Evaluation *evaluation, bool verbose, bool path);

/* Adds between which times a measurement is expected: by the trials of a fitted cluster
 * (prediction_add), else by published runs on devices of data sheets (residuals_add). */
void evaluation_add_range(const Evaluation *of, json_t *object);

/* A text of what the iteration waits for, by its timeline. Caller frees. */
char *evaluation_waits_text(const Evaluation *evaluation);

/* Fails, naming device and bytes missing, if the plan does not fit: with KILTER_ERROR_INFEASIBLE
 * where no other plan fits (the only plan of a strategy, or a search with a proof), else with
 * KILTER_ERROR_FAILED. */
bool evaluation_check_fits(const Evaluation *evaluation, GError **error);
