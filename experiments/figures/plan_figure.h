/* The figure `plan`: which layers each device computes, how it holds them, its share of them, and
 * its timeline. */
#pragma once

#include "sim/sim.h"

/* Draws FOLDER/plan.png and .svg. The lanes of the report's timeline are the rows of the picture;
 * devices that do the same at the same time share a row. Where there are more rows than can be told
 * apart, some are left out, but never the one that computes longest. */
bool plan_figure_draw(const Plan *plan, const Graph *graph, const ClusterView *view,
                      const SimReport *report, const char *folder, GError **error);

/* The text of the figure's data file (plots/plan.gp describes it). Caller frees. */
char *plan_figure_data(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const SimReport *report);
