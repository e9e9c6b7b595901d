/* Reports: the contents of a store, or a plan, as a page to read and to send to others.
 *
 *     papers   for each paper all claims, with verdict, place and cause; each figure, with the rows that it is drawn from below it
 *     sweeps   for other experiments the planners, by how often they are fastest and by their regret, and all rows
 *     a plan   the cluster and what each device does, memory by category, what bounds the iteration, days of training
 *
 * The same results give the same bytes. */
#ifndef KILTER_EXPERIMENTS_REPORT_REPORT_H
#define KILTER_EXPERIMENTS_REPORT_REPORT_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"

/* A page on the experiments of the list, or on all that the store has results for (NULL).
 * KILTER_ERROR_INPUT: the store has no results, or none of an experiment of the list. Caller
 * frees. */
char *report_store(const char *file, const char *const *names, GError **error);
/* The claims alone, as tables of Markdown. */
char *report_store_markdown(const char *file, const char *const *names, GError **error);

/* A page on a plan. `answer`: its JSON by `kilter simulate --json`; `words`: the text that `kilter
 * simulate` prints; `days`: the picture of its days of training as SVG, where the answer has them,
 * or NULL. Caller frees. */
char *report_plan(const Evaluation *evaluation, const json_t *answer, const char *words,
                  const char *days, GError **error);

#endif
