/* Reports: the contents of a store, or a plan, as a page to read and to send to others.
 *
 *     papers   the claims of all experiments that a paper makes any about, with verdict, place and cause; each figure, and
 *              below it the rows that it is drawn of
 *     sweeps   of other experiments: the planners by how often they are fastest and by their regret, and all rows
 *     a plan   the cluster and what each device does, memory by category, what bounds the iteration
 *
 * The same results give the same bytes. */
#ifndef KILTER_EXPERIMENTS_REPORT_REPORT_H
#define KILTER_EXPERIMENTS_REPORT_REPORT_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* All experiments that the store has answers for, or those of the list (NULL: all). KILTER_ERROR_INPUT: there are none, or one
 * of them is not in the store. Caller frees. */
char *report_store(const char *file, const char *const *names, GError **error);
/* The claims alone, as tables of Markdown. */
char *report_store_markdown(const char *file, const char *const *names, GError **error);

/* A plan; `answer`: what `kilter simulate --json` says of it, `words`: what it prints. Caller frees. */
char *report_plan(const Evaluation *evaluation, const json_t *answer, const char *words,
                  GError **error);

#endif
