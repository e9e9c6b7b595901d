/* The figure `plan`: which layers each device computes, how it holds them and what share of them it has; and what it does when. */
#ifndef KILTER_EXPERIMENTS_FIGURES_PLAN_FIGURE_H
#define KILTER_EXPERIMENTS_FIGURES_PLAN_FIGURE_H

#include "data/data.h"
#include "sim/sim.h"

/* Draws FOLDER/plan.png and .svg. The report has a timeline, whose lanes are the rows: devices that do the same at the same
 * time are one; of more rows than can be told apart the one that computes longest is always there. */
bool plan_figure_draw(const Plan *plan, const Graph *graph, const ClusterView *view,
                      const SimReport *report, const char *folder, GError **error);

/* The data file of it (plots/plan.gp says what is in it). Caller frees. */
char *plan_figure_data(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const SimReport *report);

#endif
