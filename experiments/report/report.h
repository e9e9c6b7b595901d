/* Reports: the contents of a store, or a plan, as a page to read and to send to others.
 *
 *     papers   for each paper all claims, with verdict, place and cause; each figure, with the rows that it is drawn from below it
 *     sweeps   for other experiments who is the fastest, a chart, a pivot table, the league, and all rows
 *     a plan   the verdict, what it costs, what each device does when, memory over time, what limits it
 *
 * The same results give the same bytes. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* A page on the experiments of the list, or on all that the store has results for (NULL).
 * `running`: how far a sweep into it is, or NULL. KILTER_ERROR_INPUT: the store has no results, or
 * none of an experiment of the list. Caller frees. */
char *report_store(const char *file, const char *const *names, const char *running,
                   GError **error);
/* The claims alone, as tables of Markdown. */
char *report_store_markdown(const char *file, const char *const *names, GError **error);

/* Adds what a plan's page shows to its answer (evaluation_simulation_json): plots/plan.html has the
 * names. `file`: of the plan. Errors as sim_evaluate_with. */
bool report_plan_add(json_t *answer, const Evaluation *evaluation, const char *file,
                     GError **error);
/* The page of that answer. KILTER_ERROR_INPUT: its template is missing. Caller frees. */
char *report_plan(const json_t *answer, GError **error);
