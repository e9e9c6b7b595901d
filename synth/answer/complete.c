/* Completing a plan: rounding, evaluation, the memory check. */
#include "synth/answer/complete.h"

#include <float.h>
#include <string.h>

#include "balance/balance.h"
#include "data/base/free.h"
#include "data/program/period.h"
#include "synth/answer/ratios.h"
#include "synth/hidup/hidup.h"

static void drop_splits(Plan *plan)
{
    free_column(plan->split, plan->n_splits, count);
    g_clear_pointer(&plan->split, g_free);
    plan->n_splits = 0;
}

void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments)
{
    gsize n = (gsize)n_segments * plan->n_devices;
    drop_splits(plan);
    g_free(plan->ratio);
    plan->n_segments = n_segments;
    plan->ratio = g_memdup2(ratio, n * sizeof *ratio);
    memcpy(plan->segment, segment, plan->n_ops * sizeof *segment);
}

void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio)
{
    drop_splits(plan);
    program_free(plan->program);
    free_each(plan->ratio, plan->segment);
    plan->program = program;
    plan->n_devices = view->n_devices;
    plan->n_segments = 1;
    plan->ratio = g_memdup2(ratio, plan->n_devices * sizeof *ratio);
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
}

void plan_take(Plan *plan, Plan *from, const Question *question)
{
    plan_set(plan, question->graph, question->view, g_steal_pointer(&from->program),
             from->ratio);
    plan_set_segments(plan, from->ratio, from->segment, from->n_segments);
    plan->split = g_steal_pointer(&from->split);
    plan->n_splits = from->n_splits;
    from->n_splits = 0;
}

void plan_take_report(Plan *plan, const SimReport *report)
{
    plan->iteration_time_s = report->iteration_time_s;
    plan->stages = report->n_stages;
    plan->feasible = report->feasible;
    g_free(plan->memory_bytes);
    plan->memory_bytes =
        g_memdup2(report->memory_bytes, plan->n_devices * sizeof *report->memory_bytes);
}

void plan_copy_counts(Plan *plan, const Plan *from)
{
    for (uint32_t i = 0; i < plan->n_splits; i++) {
        const Split *known = plan_find_split(from, &plan->split[i]);
        if (known)
            memcpy(plan->split[i].count, known->count,
                   plan->n_devices * sizeof *known->count);
    }
}

/* The report of a plan by the fidelity that it is made for, and the question's costs, without
 * memory from a time on; DBL_MIN: without memory. */
static SimReport *complete_report(const Plan *plan, const PlannerOptions *options,
                                  const Graph *graph, const ClusterView *view,
                                  double enough_s, GError **error)
{
    SimOptions sim;
    sim_options_init(&sim);
    sim.costs = options->sim.costs;
    sim.enough_s = enough_s;
    sim.time_only = enough_s == DBL_MIN;
    return sim_evaluate_shortly(plan, graph, view, plan_fidelity(plan), &sim, error);
}

static bool complete_on(Answer *answer, Plan *plan, const Question *question,
                        const ClusterView *view, GError **error)
{
    answer->reported = NULL;
    g_clear_pointer(&answer->report, sim_report_free);
    if (!plan->split && !plan_round(plan, question->graph, error))
        return false;
    answer->report = complete_report(plan, question->options, question->graph, view,
                                     answer->enough_s, error);
    if (!answer->report)
        return false;
    plan_take_report(plan, answer->report);
    answer->reported = plan;
    answer->reported_on = view;
    return true;
}

bool answer_complete(Answer *answer, Plan *plan, const Question *question, GError **error)
{
    return complete_on(answer, plan, question, question->view, error);
}

CLEAR_DEFINE(answer_aside_clear, AnswerAside, aside, let_go(aside->plan, plan_free),
             let_go(aside->report, sim_report_free));

void answer_set_aside(Answer *answer, Plan *plan, const Question *question,
                      AnswerAside *aside)
{
    KILTER_ASSERT(answer->reported == plan && answer->report);
    answer_aside_clear(aside);
    aside->plan = plan_new();
    plan_take(aside->plan, plan, question);
    aside->plan->strategy = plan->strategy;
    aside->plan->bucket_bytes = plan->bucket_bytes;
    aside->plan->iteration_time_s = plan->iteration_time_s;
    aside->plan->feasible = plan->feasible;
    aside->report = g_steal_pointer(&answer->report);
    aside->on = answer->reported_on;
    answer->reported = NULL;
    answer->enough_s = plan->feasible ? plan->iteration_time_s : 0;
}

void answer_put_back(Answer *answer, Plan *plan, const Question *question,
                     AnswerAside *aside)
{
    if (!aside->plan)
        return;
    plan_take(plan, aside->plan, question);
    plan->strategy = aside->plan->strategy;
    plan->bucket_bytes = aside->plan->bucket_bytes;
    plan_take_report(plan, aside->report);
    g_clear_pointer(&answer->report, sim_report_free);
    answer->report = g_steal_pointer(&aside->report);
    answer->reported = plan;
    answer->reported_on = aside->on;
    answer->enough_s = 0;
    answer_aside_clear(aside);
}

/* The time at the plan's ratios, by its fidelity. */
static double unrounded_s(const Plan *plan, const PlannerOptions *options,
                          const Graph *graph, const ClusterView *view)
{
    if (plan_splits_evenly(plan))
        return plan->iteration_time_s;
    Plan unrounded = *plan;
    unrounded.n_splits = 0;
    unrounded.split = NULL;
    g_autoptr(SimReport) report =
        complete_report(&unrounded, options, graph, view, DBL_MIN, NULL);
    g_assert(report); /* the plan was evaluated before */
    return report->iteration_time_s;
}

/* The time before rounding: by the formula or, for programs that the formula cannot evaluate, by
 * `stage` at the plan's ratios, which may need no rounding; then 0, not known, for plans that are
 * of no use, and until a brief answer is made whole. */
static void set_fractional(const Answer *answer, Plan *plan, const Question *question)
{
    const Graph *graph = question->graph;
    const ClusterView *view = question->cluster;
    if (program_is_spmd(plan->program)) {
        g_autoptr(SimLinear) linear =
            sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
        g_autofree double *share = sim_shares(linear, view, plan->ratio);
        plan->fractional_time_s = sim_linear_time(linear, view, share, NULL, NULL);
        return;
    }
    const bool later = answer->brief || answer_is_lost(answer, plan->iteration_time_s);
    plan->fractional_time_s =
        later ? 0 : unrounded_s(plan, question->options, graph, view);
}

void plan_make_whole(Plan *plan, const PlannerOptions *options, const Graph *graph,
                     const ClusterView *view)
{
    if (plan->fractional_time_s == 0 && !program_is_spmd(plan->program))
        plan->fractional_time_s = unrounded_s(plan, options, graph, view);
    program_whole(&plan->program);
}

bool answer_finish(Answer *answer, const Question *question, GError **error)
{
    Plan *plan = answer->plan;
    /* Any change of a plan drops its splits. */
    const bool is_done = answer->reported == plan && plan->split &&
                         answer->reported_on == question->cluster;
    if (!is_done && !complete_on(answer, plan, question, question->cluster, error))
        return false;
    set_fractional(answer, plan, question);
    if (!answer->brief)
        program_whole(&plan->program);
    return true;
}

bool plan_is_better(const Plan *a, const Plan *b)
{
    if (!b || a->feasible != b->feasible)
        return !b || a->feasible;
    if (a->iteration_time_s == b->iteration_time_s)
        return a->optimal && !b->optimal;
    return a->iteration_time_s < b->iteration_time_s;
}

void plan_keep_better(Plan **best, Plan *plan)
{
    if (plan_is_better(plan, *best)) {
        plan_free(*best);
        *best = plan;
    } else {
        plan_free(plan);
    }
}

bool plan_duplex(Plan *plan, const Question *question, GError **error)
{
    Program *duplex = synth_duplex(plan->program, question->graph,
                                   MAX(question->options->strategy.pieces, 2), error);
    if (!duplex)
        return false;
    drop_splits(plan);
    program_free(plan->program);
    plan->program = duplex;
    return true;
}

bool answer_balance(Answer *answer, Plan *plan, const Question *question, GError **error)
{
    const Graph *graph = question->graph;
    const ClusterView *view = question->view;
    g_autoptr(SimLinear) linear =
        sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
    g_autoptr(SimMemory) memory =
        sim_memory(plan->program, graph, linear, plan->segment, view->runtime);
    g_autofree double *ratio = g_new(double, (gsize)plan->n_segments * view->n_devices);
    g_autoptr(Plan) candidate = plan_new();
    BalanceReport report;
    const gint64 start = g_get_monotonic_time();
    candidate->bucket_bytes = plan->bucket_bytes;
    for (uint32_t i = 0; i < RATIOS_ROOMS && !candidate->feasible; i++) {
        const bool fits = ratios_balance(linear, memory, view, plan->n_segments,
                                         RATIOS_ROOM[i], ratio, NULL);
        if (!fits && i > 0)
            break;
        if (!fits &&
            !balance_ratios(linear, NULL, view, plan->n_segments, ratio, &report, error))
            return false;
        plan_set(candidate, graph, view, program_copy(plan->program), ratio);
        plan_set_segments(candidate, ratio, plan->segment, plan->n_segments);
        if (!answer_complete(answer, candidate, question, error))
            return false;
    }
    plan->balance_time_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (!plan_is_better(candidate, plan))
        return true;
    plan->optimal = false;
    plan_set_segments(plan, ratio, candidate->segment, plan->n_segments);
    return answer_complete(answer, plan, question, error);
}
