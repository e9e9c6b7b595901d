/* HAP's planner (Sec. 3.1): alternate the best program for fixed ratios (Eq. 1) and the best ratios
 * for a fixed program (Eq. 2) until they repeat; keep the best pair.
 *
 * Kilter starts from two ratios, proportional to speed as in the paper and even, and compares pairs
 * by their time after rounding. The baselines are candidates too, so that rounding cannot make the
 * plan slower than data parallelism. A plan that fits the memory is preferred to any plan that does
 * not. If the fastest programs do not fit, the search runs with limited memory (spend.h); if none
 * of its programs fits either, memory is charged for, more and more until one does. Where rounding
 * alone makes them miss the memory, as with more devices than units, a baseline that fits is taken.
 *
 * With segments, one linear program also finds different ratios for as many segments as the program
 * keeps apart, and programs are searched again at ratios by segment (segmented.h). All of this is
 * beside the common ratios, so a plan with segments is never slower than one without.
 *
 * Where the option `ratios` pins the ratios, only the best program for them is searched. With
 * search=reference all programs come from HAP's own search, which ignores memory. All programs keep
 * the pins. */
#include <string.h>

#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/hap/alternation.h"
#include "synth/hap/make.h"
#include "synth/hap/segmented.h"
#include "synth/hap/spend.h"

/* Whether a program is slower than the best plan by more than rounding could make up for, at these
 * ratios and at its best. */
static bool hopeless(Alternation *a, const Known *known, const double *ratio)
{
    static const double rounding = 1.1; /* rounding costs less in all but tiny models */
    if (!alternation_fits(a))
        return false;
    const SimLinear *linear = known->linear;
    g_autofree double *best = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    if (!a->pinned && !alternation_solve(a, linear, NULL, 1, best, NULL))
        return false;
    g_autofree double *share = sim_shares(linear, a->view, best);
    return sim_linear_time(linear, a->view, share, NULL, NULL) >
           a->best->iteration_time_s * rounding;
}

static bool consider_baselines(Alternation *a, const double *ratio, GError **error)
{
    for (Baseline baseline = BASELINE_DATA_PARALLEL; baseline < BASELINES; baseline++) {
        g_autoptr(Program) program =
            synth_baseline_program(a->graph, a->view, ratio, baseline, NULL);
        if (!program || !synth_pins_hold(a->question->pins, a->graph, program))
            continue;
        Known *known = alternation_know(a, program);
        if (hopeless(a, known, ratio))
            continue;
        g_autofree double *balanced =
            g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
        bool feasible = false;
        if (!alternation_consider(a, known, ratio, &feasible, error) ||
            !alternation_balance(a, known, balanced, &feasible, error))
            return false;
    }
    return true;
}

/* Considers the baselines with both ratios; `even` NULL: with one. Where the fastest programs do
 * not fit (`tight`), the search for others starts from a baseline, whose rounding by time can wait
 * until it is known to be the best plan. */
static bool consider_all_baselines(Alternation *a, const double *proportional,
                                   const double *even, bool tight, GError **error)
{
    a->rough = tight;
    const bool done = consider_baselines(a, proportional, error) &&
                      (!even || consider_baselines(a, even, error));
    a->rough = false;
    return done;
}

/* One GPU has nothing to divide: every program takes as long, and the baselines, which convert no
 * tensors, need the least memory. Leaves a->best NULL if there is more than one, or if no baseline
 * keeps the pins. */
static bool consider_single(Alternation *a, GError **error)
{
    static const double whole = 1;
    if (a->view->n_devices > 1 || a->view->device[0].gpus > 1 ||
        a->options->search == SEARCH_REFERENCE)
        return true;
    if (!consider_baselines(a, &whole, error))
        return false;
    if (a->best)
        a->best->optimal = true;
    return true;
}

/* Hands over the best plan's program, ratios and rounded shards. */
static void give(Alternation *a, Plan *plan)
{
    plan_take(plan, a->best, a->question);
    plan->optimal = a->best->optimal;
}

/* Searches for programs with less memory than the fastest one, unless it is proved that none fits;
 * such a proof says nothing of programs that then recompute layers. */
static bool find_fitting(Alternation *a, const double *proportional, const double *even,
                         double misfit_s, double fractional_s, GError **error)
{
    const Question *question = a->question;
    if (answer_is_lost(a->answer, misfit_s))
        return true;
    return (alternation_fits(a) || question_is_trained(question) ||
            hap_disprove(question, a->answer, error)) &&
           (a->answer->misfit ||
            spend_memory(a, proportional, even, misfit_s, fractional_s, error));
}

/* Searches for the best plan of all programs. */
static bool search(Alternation *a, GError **error)
{
    const Question *question = a->question;
    const ClusterView *view = question->view;
    g_autofree double *proportional = ratios_proportional(view),
                      *even = ratios_even(view),
                      *pinned = ratios_pinned(view, question->options);
    if (pinned) {
        a->pinned = true;
        memcpy(proportional, pinned, view->n_devices * sizeof *pinned);
        memcpy(even, pinned, view->n_devices * sizeof *pinned);
    }
    a->segment = question->segment;
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    bool homogeneous = ratios_same(proportional, even, view->n_devices);
    if (!alternation_run(a, proportional, NULL, history, error) ||
        (!homogeneous && alternation_fits(a) &&
         !alternation_run(a, even, NULL, history, error)))
        return false;
    const double misfit_s =
        a->best && !alternation_fits(a) ? a->best->iteration_time_s : 0;
    const double fractional_s = a->best ? a->best->fractional_time_s : 0;
    const bool rounding = misfit_s > 0 && alternation_know(a, a->best->program)->roomy;
    return question->options->search == SEARCH_REFERENCE ||
           (consider_all_baselines(a, proportional, homogeneous ? NULL : even,
                                   misfit_s > 0, error) &&
            (misfit_s == 0 || (rounding && alternation_fits(a)) ||
             find_fitting(a, proportional, even, misfit_s, fractional_s, error)) &&
            (misfit_s == 0 || a->answer->misfit || alternation_round_best(a, error)) &&
            (a->answer->roomy || a->answer->misfit || alternation_settle(a, error)) &&
            (!a->segment || a->answer->misfit ||
             segmented_search(a, proportional, even, error)));
}

bool hap_make(const Question *question, Answer *answer, GError **error)
{
    Alternation a = alternation_new(question, answer);
    bool done = consider_single(&a, error) && (a.best || search(&a, error));
    if (done && !a.best)
        done = kilter_fail(error, KILTER_ERROR_FAILED,
                           "no program was found within the budget of %g s",
                           question->options->budget_s);
    if (done)
        give(&a, answer->plan);
    alternation_end(&a, answer->plan);
    return done;
}

bool hap_improve(const Question *question, Answer *answer, const double *start,
                 const GPtrArray *programs, GError **error)
{
    Plan *plan = answer->plan;
    const PlannerOptions *options = question->options;
    const bool own = !planner_ratios_are_fixed(options);
    if (!planner_can(question->planner, PLANNER_SEARCHES | PLANNER_BALANCES) || !own ||
        options->search == SEARCH_REFERENCE)
        return true;
    Alternation a = alternation_new(question, answer);
    a.rival_s = plan->feasible ? plan->iteration_time_s : 0;
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    bool done = programs ? alternation_consider_all(&a, programs, start, error)
                         : alternation_run(&a, start, NULL, history, error);
    if (done && a.best && plan_is_better(a.best, plan)) {
        give(&a, plan);
        done = answer_finish(answer, question, error);
    }
    alternation_end(&a, plan);
    return done;
}
