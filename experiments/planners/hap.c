/* HAP's planner (Sec. 3.1): alternate the best program for fixed ratios (Eq. 1) and the best ratios
 * for a fixed program (Eq. 2) until they repeat; keep the best pair.
 *
 * Kilter starts from two ratios, proportional to speed as in the paper and even, and judges pairs
 * by what they cost after rounding. The baselines are candidates too, so that rounding cannot make
 * the plan slower than data parallelism. A plan that fits the memory is preferred to any that does
 * not; if the fastest programs do not fit, programs come from the search with memory limited
 * (ration.h); if none of these fits either, memory is charged for, ever more until one does. Where
 * they only miss it by rounding, as on more devices than dimensions have units, a baseline that
 * fits will do.
 *
 * With segments every program is also considered with ratios of their own for as many segments as
 * it keeps apart, by one linear program; the search itself looks at common ratios, so such a plan
 * is never slower than without.
 *
 * Where the option `ratios` pins the ratios, what is left is the best program for them. With
 * search=reference programs are those of HAP's own search alone, which knows no memory. With pins
 * all programs keep them. */
#include <math.h>
#include <string.h>

#include "balance/balance.h"
#include "experiments/planners/complete.h"
#include "experiments/planners/make.h"
#include "experiments/planners/ration.h"
#include "experiments/planners/ratios.h"
#include "experiments/planners/segments.h"

/* Ratios that a program was considered with, and whether the plan fits. */
typedef struct {
    double *ratio;
    bool feasible;
} Considered;

/* A program that was met, with its models for common ratios. */
typedef struct {
    Program *program;
    SimLinear *linear;
    SimMemory *memory;  /* NULL until it is asked for */
    double *balanced;   /* its best ratios; NULL until they are */
    bool roomy;         /* with ratios that leave memory free it misses by rounding */
    GArray *considered; /* Considered */
} Known;

typedef struct {
    const Planning *planning;
    const Graph *graph; /* the planning's, like view and options */
    const ClusterView *view;
    const PlannerOptions *options;
    GPtrArray *known;  /* Known: rounds and baselines meet the same again */
    Plan *best;        /* NULL until there is a candidate */
    bool pinned;       /* the ratios stay what they are */
    uint16_t *segment; /* [op] as asked for, or NULL: one */
    double search_s, balance_s;
    /* ratios that the program at hand is proved best for, or NULL */
    const double *proved;
} Alternation;

static bool same_ratios(const double *a, const double *b, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++)
        if (fabs(a[j] - b[j]) > 1e-9)
            return false;
    return true;
}

static bool same_program(const Program *a, const Program *b)
{
    return a->n == b->n && memcmp(a->instr, b->instr, a->n * sizeof *a->instr) == 0;
}

static void considered_clear(gpointer data)
{
    g_free(((Considered *)data)->ratio);
}

static void known_free(gpointer data)
{
    Known *known = data;
    program_free(known->program);
    sim_linear_free(known->linear);
    sim_memory_free(known->memory);
    g_free(known->balanced);
    g_array_unref(known->considered);
    g_free(known);
}

static Alternation alternation_new(const Planning *planning)
{
    return (Alternation){.planning = planning,
                         .graph = planning->graph,
                         .view = planning->view,
                         .options = planning->options,
                         .known = g_ptr_array_new_with_free_func(known_free)};
}

/* Hands the times spent to the plan. */
static void alternation_end(Alternation *a, Plan *plan)
{
    plan->search_time_s += a->search_s;
    plan->balance_time_s += a->balance_s;
    plan_free(a->best);
    g_ptr_array_unref(a->known);
}

/* What is known of a program, which is copied if it is new. */
static Known *know(Alternation *a, const Program *program)
{
    for (uint32_t i = 0; i < a->known->len; i++) {
        Known *known = a->known->pdata[i];
        if (same_program(known->program, program))
            return known;
    }
    Known *known = g_new0(Known, 1);
    known->program = program_copy(program);
    known->linear =
        sim_linear(program, a->graph, a->view, NULL, a->options->bucket_bytes);
    known->considered = g_array_new(FALSE, FALSE, sizeof(Considered));
    g_array_set_clear_func(known->considered, considered_clear);
    g_ptr_array_add(a->known, known);
    return known;
}

static const SimMemory *memory_of(const Alternation *a, Known *known)
{
    if (!known->memory)
        known->memory = sim_memory(known->program, a->graph, known->linear, NULL);
    return known->memory;
}

/* The plan of these ratios, NULL if there was none. */
static const Considered *find_considered(const Alternation *a, const Known *known,
                                         const double *ratio)
{
    for (uint32_t i = 0; i < known->considered->len; i++) {
        const Considered *plan = &g_array_index(known->considered, Considered, i);
        if (same_ratios(plan->ratio, ratio, a->view->n_devices))
            return plan;
    }
    return NULL;
}

static void note(const Alternation *a, Known *known, const double *ratio, bool feasible)
{
    Considered plan = {g_memdup2(ratio, a->view->n_devices * sizeof *ratio), feasible};
    g_array_append_val(known->considered, plan);
}

/* Takes a plan that is complete if it is better. */
static void take(Alternation *a, Plan *candidate)
{
    if (plan_is_better(candidate, a->best)) {
        plan_free(a->best);
        a->best = candidate;
    } else {
        plan_free(candidate);
    }
}

/* Considers the program with ratios of their own for as many segments as it keeps apart, next to
 * the common ratios. */
static bool consider_segments(Alternation *a, const Program *program,
                              const double *common, GError **error)
{
    uint32_t n = a->view->n_devices;
    g_autofree uint16_t *segment = g_new(uint16_t, graph_n_ops(a->graph));
    uint32_t n_segments = balance_segments_join(program, a->graph, a->segment, segment);
    if (n_segments == 1)
        return true;
    g_autoptr(SimLinear) linear =
        sim_linear(program, a->graph, a->view, segment, a->options->bucket_bytes);
    g_autoptr(SimMemory) memory = sim_memory(program, a->graph, linear, segment);
    g_autofree double *ratio = g_new(double, (gsize)n_segments *n);
    BalanceReport report;
    gint64 start = g_get_monotonic_time();
    g_autoptr(GError) failed = NULL;
    bool solved =
        balance_ratios(linear, memory, a->view, n_segments, ratio, &report, &failed);
    a->balance_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (!solved) /* the common ratios may still do */
        return failed->code == KILTER_ERROR_INFEASIBLE ||
               (g_propagate_error(error, g_steal_pointer(&failed)), false);
    g_autoptr(Plan) candidate = plan_new();
    candidate->bucket_bytes = a->options->bucket_bytes;
    plan_set(candidate, a->graph, a->view, program_copy(program), common);
    plan_set_segments(candidate, ratio, segment, n_segments);
    if (!plan_complete(candidate, a->planning, error))
        return false;
    take(a, g_steal_pointer(&candidate));
    return true;
}

/* Rounds a plan of a known program and sets what candidates are compared by, as plan_complete
 * would. */
static bool evaluate(const Alternation *a, Known *known, Plan *plan, GError **error)
{
    if (!plan_round(plan, a->graph, error))
        return false;
    g_autofree double *share = sim_plan_shares(plan, known->linear);
    plan->iteration_time_s = sim_linear_time(known->linear, a->view, share, NULL, NULL);
    plan->feasible = sim_memory_fits(memory_of(a, known), a->view, share);
    return true;
}

/* *feasible is set if the plan fits the memory, and left alone otherwise. */
static bool consider(Alternation *a, Known *known, const double *ratio, bool *feasible,
                     GError **error)
{
    const bool proved = a->proved && same_ratios(a->proved, ratio, a->view->n_devices);
    const Considered *before = find_considered(a, known, ratio);
    if (before && a->best) {
        *feasible |= before->feasible;
        a->best->optimal |= proved && same_program(a->best->program, known->program) &&
                            same_ratios(a->best->ratio, ratio, a->view->n_devices);
        return true;
    }
    g_autoptr(Plan) candidate = plan_new();
    candidate->bucket_bytes = a->options->bucket_bytes;
    plan_set(candidate, a->graph, a->view, program_copy(known->program), ratio);
    if (!evaluate(a, known, candidate, error))
        return false;
    candidate->optimal = proved;
    *feasible |= candidate->feasible;
    note(a, known, ratio, candidate->feasible);
    take(a, g_steal_pointer(&candidate));
    return true;
}

static bool fits(const Alternation *a)
{
    return a->best && a->best->feasible;
}

/* The linear program with a part of every GPU's memory. */
static bool solve_ratios(Alternation *a, const SimLinear *linear, const SimMemory *memory,
                         double part, double *ratio, GError **error)
{
    ClusterView view = *a->view;
    g_autofree Device *device = g_memdup2(view.device, view.n_devices * sizeof *device);
    for (uint32_t j = 0; j < view.n_devices; j++)
        device[j].memory_bytes = (uint64_t)(part * (double)device[j].memory_bytes);
    view.device = device;
    BalanceReport report;
    gint64 start = g_get_monotonic_time();
    bool done = balance_ratios(linear, memory, &view, 1, ratio, &report, error);
    a->balance_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

/* Considers a program with its best ratios; those that fit the memory if there are any. Rounding
 * can need more than the ratios do, so a plan that misses the memory is tried again with less of
 * it. */
static bool balance(Alternation *a, Known *known, double *ratio, bool *feasible,
                    GError **error)
{
    static const double part[] = {1, 0.98, 0.95, 0.9};
    if (a->pinned)
        return true;
    if (known->balanced) {
        memcpy(ratio, known->balanced, a->view->n_devices * sizeof *ratio);
        return consider(a, known, ratio, feasible, error);
    }
    bool fits = false, solved = true;
    if (a->segment && !consider_segments(a, known->program, ratio, error))
        return false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(part) && solved && !fits; i++) {
        g_autoptr(GError) misfit = NULL;
        solved =
            solve_ratios(a, known->linear, memory_of(a, known), part[i], ratio, &misfit);
        if (!solved && misfit->code != KILTER_ERROR_INFEASIBLE) {
            g_propagate_error(error, g_steal_pointer(&misfit));
            return false;
        }
        if (solved && !consider(a, known, ratio, &fits, error))
            return false;
    }
    *feasible |= fits;
    known->roomy = !fits && solved;
    if (!fits && (!solve_ratios(a, known->linear, NULL, 1, ratio, error) ||
                  !consider(a, known, ratio, feasible, error)))
        return false;
    known->balanced = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    return true;
}

/* Whether the ratios occurred before: convergence, or an oscillation. */
static bool seen(const GPtrArray *history, const double *ratio, uint32_t n)
{
    for (uint32_t i = 0; i < history->len; i++)
        if (same_ratios(history->pdata[i], ratio, n))
            return true;
    return false;
}

/* One round: the best program for the ratios, then the best ratios for it, in place. *feasible: a
 * plan of this round fits the memory. */
static bool round_of(Alternation *a, double *ratio, const double *memory_s,
                     bool *feasible, GError **error)
{
    SynthOptions options = {.beam = a->options->beam,
                            .bucket_bytes = a->options->bucket_bytes,
                            .memory_s = memory_s,
                            .deadline_us = a->planning->deadline_us};
    SynthResult result;
    if (a->options->search == SEARCH_REFERENCE
            ? !synth_reference(a->graph, a->view, ratio, &result, error)
            : !synth_search(a->planning->space, a->view, ratio, &options, &result, error))
        return false;
    g_autoptr(Program) program = result.program;
    a->search_s += result.search_s;
    *feasible = false;
    if (!program)
        return true; /* the budget ran out */
    g_autofree double *searched = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    a->proved = result.optimal ? searched : NULL;
    Known *known = know(a, program);
    bool done = consider(a, known, ratio, feasible, error) &&
                balance(a, known, ratio, feasible, error);
    a->proved = NULL;
    return done;
}

/* memory_s: as in SynthOptions. history: ratios that were searched with it; from there on rounds
 * only repeat. */
static bool alternate(Alternation *a, const double *start, const double *memory_s,
                      GPtrArray *history, GError **error)
{
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    for (uint32_t round = 0; round < a->options->max_rounds && !seen(history, ratio, n) &&
                             !planning_is_late(a->planning);
         round++) {
        bool feasible;
        g_ptr_array_add(history, g_memdup2(ratio, n * sizeof *ratio));
        if (!round_of(a, ratio, memory_s, &feasible, error))
            return false;
        if (!feasible && !memory_s)
            break; /* memory will have to be charged for: better ratios of this program lead nowhere */
    }
    return true;
}

/* The same charge for every byte. Caller frees. */
static double *even_charge(const ClusterView *view, double charge)
{
    double *memory_s = g_new(double, SYNTH_POINTS * view->n_devices);
    for (uint32_t i = 0; i < SYNTH_POINTS * view->n_devices; i++)
        memory_s[i] = charge;
    return memory_s;
}

/* The programs of least memory, at ratios by speed, by GPUs and by memory. `charge`: one at which
 * memory already decides. */
static bool spare(Alternation *a, double charge, GError **error)
{
    static const double all = 1e6; /* times more: nothing else counts */
    g_autofree double *memory_s = even_charge(a->view, all * charge);
    for (uint32_t i = 0; i < 3; i++) {
        g_autofree double *ratio = i == 0   ? ratios_proportional(a->view)
                                   : i == 1 ? ratios_even(a->view)
                                            : ratios_by_memory(a->view);
        bool feasible;
        if (!a->pinned && !round_of(a, ratio, memory_s, &feasible, error))
            return false;
    }
    return true;
}

/* Considers programs with their best ratios, and takes the better plans. */
static bool consider_all(Alternation *a, const GPtrArray *programs, const double *start,
                         GError **error)
{
    uint32_t n = a->view->n_devices;
    for (uint32_t i = 0; i < programs->len && !planning_is_late(a->planning); i++) {
        g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
        Known *known = know(a, programs->pdata[i]);
        bool feasible = false;
        if (!consider(a, known, ratio, &feasible, error) ||
            !balance(a, known, ratio, &feasible, error))
            return false;
    }
    return true;
}

/* The fastest programs whose memory is limited, not only charged for, at these ratios, and again at
 * those that come out. One charge saves memory in all of the layers that are alike or in none;
 * among these are those that save it in some. */
static bool ration(Alternation *a, const double *start, GError **error)
{
    enum { ROUNDS = 3, PROGRAMS = 12, LABELS = 800, LABELS_TO_CERTIFY = 3000 };
    static const double guess = 4;
    double tolerance = 0.008; /* finer in every round */
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    g_autofree double *memory_s = g_new(double, SYNTH_POINTS *n);
    for (uint32_t round = 0; round < ROUNDS && !planning_is_late(a->planning); round++) {
        double before_s = fits(a) ? a->best->iteration_time_s : INFINITY;
        SynthBox box = {.lo = ratio,
                        .hi = ratio,
                        .upper_s = fits(a) ? a->best->iteration_time_s
                                           : guess * a->best->iteration_time_s,
                        .deadline_us = a->planning->deadline_us};
        g_auto(SynthBound) bound = {0};
        gint64 begin = g_get_monotonic_time();
        if (round == 0 &&
            !ration_multipliers(a->planning->space, a->view, &box, memory_s, error))
            return false;
        box.memory_s = memory_s;
        box.rationed = true;
        box.labels = a->options->certify > 0 ? LABELS_TO_CERTIFY : LABELS;
        box.tolerance = tolerance;
        tolerance /= 2;
        box.n_programs = PROGRAMS;
        bool done = synth_bound(a->planning->space, a->view, &box, &bound, error);
        a->search_s += (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
        if (!done || !consider_all(a, bound.programs, ratio, error))
            return false;
        if (!fits(a) || a->best->iteration_time_s >= before_s)
            break;
        memcpy(ratio, a->best->ratio, n * sizeof *ratio);
    }
    return true;
}

/* Raises the charge until a program fits, then narrows it down to the least one that still does.
 * The scale: all memory of the GPUs costs as much as the fastest iteration, of `time_s`. */
static bool save_memory(Alternation *a, const double *start, double time_s,
                        GError **error)
{
    enum { RAISES = 6, BISECTIONS = 2 };
    uint32_t n = a->view->n_devices;
    double capacity = 0, low = 0, high = 0;
    for (uint32_t j = 0; j < n; j++)
        capacity += (double)a->view->device[j].memory_bytes;
    double charge = time_s / capacity / 32;
    for (uint32_t i = 0; i < RAISES + BISECTIONS && (i < RAISES || high > 0) &&
                         !planning_is_late(a->planning);
         i++) {
        g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
        g_autofree double *memory_s = even_charge(a->view, charge);
        bool feasible;
        if (!round_of(a, ratio, memory_s, &feasible, error))
            return false;
        if (feasible)
            high = charge;
        else
            low = charge;
        if (high > 0 && i < RAISES)
            i = RAISES;
        charge = high > 0 ? (low + high) / 2 : 4 * charge;
    }
    if (high == 0 && !planning_is_late(a->planning))
        return fits(a) || spare(a, charge, error);
    g_autofree double *memory_s = even_charge(a->view, high);
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    return high == 0 || alternate(a, start, memory_s, history, error);
}

/* Programs that fit where the fastest one, of `time_s`, does not: those whose memory is limited, or,
 * where none of them is an improvement once rounded, charged for. */
static bool spend_memory(Alternation *a, const double *proportional, const double *even,
                         double time_s, GError **error)
{
    double before_s = fits(a) ? a->best->iteration_time_s : INFINITY;
    return ration(a, proportional, error) && ration(a, even, error) &&
           ((fits(a) && a->best->iteration_time_s < before_s) ||
            save_memory(a, proportional, time_s, error));
}

/* Whether a program is slower than the best plan by more than rounding could make up for, at these
 * ratios and at its best. */
static bool hopeless(Alternation *a, const Known *known, const double *ratio)
{
    static const double rounding = 1.1;
    if (!fits(a))
        return false;
    const SimLinear *linear = known->linear;
    g_autofree double *best = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    if (!a->pinned && !solve_ratios(a, linear, NULL, 1, best, NULL))
        return false;
    g_autofree double *share = sim_shares(linear, a->view, best);
    return sim_linear_time(linear, a->view, share, NULL, NULL) >
           a->best->iteration_time_s * rounding;
}

static bool consider_baselines(Alternation *a, const double *ratio, GError **error)
{
    for (Baseline baseline = BASELINE_DATA_PARALLEL; baseline < BASELINES; baseline++) {
        SynthResult result;
        if (!synth_baseline(a->graph, a->view, ratio, baseline, &result, NULL))
            continue;
        g_autoptr(Program) program = result.program;
        if (!synth_pins_hold(a->planning->pins, a->graph, program))
            continue;
        Known *known = know(a, program);
        if (hopeless(a, known, ratio))
            continue;
        g_autofree double *balanced =
            g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
        bool feasible = false;
        if (!consider(a, known, ratio, &feasible, error) ||
            !balance(a, known, balanced, &feasible, error))
            return false;
    }
    return true;
}

/* The best plan's program and ratios. */
static void give(Alternation *a, Plan *plan)
{
    plan_set(plan, a->graph, a->view, g_steal_pointer(&a->best->program), a->best->ratio);
    plan_set_segments(plan, a->best->ratio, a->best->segment, a->best->n_segments);
    plan->optimal = a->best->optimal;
}

bool plan_make_hap(const Planning *planning, Plan *plan, GError **error)
{
    const Graph *graph = planning->graph;
    const ClusterView *view = planning->view;
    const PlannerOptions *options = planning->options;
    g_autofree uint16_t *segment = g_new(uint16_t, graph_n_ops(graph));
    if (!segments_make(options->segments, graph, segment, error))
        return false;
    Alternation a = alternation_new(planning);
    g_autofree double *proportional = ratios_proportional(view),
                      *even = ratios_even(view),
                      *pinned = ratios_pinned(view, options->ratios);
    if (pinned) {
        a.pinned = true;
        memcpy(proportional, pinned, view->n_devices * sizeof *pinned);
        memcpy(even, pinned, view->n_devices * sizeof *pinned);
    }
    a.segment = options->segments ? segment : NULL;
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    bool homogeneous = same_ratios(proportional, even, view->n_devices);
    bool done = alternate(&a, proportional, NULL, history, error) &&
                (homogeneous || !fits(&a) || alternate(&a, even, NULL, history, error));
    const double misfit_s = a.best && !fits(&a) ? a.best->iteration_time_s : 0;
    const bool rounding = misfit_s > 0 && know(&a, a.best->program)->roomy;
    if (done && options->search == SEARCH_EXACT)
        done = consider_baselines(&a, proportional, error) &&
               (homogeneous || consider_baselines(&a, even, error)) &&
               (misfit_s == 0 || (rounding && fits(&a)) ||
                spend_memory(&a, proportional, even, misfit_s, error));
    if (done && !a.best)
        done = kilter_fail(error, KILTER_ERROR_FAILED,
                           "no program was found within the budget of %g s",
                           options->budget_s);
    if (done)
        give(&a, plan);
    alternation_end(&a, plan);
    return done;
}

bool plan_improve(Plan *plan, const Planning *planning, const double *start,
                  const GPtrArray *programs, GError **error)
{
    const PlannerOptions *options = planning->options;
    bool own = options->ratios == RATIOS_OWN || options->ratios == RATIOS_BEST;
    if (strcmp(plan->planner, "hap") != 0 || !own || options->search != SEARCH_EXACT)
        return true;
    Alternation a = alternation_new(planning);
    g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
    bool done = programs ? consider_all(&a, programs, start, error)
                         : alternate(&a, start, NULL, history, error);
    if (done && a.best && plan_is_better(a.best, plan)) {
        give(&a, plan);
        done = plan_complete(plan, planning, error);
    }
    alternation_end(&a, plan);
    return done;
}
