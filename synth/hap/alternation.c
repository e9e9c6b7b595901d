/* HAP's alternation of programs and ratios. */
#include "synth/hap/alternation.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/hap/apart.h"

/* Ratios that a program was considered with, and whether the plan fits. */
typedef struct {
    double *ratio;
    bool feasible;
} Considered;

static bool same_program(const Program *a, const Program *b)
{
    return a->n == b->n && memcmp(a->instr, b->instr, a->n * sizeof *a->instr) == 0;
}

static FREE_DEFINE(known_free, Known, known, program_free(known->program),
                   sim_linear_free(known->linear), sim_memory_free(known->memory),
                   g_free(known->balanced), g_array_unref(known->considered));

Alternation alternation_new(const Question *question, Answer *answer)
{
    /* In one of many tries an answer soon is worth more than the fastest: a second at most where
     * links between a few GPUs leave millions of programs of nearly equal times. */
    enum { PART = 1000000 };
    return (Alternation){
        .question = question,
        .answer = answer,
        .graph = question->graph,
        .view = question->view,
        .options = question->options,
        .effort = answer->beaten ? PART : 0,
        .known = g_ptr_array_new_with_free_func((GDestroyNotify)known_free),
        .apart = g_ptr_array_new_with_free_func((GDestroyNotify)apart_free)};
}

void alternation_end(Alternation *a, Plan *plan)
{
    plan->search_time_s += a->search_s;
    plan->search_labels += a->search_labels;
    plan->balance_time_s += a->balance_s;
    plan_free(a->best);
    plan_free(a->best_apart);
    g_ptr_array_unref(a->known);
    g_ptr_array_unref(a->apart);
}

Known *alternation_know(Alternation *a, const Program *program)
{
    pointers_each (Known, known, a->known)
        if (same_program(known->program, program))
            return known;
    Known *known = g_new0(Known, 1);
    known->program = program_copy(program);
    known->linear =
        sim_linear(program, a->graph, a->view, NULL, a->options->bucket_bytes);
    known->considered = array_owning(Considered, free_first);
    g_ptr_array_add(a->known, known);
    return known;
}

static const SimMemory *memory_of(const Alternation *a, Known *known)
{
    if (!known->memory)
        known->memory =
            sim_memory(known->program, a->graph, known->linear, NULL, a->view->runtime);
    return known->memory;
}

/* The earlier plan with these ratios, or NULL. */
static const Considered *find_considered(const Alternation *a, const Known *known,
                                         const double *ratio)
{
    array_each (const Considered, plan, known->considered)
        if (ratios_same(plan->ratio, ratio, a->view->n_devices))
            return plan;
    return NULL;
}

static void note(const Alternation *a, Known *known, const double *ratio, bool feasible)
{
    Considered plan = {g_memdup2(ratio, a->view->n_devices * sizeof *ratio), feasible};
    g_array_append_val(known->considered, plan);
}

/* A plan of a known program with these ratios, neither rounded nor evaluated. */
static Plan *alternation_plan_of(const Alternation *a, const Known *known,
                                 const double *ratio)
{
    Plan *plan = plan_new();
    plan->bucket_bytes = a->options->bucket_bytes;
    plan_set(plan, a->graph, a->view, program_copy(known->program), ratio);
    return plan;
}

/* Sets the numbers that candidates are compared by, as answer_complete would; the plan is already
 * rounded. */
static void measure(const Alternation *a, Known *known, Plan *plan)
{
    g_autofree double *share = sim_plan_shares(plan, known->linear);
    g_autofree double *exact = sim_shares(known->linear, a->view, plan->ratio);
    plan->fractional_time_s = sim_linear_time(known->linear, a->view, exact, NULL, NULL);
    plan->iteration_time_s = sim_linear_time(known->linear, a->view, share, NULL, NULL);
    plan->feasible = sim_memory_fits(memory_of(a, known), a->view, share);
    double *seen_s = &a->answer->seen_s;
    if ((*seen_s == 0 || plan->fractional_time_s < *seen_s) &&
        sim_memory_fits(memory_of(a, known), a->view, exact))
        *seen_s = plan->fractional_time_s;
    alternation_climb(a, known->linear, memory_of(a, known), share, plan);
}

/* Rounds a plan of a known program, by time where that can make it the best. */
static bool evaluate(const Alternation *a, Known *known, Plan *plan, GError **error)
{
    if (!plan_round(plan, a->graph, error))
        return false;
    measure(a, known, plan);
    return true;
}

bool alternation_consider(Alternation *a, Known *known, const double *ratio,
                          bool *feasible, GError **error)
{
    const bool proved = a->proved && ratios_same(a->proved, ratio, a->view->n_devices);
    const Considered *before = find_considered(a, known, ratio);
    if (before && a->best) {
        *feasible |= before->feasible;
        a->best->optimal |= proved && same_program(a->best->program, known->program) &&
                            ratios_same(a->best->ratio, ratio, a->view->n_devices);
        return true;
    }
    g_autoptr(Plan) candidate = alternation_plan_of(a, known, ratio);
    if (!evaluate(a, known, candidate, error))
        return false;
    candidate->optimal = proved;
    *feasible |= candidate->feasible;
    note(a, known, ratio, candidate->feasible);
    plan_keep_better(&a->best, g_steal_pointer(&candidate));
    return true;
}

bool alternation_solve(Alternation *a, const SimLinear *linear, const SimMemory *memory,
                       double part, double *ratio, GError **error)
{
    const gint64 start = g_get_monotonic_time();
    const bool done = ratios_balance(linear, memory, a->view, 1, part, ratio, error);
    a->balance_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

bool alternation_balance(Alternation *a, Known *known, double *ratio, bool *feasible,
                         GError **error)
{
    if (a->pinned)
        return true;
    if (known->balanced) {
        memcpy(ratio, known->balanced, a->view->n_devices * sizeof *ratio);
        return alternation_consider(a, known, ratio, feasible, error);
    }
    bool fits = false, solved = true;
    if (a->segment && !apart_consider(a, known->program, ratio, error))
        return false;
    for (uint32_t i = 0; i < RATIOS_ROOMS && solved && !fits; i++) {
        g_autoptr(GError) misfit = NULL;
        solved = alternation_solve(a, known->linear, memory_of(a, known), RATIOS_ROOM[i],
                                   ratio, &misfit);
        if (!solved && misfit->code != KILTER_ERROR_INFEASIBLE) {
            g_propagate_error(error, g_steal_pointer(&misfit));
            return false;
        }
        if (solved && !alternation_consider(a, known, ratio, &fits, error))
            return false;
    }
    *feasible |= fits;
    known->roomy = !fits && solved;
    if (!fits && (!alternation_solve(a, known->linear, NULL, 1, ratio, error) ||
                  !alternation_consider(a, known, ratio, feasible, error)))
        return false;
    known->balanced = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    return true;
}

/* Whether the ratios occurred before: convergence, or an oscillation. */
static bool seen(const GPtrArray *history, const double *ratio, uint32_t n)
{
    return any_of(i, history->len, ratios_same(history->pdata[i], ratio, n));
}

bool alternation_round(Alternation *a, double *ratio, const double *memory_s,
                       bool *feasible, GError **error)
{
    SynthOptions options = {.beam = a->options->beam,
                            .bucket_bytes = a->options->bucket_bytes,
                            .effort = a->effort,
                            .memory_s = memory_s,
                            .deadline_us = a->answer->deadline_us};
    SynthResult result;
    if (a->options->search == SEARCH_REFERENCE
            ? !synth_reference(a->graph, a->view, ratio, &result, error)
            : !synth_search(a->answer->space, a->view, ratio, &options, &result, error))
        return false;
    g_autoptr(Program) program = result.program;
    a->search_s += result.search_s;
    a->search_labels += result.labels;
    *feasible = false;
    if (!program)
        return true; /* the budget ran out */
    g_autofree double *searched = g_memdup2(ratio, a->view->n_devices * sizeof *ratio);
    a->proved = result.optimal ? searched : NULL;
    Known *known = alternation_know(a, program);
    bool done = alternation_consider(a, known, ratio, feasible, error) &&
                alternation_balance(a, known, ratio, feasible, error);
    a->proved = NULL;
    return done;
}

/* Whether another plan is faster by more than rounds to come would gain. */
static bool is_behind(const Alternation *a)
{
    static const double gain = 1.05;
    return a->best && answer_is_lost(a->answer, a->best->iteration_time_s / gain);
}

bool alternation_run(Alternation *a, const double *start, const double *memory_s,
                     GPtrArray *history, GError **error)
{
    uint32_t n = a->view->n_devices;
    g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
    for (uint32_t round = 0; round < a->options->max_rounds && !seen(history, ratio, n) &&
                             !answer_is_late(a->answer);
         round++) {
        bool feasible;
        g_ptr_array_add(history, g_memdup2(ratio, n * sizeof *ratio));
        if (!alternation_round(a, ratio, memory_s, &feasible, error))
            return false;
        if (is_behind(a))
            break;
        if (!feasible && !memory_s)
            break; /* memory must be charged for: better ratios of this program do not help */
    }
    return true;
}

bool alternation_consider_all(Alternation *a, const GPtrArray *programs,
                              const double *start, GError **error)
{
    uint32_t n = a->view->n_devices;
    for (uint32_t i = 0; i < programs->len && !answer_is_late(a->answer); i++) {
        g_autofree double *ratio = g_memdup2(start, n * sizeof *start);
        Known *known = alternation_know(a, programs->pdata[i]);
        bool feasible = false;
        if (!alternation_consider(a, known, ratio, &feasible, error) ||
            !alternation_balance(a, known, ratio, &feasible, error))
            return false;
    }
    return true;
}

/* Considers a program with the best plan's ratios and counts, and with its own best ratios. */
static bool consider_rounded(Alternation *a, Known *known, GError **error)
{
    g_autofree double *ratio =
        g_memdup2(a->best->ratio, a->view->n_devices * sizeof *ratio);
    g_autoptr(Plan) candidate = alternation_plan_of(a, known, ratio);
    if (!plan_round(candidate, a->graph, error))
        return false;
    plan_copy_counts(candidate, a->best);
    measure(a, known, candidate);
    plan_keep_better(&a->best, g_steal_pointer(&candidate));
    bool feasible = false;
    return alternation_balance(a, known, ratio, &feasible, error);
}

bool alternation_round_best(Alternation *a, GError **error)
{
    if (!alternation_fits(a) || a->best->n_segments > 1)
        return true;
    Known *known = alternation_know(a, a->best->program);
    g_autoptr(Plan) candidate = alternation_plan_of(a, known, a->best->ratio);
    if (!evaluate(a, known, candidate, error))
        return false;
    candidate->optimal = a->best->optimal;
    plan_keep_better(&a->best, g_steal_pointer(&candidate));
    return true;
}

/* Half of the budget that is left is the certificate's, where one is wanted: it is over plans
 * before rounding. */
static gint64 settle_deadline(const Alternation *a)
{
    const gint64 deadline_us = a->answer->deadline_us;
    if (deadline_us == 0 || a->options->certify == 0)
        return deadline_us;
    const gint64 now = g_get_monotonic_time();
    return now + MAX(0, deadline_us - now) / 2;
}

bool alternation_settle(Alternation *a, GError **error)
{
    /* each is a search at the shares of the one before */
    enum { ROUNDS = 3, EFFORT = 100000 };
    static const double visible =
        2e-3; /* if rounding costs less, nothing can be gained */
    bool better = true;
    for (uint32_t i = 0; i < ROUNDS && better && alternation_fits(a) &&
                         a->best->n_segments == 1 && !answer_is_late(a->answer);
         i++) {
        const double before_s = a->best->iteration_time_s;
        if (before_s <= a->best->fractional_time_s * (1 + visible))
            break;
        g_auto(RoundedShares) rounded = {0};
        rounded_shares_init(&rounded, a->best, a->graph);
        const SynthOptions options = {.beam = a->options->beam,
                                      .bucket_bytes = a->options->bucket_bytes,
                                      .effort = EFFORT,
                                      .deadline_us = settle_deadline(a),
                                      .shares = &rounded.shares,
                                      .upper_s = before_s};
        SynthResult result;
        if (!synth_search(a->answer->space, a->view, a->best->ratio, &options, &result,
                          error))
            return false;
        g_autoptr(Program) program = result.program;
        a->search_s += result.search_s;
        a->search_labels += result.labels;
        if (program && !consider_rounded(a, alternation_know(a, program), error))
            return false;
        better = a->best->iteration_time_s < before_s;
    }
    return true;
}
