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
#include <math.h>
#include <string.h>

#include "data/base/order.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/hap/alternation.h"
#include "synth/hap/apart.h"
#include "synth/hap/make.h"
#include "synth/hap/ration.h"

/* --- ratios by segment --- */

/* Ratios by segment, alternating with programs searched at them.
 *
 * At common ratios a search sees no program that pays only where segments differ, for example where
 * convolutions are divided by speed, and large weights evenly, since collectives take as long as
 * the largest share. */

enum {
    STARTS = 4, /* programs whose ratios are places to start from, the fastest ones */
    PLACES = 4, /* places at which the model is cut in two, and single segments */
    OPS = 2000, /* in models of more there are fewer places, for a few seconds in all */
};

/* Segments with equal ratios are one to the search, which may then leave shards that cross between
 * them as they are. merged: out, [segment], its number among them. distinct: out, their ratios.
 * Returns how many there are. */
static uint32_t merge(uint32_t n_segments, uint32_t n, const double *ratio,
                      uint16_t *merged, double *distinct)
{
    uint32_t n_merged = 0;
    for (uint32_t k = 0; k < n_segments; k++) {
        uint32_t m = 0;
        while (m < n_merged &&
               !ratios_same(&distinct[(gsize)m * n], &ratio[(gsize)k * n], n))
            m++;
        if (m == n_merged)
            memcpy(&distinct[(gsize)n_merged++ * n], &ratio[(gsize)k * n],
                   n * sizeof *ratio);
        merged[k] = (uint16_t)m;
    }
    return n_merged;
}

typedef struct {
    Alternation *a;
    Followed segments;
    const double *proportional, *even;
} Steer;

/* The best program for ratios by segment; NULL where there is none, or all ratios are equal. */
static bool find_program(const Steer *s, const double *ratio, Program **program,
                         GError **error)
{
    Alternation *a = s->a;
    const uint32_t n = a->view->n_devices, n_ops = graph_n_ops(a->graph);
    g_autofree uint16_t *merged = g_new(uint16_t, s->segments.n),
                        *of = g_new(uint16_t, n_ops);
    g_autofree double *distinct = g_new(double, (gsize)s->segments.n *n);
    const uint32_t n_merged = merge(s->segments.n, n, ratio, merged, distinct);
    *program = NULL;
    if (n_merged == 1)
        return true;
    for (OpId id = 0; id < n_ops; id++)
        of[id] = merged[s->segments.of[id]];
    const SynthOptions options = {.beam = a->options->beam,
                                  .bucket_bytes = a->options->bucket_bytes,
                                  .deadline_us = a->answer->deadline_us};
    g_autoptr(SynthSpace) space =
        synth_space_of_segments(a->graph, a->question->pins, of, n_merged);
    SynthResult result;
    if (!synth_search(space, a->view, distinct, &options, &result, error))
        return false;
    a->search_s += result.search_s;
    a->search_labels += result.labels;
    *program = result.program;
    return true;
}

/* Alternates from these ratios, in place, until a round makes no faster plan. */
static bool hap_alternate(const Steer *s, double *ratio, GError **error)
{
    Alternation *a = s->a;
    const uint32_t n = a->view->n_devices;
    double before_s = INFINITY;
    for (uint32_t i = 0; i < a->options->max_rounds && !answer_is_late(a->answer); i++) {
        g_autoptr(Program) program = NULL;
        if (!find_program(s, ratio, &program, error))
            return false;
        if (!program)
            return true;
        const uint32_t met = a->apart->len;
        g_autofree double *common = g_memdup2(s->proportional, n * sizeof *common);
        bool feasible = false;
        Known *known = alternation_know(a, program);
        if (known->balanced) /* met before, also by segment */
            return true;
        if (!alternation_balance(a, known, common, &feasible, error))
            return false;
        if (a->apart->len == met)
            return true;
        const Apart *latest = a->apart->pdata[a->apart->len - 1];
        if (latest->time_s >= before_s)
            return true;
        before_s = latest->time_s;
        memcpy(ratio, latest->ratio, (gsize)s->segments.n * n * sizeof *ratio);
    }
    return true;
}

/* Segments from `first` on, up to `end`, are divided evenly and the others by speed, or the other
 * way round; what updates alone keep, evenly. */
static bool alternate_between(const Steer *s, uint32_t first, uint32_t end, bool evenly,
                              GError **error)
{
    const uint32_t n = s->a->view->n_devices, forward = s->segments.n_forward;
    g_autofree double *ratio = g_new(double, (gsize)s->segments.n *n);
    for (uint32_t k = 0; k < s->segments.n; k++)
        memcpy(&ratio[(gsize)k * n],
               k >= forward || (k >= first && k < end) == evenly ? s->even
                                                                 : s->proportional,
               n * sizeof *ratio);
    return hap_alternate(s, ratio, error);
}

/* Starts from all of the model by speed, from divisions of it in two parts, and from single
 * segments apart. */
static bool alternate_from_parts(const Steer *s, GError **error)
{
    const uint32_t n = s->segments.n_forward,
                   most = (uint32_t)(PLACES * (uint64_t)OPS /
                                     (graph_n_ops(s->a->graph) + OPS)),
                   places = MIN(n - 1, most + 1);
    if (!alternate_between(s, 0, 0, true, error))
        return false;
    for (uint32_t i = 1; i <= places; i++) {
        const uint32_t at = n * i / (places + 1);
        if (!alternate_between(s, at, n, true, error) ||
            !alternate_between(s, at, n, false, error))
            return false;
    }
    for (uint32_t k = 0; k < n && n <= 2 * PLACES; k++)
        if (!alternate_between(s, k, k + 1, true, error))
            return false;
    return true;
}

static ORDER_POINTERS(compare_times, Apart, ASCENDING(time_s));

/* Starts from the ratios of the fastest programs met so far. */
static bool alternate_from_programs(const Steer *s, GError **error)
{
    Alternation *a = s->a;
    const gsize size = (gsize)s->segments.n * a->view->n_devices;
    g_ptr_array_sort(a->apart, compare_times);
    const uint32_t starts = MIN(a->apart->len, STARTS);
    g_autofree double *start = g_new(double, starts *size + 1);
    for (uint32_t i = 0; i < starts; i++)
        memcpy(&start[i * size], ((Apart *)a->apart->pdata[i])->ratio,
               size * sizeof *start);
    for (uint32_t i = 0; i < starts; i++)
        if (!hap_alternate(s, &start[i * size], error))
            return false;
    return true;
}

/* Alternates between the best program for ratios by segment and the best ratios by segment for this
 * program, from the ratios of the fastest programs met so far, and from plans in which some
 * segments are divided by speed and the others evenly. Takes the best plan with segments if it is
 * better than the best one without. */
static bool segmented_search(Alternation *a, const double *proportional,
                             const double *even, GError **error)
{
    g_assert(a->segment);
    Steer s = {.a = a, .proportional = proportional, .even = even};
    followed_init(&s.segments, a);
    const bool done =
        alternate_from_programs(&s, error) &&
        (s.segments.n == 1 || ratios_same(proportional, even, a->view->n_devices) ||
         alternate_from_parts(&s, error));
    followed_clear(&s.segments);
    if (a->best_apart)
        plan_keep_better(&a->best, g_steal_pointer(&a->best_apart));
    return done;
}

/* --- spending spare memory on faster programs --- */

/* The same charge for every byte. Caller frees. */
static double *even_charge(const ClusterView *view, double charge)
{
    double *memory_s = g_new(double, SYNTH_POINTS * view->n_devices);
    for (uint32_t i = 0; i < SYNTH_POINTS * view->n_devices; i++)
        memory_s[i] = charge;
    return memory_s;
}

/* A round from these ratios with a charge for every byte; whether its program fits. */
static bool charged_round(Alternation *a, const double *start, double charge,
                          bool *feasible, GError **error)
{
    g_autofree double *ratio = g_memdup2(start, a->view->n_devices * sizeof *start);
    g_autofree double *memory_s = even_charge(a->view, charge);
    return alternation_round(a, ratio, memory_s, feasible, error);
}

/* Finds the programs of least memory, at ratios by speed, by GPUs and by memory. `charge`: a charge
 * at which memory decides. */
static bool spare(Alternation *a, double charge, GError **error)
{
    /* Not infinite, since the faster of two programs with equal memory is wanted: a million times
     * the price of all memory leaves six digits for seconds. */
    static const double OUTWEIGHS = 1e6;
    for (uint32_t i = 0; i < 3; i++) {
        g_autofree double *ratio = i == 0   ? ratios_proportional(a->view)
                                   : i == 1 ? ratios_even(a->view)
                                            : ratios_by_memory(a->view);
        bool feasible;
        if (!a->pinned && !charged_round(a, ratio, OUTWEIGHS * charge, &feasible, error))
            return false;
    }
    return true;
}

/* Finds the fastest programs with limited memory, not only charged memory, at these ratios, and
 * again at the ratios that follow. A charge saves memory in all equal layers or in none; these
 * programs can save it in some of them. */
static bool make_ration(Alternation *a, const double *start, uint64_t effort,
                        GError **error)
{
    /* Ratios settle in a few rounds. Rounding can turn programs around that are close to one
     * another, so several are rounded; a certificate that was asked for affords more labels. */
    enum { ROUNDS = 3, LABELS_TO_CERTIFY = 3000 };
    static const double guess = 4; /* times the fastest: any that fits */
    double tolerance = 0.008; /* below the usual target of 1 %; finer in every round */
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    g_autofree double *memory_s = g_new(double, SYNTH_POINTS *n);
    for (uint32_t round = 0; round < ROUNDS && !answer_is_late(a->answer); round++) {
        double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        SynthBox box = {.lo = ratio,
                        .hi = ratio,
                        .upper_s = alternation_fits(a)
                                       ? a->best->iteration_time_s
                                       : guess * a->best->iteration_time_s,
                        .deadline_us = a->answer->deadline_us};
        g_auto(SynthBound) bound = {0};
        gint64 begin = g_get_monotonic_time();
        if (round == 0 &&
            !ration_multipliers(a->answer->space, a->view, &box, memory_s, error))
            return false;
        box.memory_s = memory_s;
        box.rationed = true;
        box.labels = a->options->certify > 0 ? MAX(LABELS_TO_CERTIFY, a->options->labels)
                                             : a->options->labels;
        box.effort = effort;
        box.tolerance = tolerance;
        tolerance /= 2;
        box.n_programs = a->options->programs;
        bool done = synth_bound(a->answer->space, a->view, &box, &bound, error);
        a->search_s += (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
        if (!done || !alternation_consider_all(a, bound.programs, ratio, error))
            return false;
        if (!alternation_fits(a) || a->best->iteration_time_s >= before_s)
            break;
        put_block(a->answer->memory_s,
                  g_memdup2(memory_s, SYNTH_POINTS * n * sizeof *memory_s));
        memcpy(ratio, a->best->ratio, n * sizeof *ratio);
    }
    return true;
}

/* Searches from both ratios with the effort of the options; with a budget of time, with more and
 * more effort until the budget is spent or nothing improves. */
static bool ration_both(Alternation *a, const double *proportional, const double *even,
                        GError **error)
{
    /* each search takes the most of the time, so that few are made for nothing */
    enum { MORE = 8 };
    uint64_t effort = a->options->effort;
    double before_s;
    do {
        before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
        if (!make_ration(a, proportional, effort, error) ||
            !make_ration(a, even, effort, error))
            return false;
        effort *= MORE;
    } while (a->answer->deadline_us > 0 && effort > 0 && !answer_is_late(a->answer) &&
             alternation_fits(a) && a->best->iteration_time_s < before_s);
    return true;
}

/* Raises the charge until a program fits, then lowers it to the least charge at which one still
 * does. At the unit of the scale, all memory of the GPUs costs as much as the fastest iteration,
 * `time_s`. */
static bool save_memory(Alternation *a, const double *start, double time_s,
                        GError **error)
{
    /* Starts from a 32nd of the unit and multiplies by four, up to thirty times the unit. Two
     * bisections then leave the charge within a factor of 1.75. */
    enum { FIRST_PART = 32, RAISES = 6, RAISE = 4, BISECTIONS = 2 };
    uint32_t n = a->view->n_devices;
    double capacity = 0, low = 0, high = 0;
    for (uint32_t j = 0; j < n; j++)
        capacity += (double)a->view->device[j].memory_bytes;
    double charge = time_s / capacity / FIRST_PART;
    /* Where another plan is known, first at the last charge, which may spare all others. */
    bool fits = true;
    if (isfinite(a->answer->upper_s) &&
        !charged_round(a, start, charge * pow(RAISE, RAISES - 1), &fits, error))
        return false;
    for (uint32_t i = 0; fits && i < RAISES + BISECTIONS && (i < RAISES || high > 0) &&
                         !answer_is_late(a->answer);
         i++) {
        bool feasible;
        if (!charged_round(a, start, charge, &feasible, error))
            return false;
        if (feasible)
            high = charge;
        else
            low = charge;
        if (high > 0 && i < RAISES)
            i = RAISES;
        charge = high > 0 ? (low + high) / 2 : RAISE * charge;
    }
    if (high == 0 && !answer_is_late(a->answer))
        return alternation_fits(a) || !fits || spare(a, charge, error);
    g_autofree double *memory_s = even_charge(a->view, high);
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    return high == 0 || alternation_run(a, start, memory_s, history, error);
}

/* Searches from ratios by speed and from even ratios: for programs within the memory (ration.h) or,
 * where none of these is better once rounded, for programs whose memory is charged for. time_s,
 * fractional_s: the time of the fastest program, which does not fit, after and before rounding. */
static bool spend_memory(Alternation *a, const double *proportional, const double *even,
                         double time_s, double fractional_s, GError **error)
{
    double before_s = alternation_fits(a) ? a->best->iteration_time_s : INFINITY;
    a->answer->misfit_s = fractional_s;
    if (!ration_both(a, proportional, even, error))
        return false;
    const bool better = alternation_fits(a) && a->best->iteration_time_s < before_s;
    return better || save_memory(a, proportional, time_s, error);
}

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
            isfinite(a->answer->upper_s) || hap_disprove(question, a->answer, error)) &&
           (a->answer->misfit ||
            spend_memory(a, proportional, even, misfit_s, fractional_s, error));
}

/* The best of the baselines' programs, each at its best ratios, where the graph's programs are too
 * many to search, as `large` says; nothing is proved of it. */
static bool consider_only_baselines(Alternation *a, const double *proportional,
                                    const double *even, GError *large, GError **error)
{
    const bool known = synth_space_is_large(a->answer->space);
    if (known && !consider_all_baselines(a, proportional, even, false, error))
        return false;
    if (!a->best)
        g_propagate_error(error, g_error_copy(large));
    return a->best != NULL;
}

/* Searches for the best plan of all programs. */
static bool hap_search(Alternation *a, GError **error)
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
    g_autoptr(GError) large = NULL;
    if (!alternation_run(a, proportional, NULL, history, &large))
        return consider_only_baselines(a, proportional, homogeneous ? NULL : even, large,
                                       error);
    if (!homogeneous && alternation_fits(a) &&
        !alternation_run(a, even, NULL, history, error))
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
    bool done = consider_single(&a, error) && (a.best || hap_search(&a, error));
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
