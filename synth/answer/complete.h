/* From a program and ratios to a plan (private to synth). */
#ifndef KILTER_SYNTH_ANSWER_COMPLETE_H
#define KILTER_SYNTH_ANSWER_COMPLETE_H

#include "synth/question/planning.h"

/* Gives the plan a program (taken over) and one segment of ratios (copied). Here and below, the
 * plan's old splits are dropped, since they belong to another program. */
void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio);

/* Gives a plan with a program its segments [op] and their ratios [n_segments * n_devices]
 * (copied). */
void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments);

/* Cuts the batch of the plan's program into two microbatches that take turns. KILTER_ERROR_INPUT if
 * it cannot be cut. */
bool plan_duplex(Plan *plan, const Planning *planning, GError **error);

/* Gives the plan the time, stages, feasibility and memory of an evaluation. */
void plan_take_report(Plan *plan, const SimReport *report);

/* Rounds the ratios, unless the plan has splits, and evaluates on the planning's view: splits, time, memory, feasibility,
 * stages. */
bool plan_complete(Plan *plan, const Planning *planning, GError **error);

/* Completes the planner's final plan on the cluster as it is, unless that plan was the last one
 * completed, and sets its time before rounding. The planning keeps the report. */
bool plan_finish(Plan *plan, const Planning *planning, GError **error);

/* Gives a complete plan the best ratios for its program (balance_ratios) if they make it better. */
bool plan_balance(Plan *plan, const Planning *planning, GError **error);

/* Whether a complete plan is better than another one (NULL: there is none): it fits and the other
 * does not, or it is faster, or it is as fast and proved. */
bool plan_is_better(const Plan *a, const Plan *b);

/* Puts a complete plan in the place of the best one if it is better. Takes the plan over. */
void plan_keep_better(Plan **best, Plan *plan);

/* Copies the counts of the plan's cuts from another plan on the same devices, as far as that has
 * them. */
void plan_copy_counts(Plan *plan, const Plan *from);

#endif
