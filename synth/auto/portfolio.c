/* Every planner on every choice of machines: the question, the rounds, and what is said of them. */
#include "synth/auto/tries.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/graph/facts.h"
#include "data/models/model.h"
#include "synth/answer/complete.h"

FREE_DEFINE(portfolio_free, Portfolio, portfolio, g_free(portfolio->model),
            g_ptr_array_unref(portfolio->choices), g_ptr_array_unref(portfolio->notes));

/* Orders choices by their bounds; the whole cluster comes first where no bound is known. */
static ORDER_POINTERS(by_bound, PortfolioChoice, ASCENDING(bound_s));

static gint by_time(gconstpointer a, gconstpointer b)
{
    const PortfolioChoice *x = *(PortfolioChoice *const *)a;
    const PortfolioChoice *y = *(PortfolioChoice *const *)b;
    const double s = x->report ? x->report->iteration_time_s : INFINITY;
    const double t = y->report ? y->report->iteration_time_s : INFINITY;
    if (s != t)
        return (s > t) - (s < t);
    return x->gpus != y->gpus && isfinite(s) ? (x->gpus > y->gpus) - (x->gpus < y->gpus)
                                             : by_bound(a, b);
}

/* Says how long the tries may take, and with how much memory: 22 questions of 400 to 5,600 ops took
 * .4 to 1.4 us times the square of their ops, within 3 with the planner's time by GPUs; a first
 * answer for a long program .5 us an op and try. */
static void portfolio_say(const PortfolioRun *run)
{
    const double op_s = 1e-6, hasty_s = 0.5e-6;
    const double all_bytes = 600e3, some_bytes = 250e3; /* for each op */
    const GPtrArray *choices = run->portfolio->choices;
    const PortfolioChoice *whole = g_ptr_array_index(choices, 0);
    const uint32_t ops = graph_n_ops(run->graph);
    uint32_t n_tries = 0;
    double by_size_s = 0, by_size_bytes = 0; /* of the planner that takes most */
    for (uint32_t c = 0; c < choices->len; c++)
        n_tries += ((const PortfolioChoice *)g_ptr_array_index(choices, c))->tries->len;
    array_each (const PortfolioTry, t, whole->tries) {
        double s, bytes;
        if (t->planner->most_gpus > 0 && whole->gpus > t->planner->most_gpus)
            continue; /* it refuses */
        planner_expects(t->planner, 0,
                        t->granularity == GRANULARITY_GPU ? whole->gpus : 0, &s, &bytes);
        by_size_s = fmax(by_size_s, s);
        by_size_bytes = fmax(by_size_bytes, bytes);
    }
    g_autofree char *what = g_strdup_printf("%u tries of planners on %u ops and %u GPUs",
                                            n_tries, ops, whole->gpus);
    planner_say(
        what, try_is_hasty(run) ? hasty_s * n_tries * ops : op_s * ops * ops + by_size_s,
        fmax((run->how->some ? some_bytes : all_bytes) * ops, by_size_bytes));
}

/* Says so where a large model is trained in float32, as it is by default: 16 bits are usual. */
static void note_precision(const PortfolioRun *run)
{
    const uint64_t large = 1000000000;
    if (graph_precision(run->graph) == PRECISION_SINGLE &&
        graph_facts(run->graph).parameters >= large)
        g_ptr_array_add(
            run->portfolio->notes,
            g_strdup("trained in float32; most models of this size are trained "
                     "with precision=bf16"));
}

static bool prepare(PortfolioRun *run, const char *model, const Cluster *cluster,
                    GError **error)
{
    Portfolio *portfolio = run->portfolio;
    run->graph = model_build(model, cluster_gpus(cluster), &portfolio->model, error);
    if (!run->graph)
        return false;
    note_precision(run);
    run->floor = sim_memory_floor(run->graph);
    run->has = technique_needs(run->graph);
    run->has.hosts = technique_has_hosts(cluster);
    portfolio_list_choices(portfolio, cluster, run->how);
    for (uint32_t i = 0; i < portfolio->choices->len; i++)
        portfolio_list_tries(run, g_ptr_array_index(portfolio->choices, i));
    portfolio_say(run);
    pointers_each (PortfolioChoice, choice, portfolio->choices) {
        choice->bound_s = portfolio_least_bound(run, choice);
        if (!choice->only)
            portfolio->bound_s = choice->bound_s;
    }
    g_ptr_array_sort(portfolio->choices, by_bound);
    return true;
}

static void portfolio_search(PortfolioRun *run)
{
    portfolio_run(run);
    portfolio_improve(run);
    pointers_each (PortfolioChoice, choice, run->portfolio->choices) {
        /* no planner was tried: no plan on its machines is faster than the best one */
        choice->skipped =
            run->how->prune && !choice->report && choice->bound_s >= run->best_s;
    }
}

/* The gain of the neighbour that is the choice's plan, in words. Caller frees. */
static char *neighbours_words(const PortfolioChoice *choice)
{
    const double part = choice->best->iteration_s / choice->start_s;
    return isfinite(choice->start_s)
               ? g_strdup_printf("%s: a neighbour of the fastest strategy that a planner "
                                 "found, %.1f %%",
                                 choice->best->set, 100 * (part - 1))
               : g_strdup_printf("%s: no strategy that the planners search fits",
                                 choice->best->set);
}

/* Says what was searched, and what techniques bring. */
static void portfolio_add_notes(Portfolio *portfolio)
{
    uint32_t plans = 0, tries = 0;
    pointers_each (const PortfolioChoice, choice, portfolio->choices) {
        array_each (const PortfolioTry, t, choice->tries) {
            plans += isfinite(t->iteration_s);
            tries += !t->left_out;
        }
    }
    g_ptr_array_insert(
        portfolio->notes, 0,
        g_strdup_printf(
            "%u searches by planners and techniques on %u choice%s of machines "
            "gave %u plans",
            tries, portfolio->choices->len, portfolio->choices->len == 1 ? "" : "s",
            plans));
    const PortfolioChoice *first = g_ptr_array_index(portfolio->choices, 0);
    char *words = planner_can(first->best->planner, PLANNER_TRIED)
                      ? technique_words(first)
                      : neighbours_words(first);
    if (words)
        g_ptr_array_add(portfolio->notes, words);
}

Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error)
{
    const gint64 start = g_get_monotonic_time();
    g_autoptr(Portfolio) portfolio = g_new0(Portfolio, 1);
    portfolio->choices =
        g_ptr_array_new_with_free_func((GDestroyNotify)portfolio_choice_free);
    portfolio->notes = g_ptr_array_new_with_free_func(g_free);
    const double known_s = how->known_s > 0 ? how->known_s : INFINITY;
    g_autoptr(GPtrArray) others =
        g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
    PortfolioRun run = {.portfolio = portfolio,
                        .how = how,
                        .options = options,
                        .best_s = known_s,
                        .others = others};
    if (options->budget_s > 0)
        run.deadline_us = start + (gint64)(options->budget_s * G_USEC_PER_SEC);
    const bool prepared = prepare(&run, model, cluster, error);
    run.hasty = prepared && try_is_hasty(&run);
    run.many = prepared && try_is_among_many(&run);
    if (prepared)
        portfolio_search(&run);
    graph_free(run.graph);
    if (!prepared)
        return NULL;
    g_ptr_array_sort(portfolio->choices, by_time);
    if (!((PortfolioChoice *)g_ptr_array_index(portfolio->choices, 0))->report) {
        g_autofree char *words = portfolio_floor_words(&run, cluster);
        if (g_error_matches(run.failure, KILTER_ERROR, KILTER_ERROR_INFEASIBLE) &&
            !strstr(run.failure->message, words))
            kilter_fail(error, KILTER_ERROR_INFEASIBLE, "%s; %s", run.failure->message,
                        words);
        else
            g_propagate_error(error, g_steal_pointer(&run.failure));
        g_clear_error(&run.failure);
        return NULL;
    }
    g_clear_error(&run.failure);
    if (how->flow)
        portfolio_rank_by_flow(&run);
    for (uint32_t i = 0; i < (how->prune ? 1 : portfolio->choices->len); i++) {
        PortfolioChoice *c = g_ptr_array_index(portfolio->choices, i);
        if (!c->report)
            continue;
        plan_make_whole(c->plan, options, c->graph, c->view);
        if (!how->prune) /* of many choices nobody looks at all timelines */
            g_clear_pointer(&c->report->timeline, sim_timeline_free);
    }
    portfolio_add_notes(portfolio);
    portfolio->elapsed_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return g_steal_pointer(&portfolio);
}

Plan *portfolio_take(Portfolio *portfolio, ClusterView **view, SimReport **report)
{
    PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, 0);
    g_assert(choice->plan);
    cluster_view_own(choice->view, g_steal_pointer(&choice->cluster));
    *view = g_steal_pointer(&choice->view);
    *report = g_steal_pointer(&choice->report);
    return g_steal_pointer(&choice->plan);
}
