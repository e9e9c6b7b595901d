/* Results: the identity of what was asked, and the row that the answer becomes. No other file decides whether two
 * questions are the same, or fills a row of the store (data/store/store.h). */
#ifndef KILTER_EXPERIMENTS_SWEEP_RESULT_H
#define KILTER_EXPERIMENTS_SWEEP_RESULT_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"
#include "experiments/sweep/question.h"

/* --- questions --- */

/* How a configuration is answered. KILTER_ERROR_INPUT for a file of an option that cannot be read. */
StorePart *question_of_method(const Configuration *configuration, GError **error);

/* Sets the configuration's question and hash, all that its result depends on: reads the files that its options name.
 * `cluster`: the part of its cluster, which many configurations share. KILTER_ERROR_INPUT for a file that cannot be
 * read. */
bool result_identify(Configuration *configuration, StorePart *cluster, GError **error);
/* The same where all parts are known; takes a reference of each. */
void result_identify_by(Configuration *configuration, StorePart *subject,
                        StorePart *cluster, StorePart *method);

/* --- rows --- */

/* A row and the strings that it borrows. */
typedef struct {
    StoreResult row;
    char *message, *plan, *detail;
} Result;

void result_clear(Result *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Result, result_clear)

/* A row of which nothing is known yet: status "oom", no times. */
StoreResult result_blank(const StoreAsked *asked, const StoreQuestion *question);

/* Fills in what the plan is, {"ratios": [segment][device], "counts": [...], "stages": [...], ...}: the stages of a
 * pipeline with their devices and degrees, and how unevenly cut dimensions were cut. */
void result_take_plan(Result *result, const Plan *plan);
/* Takes the object. */
void result_take_detail(Result *result, json_t *detail);

/* Plans and simulates. A plan that does not fit is a row, "oom", and what cannot be, "impossible": a planner, a model and
 * a cluster that do not go together. False, with a failure of any other kind, and nothing to clear. */
bool result_evaluate(const Configuration *configuration, const char *experiment,
                     Result *result, GError **error);

#endif
