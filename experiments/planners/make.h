/* What planners share, and their make functions (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_MAKE_H
#define KILTER_EXPERIMENTS_PLANNERS_MAKE_H

#include "experiments/planner.h"
#include "sim/sim.h"

bool plan_make_hap(const Graph *graph, const ClusterView *view,
                   const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_dp_even(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_dp_proportional(const Graph *graph, const ClusterView *view,
                               const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_amp(const Graph *graph, const ClusterView *view,
                   const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_amp_annealed(const Graph *graph, const ClusterView *view,
                            const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_megatron(const Graph *graph, const ClusterView *view,
                        const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_amp_random(const Graph *graph, const ClusterView *view,
                          const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_deepspeed(const Graph *graph, const ClusterView *view,
                         const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_gshard(const Graph *graph, const ClusterView *view,
                      const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_tensor_parallel(const Graph *graph, const ClusterView *view,
                               const PlannerOptions *options, Plan *plan, GError **error);

bool plan_make_fastmoe(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_ddp(const Graph *graph, const ClusterView *view,
                   const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_horovod(const Graph *graph, const ClusterView *view,
                       const PlannerOptions *options, Plan *plan, GError **error);
bool plan_make_hidup(const Graph *graph, const ClusterView *view,
                     const PlannerOptions *options, Plan *plan, GError **error);

/* Cuts the batch of the plan's program in two microbatches that take turns. KILTER_ERROR_INPUT if
 * it cannot be cut. */
bool plan_double(Plan *plan, const Graph *graph, GError **error);

/* Gives the plan, which is complete, the best ratios for its program (balance_ratios) if they make
 * it better. */
bool plan_balance(Plan *plan, const Graph *graph, const ClusterView *view,
                  GError **error);

/* Whether a complete plan is better than another one (NULL: there is none): it fits where that one
 * does not, or is faster, or as fast and proved. */
bool plan_is_better(const Plan *a, const Plan *b);

/* Ratios by number of GPUs, by a GPU's memory, and by speed. Caller frees. */
double *ratios_even(const ClusterView *view);
double *ratios_by_memory(const ClusterView *view);
double *ratios_proportional(const ClusterView *view);
/* Those that the option `ratios` pins, NULL if it pins none. Caller frees. */
double *ratios_pinned(const ClusterView *view, uint32_t choice);

/* Gives the plan a program (taken over) and one segment of ratios (copied). */
void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio);

/* Gives a plan that has a program segments [op] and their ratios [n_segments * n_devices] (copied). */
void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments);

/* Rounds the ratios and evaluates: splits, times, memory, feasibility, stages. */
bool plan_complete(Plan *plan, const Graph *graph, const ClusterView *view,
                   GError **error);

/* Sets plan->lower_bound_s, a bound on every program that keeps the pins and every ratios that fit
 * the memory, from boxes of ratios until the plan's gap is at most options->certify, and
 * plan->certificate: that it is, or why not. */
bool plan_certify(Plan *plan, const Graph *graph, const ClusterView *view,
                  const PlannerOptions *options, GError **error);

/* For plans of hap with ratios of its own: alternates from `start`, or, if `programs` (Program) is
 * not NULL, tries these with their best ratios; takes the plan that comes out if it is better. */
bool plan_improve(Plan *plan, const Graph *graph, const ClusterView *view,
                  const PlannerOptions *options, const double *start,
                  const GPtrArray *programs, GError **error);

/* Of a plan that does not fit: sets plan->misfit if no program and ratios fit, and that can be
 * proved. */
bool plan_disprove(Plan *plan, const ClusterView *view, const PlannerOptions *options,
                   GError **error);

/* The bound of one box that holds all ratios: cheap enough for every plan. Left alone where nothing
 * is proved. */
bool plan_bound(Plan *plan, const Graph *graph, const ClusterView *view,
                const PlannerOptions *options, GError **error);

/* Whether the budget is spent. */
bool planner_is_late(const PlannerOptions *options);

#endif
