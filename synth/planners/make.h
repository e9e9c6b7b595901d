/* The planners' make functions (see synth/planners/planner.h), and the proofs about their
 * plans (private to synth). */
#ifndef KILTER_SYNTH_PLANNERS_MAKE_H
#define KILTER_SYNTH_PLANNERS_MAKE_H

#include "synth/question/planning.h"

/* hap.c */
bool plan_make_hap(const Planning *planning, Plan *plan, GError **error);

/* baselines.c */
bool plan_make_dp_even(const Planning *planning, Plan *plan, GError **error);
bool plan_make_dp_proportional(const Planning *planning, Plan *plan, GError **error);
bool plan_make_deepspeed(const Planning *planning, Plan *plan, GError **error);
bool plan_make_gshard(const Planning *planning, Plan *plan, GError **error);
bool plan_make_tensor_parallel(const Planning *planning, Plan *plan, GError **error);
bool plan_make_fastmoe(const Planning *planning, Plan *plan, GError **error);
bool plan_make_ddp(const Planning *planning, Plan *plan, GError **error);
bool plan_make_horovod(const Planning *planning, Plan *plan, GError **error);

/* amp.c */
bool plan_make_amp(const Planning *planning, Plan *plan, GError **error);
bool plan_make_amp_annealed(const Planning *planning, Plan *plan, GError **error);
bool plan_make_megatron(const Planning *planning, Plan *plan, GError **error);
bool plan_make_amp_random(const Planning *planning, Plan *plan, GError **error);

/* tag.c */
bool plan_make_tag(const Planning *planning, Plan *plan, GError **error);

/* rivals.c */
bool plan_make_dp_factors(const Planning *planning, Plan *plan, GError **error);
bool plan_make_flexflow(const Planning *planning, Plan *plan, GError **error);
bool plan_make_heterog(const Planning *planning, Plan *plan, GError **error);
bool plan_make_m_topo(const Planning *planning, Plan *plan, GError **error);
bool plan_make_m_etf(const Planning *planning, Plan *plan, GError **error);
bool plan_make_m_sct(const Planning *planning, Plan *plan, GError **error);

/* manual.c */
bool plan_make_manual(const Planning *planning, Plan *plan, GError **error);

/* train.c: whether the options ask a planner that has neither for microbatches or recomputation;
 * and its plan with them. */
bool plan_is_trained(const Planning *planning);
bool plan_make_trained(const Planning *planning, Plan *plan, GError **error);

/* joint.c */
bool plan_make_joint(const Planning *planning, Plan *plan, GError **error);

/* auto.c */
bool plan_make_auto(const Planning *planning, Plan *plan, GError **error);

/* hidup.c */
bool plan_make_hidup(const Planning *planning, Plan *plan, GError **error);

/* For plans with hap's own ratios and search: alternates from `start` or, if `programs` (Program)
 * is not NULL, tries these with their best ratios, and takes the resulting plan if it is better.
 * Does nothing to other plans. */
bool plan_improve(Plan *plan, const Planning *planning, const double *start,
                  const GPtrArray *programs, GError **error);

/* Sets plan->lower_bound_s, a bound on every program that keeps the pins with any ratios that fit
 * the memory. Boxes of ratios are refined until the plan's gap is at most the option `certify`;
 * plan->certificate says that it is, or why not. */
bool plan_certify(Plan *plan, const Planning *planning, GError **error);

/* The bound from one box of all ratios, cheap enough for every plan. The plan is unchanged where
 * nothing can be proved. */
bool plan_bound(Plan *plan, const Planning *planning, GError **error);

/* Sets planning->done->misfit if it can be proved that no program and ratios fit. Tries once. */
bool plan_disprove(const Planning *planning, GError **error);

#endif
