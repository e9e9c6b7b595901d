/* Results: the identity of a question, and the row of its answer. No other file decides whether two
 * questions are the same or fills a row of the store (data/store/store.h). */
#pragma once

#include <jansson.h>

#include "data/store/store.h"
#include "experiments/sweep/configuration.h"
#include "experiments/sweep/question.h"

/* --- questions --- */

/* The part of the question that says how a configuration is answered. KILTER_ERROR_INPUT for a file
 * of an option that cannot be read. */
StorePart *question_of_method(const Configuration *configuration, GError **error);

/* Sets the configuration's question and hash, which cover everything that its result depends on;
 * reads the files that its options name. `cluster`: the part of its cluster, shared by many
 * configurations. KILTER_ERROR_INPUT for a file that cannot be read. */
bool result_identify(Configuration *configuration, StorePart *cluster, GError **error);
/* The same from known parts; takes a reference to each. */
void result_identify_by(Configuration *configuration, StorePart *subject,
                        StorePart *cluster, StorePart *method);

/* --- rows --- */

/* A row and the strings that it borrows. */
typedef struct {
    StoreResult row;
    char *message, *plan, *detail;
    StorePart *common;
} Result;

AUTOCLEAR(result_clear, Result)

/* A row without an answer yet: status "oom", no times. */
StoreResult result_blank(const StoreAsked *asked, const StoreQuestion *question);

/* Describes the plan in the row, {"ratios": [segment][device], "counts": [...], "stages": [...],
 * ...}: the stages of a pipeline with their devices and degrees, and how unevenly cut dimensions
 * were cut. */
void result_take_plan(Result *result, const Plan *plan);
/* Takes the object. Members that many results have in common are kept once: the model's keys,
 * gates, parameters and placement, which depend on model and program. */
void result_take_detail(Result *result, json_t *detail);

/* Plans and simulates. A plan that does not fit gives a row with status "oom"; a planner, a model
 * and a cluster that do not go together give one with status "impossible". Any other failure
 * returns false and leaves nothing to clear. */
bool result_evaluate(const Configuration *configuration, const char *experiment,
                     Result *result, GError **error);
