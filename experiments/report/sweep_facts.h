/* A sweep's results for its page. Private to experiments/report. */
#pragma once

#include <glib.h>
#include <jansson.h>

typedef struct Store Store; /* data/store/store.h */

/* The members of plots/sweep.html of one experiment of the store: counts, the planner that wins,
 * chart, pivot table, league, rows without a plan by reason, all rows. KILTER_ERROR_INPUT: it has
 * no results. */
json_t *sweep_facts(Store *store, const char *experiment, GError **error);
