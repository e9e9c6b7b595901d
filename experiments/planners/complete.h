/* From a program and ratios to a plan (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_COMPLETE_H
#define KILTER_EXPERIMENTS_PLANNERS_COMPLETE_H

#include "experiments/planners/planning.h"

/* Gives the plan a program (taken over) and one segment of ratios (copied). The splits that it had
 * were another program's: they go, here and below. */
void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio);

/* Gives a plan that has a program segments [op] and their ratios [n_segments * n_devices] (copied). */
void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments);

/* Cuts the batch of the plan's program in two microbatches that take turns. KILTER_ERROR_INPUT if
 * it cannot be cut. */
bool plan_duplex(Plan *plan, const Planning *planning, GError **error);

/* Rounds the ratios, unless the plan has splits, and evaluates on the planning's view: splits, time, memory, feasibility,
 * stages. */
bool plan_complete(Plan *plan, const Planning *planning, GError **error);

/* Completes the plan that the planner hands over on the cluster as it is, if that was not the last
 * thing that was done, and sets its time before rounding. The planning keeps the report. */
bool plan_finish(Plan *plan, const Planning *planning, GError **error);

/* Gives the plan, which is complete, the best ratios for its program (balance_ratios) if they make
 * it better. */
bool plan_balance(Plan *plan, const Planning *planning, GError **error);

/* Whether a complete plan is better than another one (NULL: there is none): it fits where that one
 * does not, or is faster, or as fast and proved. */
bool plan_is_better(const Plan *a, const Plan *b);

/* Gives the plan's cuts the counts of another one on the same devices, where that has them. */
void plan_copy_counts(Plan *plan, const Plan *from);

#endif
