/* Every planner on every choice of machines. */
#include "experiments/planners/portfolio.h"

#include <math.h>
#include <string.h>

enum {
    MOST_TYPES =
        6, /* all sets of device types up to here; beyond, sets of the fastest ones */
    MOST_DEVICES =
        1024, /* single GPUs that planners of one program for all are tried on */
};

/* --- choices of machines --- */

static void choice_free(gpointer data)
{
    PortfolioChoice *choice = data;
    for (uint32_t i = 0; i < choice->tries->len; i++)
        g_free(g_array_index(choice->tries, PortfolioTry, i).reason);
    g_array_unref(choice->tries);
    g_free(choice->machines);
    g_free(choice->only);
    sim_report_free(choice->report);
    plan_free(choice->plan);
    graph_free(choice->graph);
    cluster_view_free(choice->view);
    cluster_free(choice->cluster);
    g_free(choice);
}

void portfolio_free(Portfolio *portfolio)
{
    if (!portfolio)
        return;
    g_free(portfolio->model);
    g_ptr_array_unref(portfolio->choices);
    g_free(portfolio);
}

static Cluster *copy(const Cluster *cluster, GError **error)
{
    g_autofree char *text = cluster_write(cluster);
    return cluster_parse(cluster->name, text, strlen(text), error);
}

static char *describe(const Cluster *cluster)
{
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t gpus = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            gpus += cluster->machine[i].type == t ? cluster->machine[i].gpus : 0;
        if (gpus > 0)
            g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", gpus,
                                   cluster->type[t].name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The machines that `only` names; NULL: all of them. Takes `only` over. */
static bool add_choice(Portfolio *portfolio, const Cluster *cluster, char *only,
                       GError **error)
{
    PortfolioChoice *choice = g_new0(PortfolioChoice, 1);
    choice->tries = g_array_new(FALSE, TRUE, sizeof(PortfolioTry));
    choice->only = only;
    g_ptr_array_add(portfolio->choices, choice);
    choice->cluster = copy(cluster, error);
    if (!choice->cluster ||
        (only && !cluster_change(choice->cluster, CHANGE_ONLY, only, error)))
        return false;
    choice->machines = describe(choice->cluster);
    choice->gpus = cluster_gpus(choice->cluster);
    return true;
}

static char *types_of(const Cluster *cluster, uint32_t set)
{
    g_autoptr(GString) names = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++)
        if (set & 1u << t)
            g_string_append_printf(names, "%s%s", names->len ? "," : "",
                                   cluster->type[t].name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

/* All sets of device types but the empty one and all of them. */
static bool add_types(Portfolio *portfolio, const Cluster *cluster, GError **error)
{
    const uint32_t n = MIN(cluster->n_types, MOST_TYPES);
    const uint32_t end = (1u << n) - (n == cluster->n_types);
    for (uint32_t set = 1; set < end; set++)
        if (!add_choice(portfolio, cluster, types_of(cluster, set), error))
            return false;
    return true;
}

/* The first machine of each type that has several. */
static bool add_machines(Portfolio *portfolio, const Cluster *cluster, GError **error)
{
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t n = 0, first = 0;
        for (uint32_t i = cluster->n_machines; i-- > 0;)
            if (cluster->machine[i].type == t) {
                first = i;
                n++;
            }
        if (n > 1 && !add_choice(portfolio, cluster,
                                 g_strdup(cluster->machine[first].name), error))
            return false;
    }
    return true;
}

/* --- tries --- */

static bool is_tried(const Planner *planner, Granularity granularity,
                     const Cluster *cluster)
{
    const bool gpus = granularity == GRANULARITY_GPU;
    bool same = true; /* a machine is a GPU */
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        same &= cluster->machine[i].gpus == 1;
    if (!planner_can(planner, PLANNER_TRIED))
        return false;
    if (planner_can(planner, PLANNER_GPUS))
        return gpus;
    return !gpus || (!same && cluster_gpus(cluster) <= MOST_DEVICES);
}

static void take(PortfolioChoice *choice, ClusterView *view, Planning *planning,
                 Plan *plan, SimReport *report)
{
    sim_report_free(choice->report);
    plan_free(choice->plan);
    graph_free(choice->graph);
    cluster_view_free(choice->view);
    choice->view = view;
    choice->graph = planning_take_graph(planning);
    choice->plan = plan;
    choice->report = report;
}

/* Plans once; the choice keeps the plan if it is the fastest one. */
static void try(PortfolioChoice *choice, const char *model, const PlannerOptions *options,
                PortfolioTry *attempt, GError **error)
{
    g_autoptr(ClusterView) view = cluster_view(choice->cluster, attempt->granularity);
    g_autoptr(Planning) planning =
        planning_open(attempt->planner, model, view, options, error);
    g_autoptr(SimReport) report = NULL;
    g_autoptr(Plan) plan =
        planning ? planning_plan(planning, choice->cluster->name, &report, error) : NULL;
    if (!plan)
        return;
    if (!report->feasible) {
        g_autofree char *missing =
            units_format((double)report->missing_bytes, QUANTITY_BYTES);
        kilter_fail(error, KILTER_ERROR_INFEASIBLE, "does not fit: device %s lacks %s",
                    view->device[report->worst_device].name, missing);
        return;
    }
    attempt->iteration_s = report->iteration_time_s;
    if (!choice->report || report->iteration_time_s < choice->report->iteration_time_s)
        take(choice, g_steal_pointer(&view), planning, g_steal_pointer(&plan),
             g_steal_pointer(&report));
}

typedef struct {
    Portfolio *portfolio;
    const PortfolioOptions *how;
    const PlannerOptions *options;
    uint32_t done, total;
    double best_s;
    GError *first; /* why the first try failed */
} Run;

static void run_try(Run *run, PortfolioChoice *choice, PortfolioTry *attempt)
{
    g_autoptr(GError) error = NULL;
    if (run->how->progress) {
        g_autofree char *what =
            g_strdup_printf("%s on %s", attempt->planner->name, choice->machines);
        run->how->progress(run->how->context, run->done, run->total, what);
    }
    run->done++;
    attempt->iteration_s = INFINITY;
    try(choice, run->portfolio->model, run->options, attempt, &error);
    run->best_s = fmin(run->best_s, attempt->iteration_s);
    if (!error)
        return;
    attempt->reason = g_strdup(error->message);
    if (!run->first)
        run->first = g_steal_pointer(&error);
}

static void find_best(PortfolioChoice *choice)
{
    for (uint32_t i = 0; choice->report && i < choice->tries->len; i++) {
        const PortfolioTry *attempt = &g_array_index(choice->tries, PortfolioTry, i);
        if (!choice->best && attempt->iteration_s == choice->report->iteration_time_s)
            choice->best = attempt;
    }
}

static void run_choice(Run *run, PortfolioChoice *choice)
{
    if (run->how->prune && choice->bound_s >= run->best_s) {
        choice->skipped = true;
        run->done += choice->tries->len;
        return;
    }
    for (uint32_t i = 0; i < choice->tries->len; i++)
        run_try(run, choice, &g_array_index(choice->tries, PortfolioTry, i));
    find_best(choice);
}

/* --- the whole --- */

static void list_tries(Run *run, PortfolioChoice *choice)
{
    for (uint32_t p = 0; p < planner_count(); p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            const PortfolioTry attempt = {.planner = planner_at(p), .granularity = g};
            if (is_tried(attempt.planner, g, choice->cluster))
                g_array_append_val(choice->tries, attempt);
        }
    run->total += choice->tries->len;
}

/* By what is possible; the whole cluster comes first where nothing is known. */
static gint by_bound(gconstpointer a, gconstpointer b)
{
    const PortfolioChoice *x = *(PortfolioChoice *const *)a;
    const PortfolioChoice *y = *(PortfolioChoice *const *)b;
    return (x->bound_s > y->bound_s) - (x->bound_s < y->bound_s);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const PortfolioChoice *x = *(PortfolioChoice *const *)a;
    const PortfolioChoice *y = *(PortfolioChoice *const *)b;
    const double s = x->report ? x->report->iteration_time_s : INFINITY;
    const double t = y->report ? y->report->iteration_time_s : INFINITY;
    return s != t ? (s > t) - (s < t) : by_bound(a, b);
}

static bool prepare(Run *run, const char *model, const Cluster *cluster, GError **error)
{
    Portfolio *portfolio = run->portfolio;
    g_autoptr(Graph) graph =
        model_build(model, cluster_gpus(cluster), &portfolio->model, error);
    if (!graph || !add_choice(portfolio, cluster, NULL, error) ||
        !add_types(portfolio, cluster, error) || !add_machines(portfolio, cluster, error))
        return false;
    for (uint32_t i = 0; i < portfolio->choices->len; i++) {
        PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, i);
        g_autoptr(ClusterView) view = cluster_view(choice->cluster, GRANULARITY_MACHINE);
        choice->bound_s = sim_compute_bound_s(graph, view);
        list_tries(run, choice);
    }
    g_ptr_array_sort(portfolio->choices, by_bound);
    return true;
}

Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error)
{
    const gint64 start = g_get_monotonic_time();
    g_autoptr(Portfolio) portfolio = g_new0(Portfolio, 1);
    portfolio->choices = g_ptr_array_new_with_free_func(choice_free);
    PlannerOptions limited = *options;
    if (limited.budget_s == 0)
        limited.budget_s = how->limit_s;
    Run run = {portfolio, how, &limited, .best_s = INFINITY};
    if (!prepare(&run, model, cluster, error))
        return NULL;
    for (uint32_t i = 0; i < portfolio->choices->len; i++)
        run_choice(&run, g_ptr_array_index(portfolio->choices, i));
    if (!isfinite(run.best_s)) {
        g_propagate_error(error, run.first);
        return NULL;
    }
    g_clear_error(&run.first);
    g_ptr_array_sort(portfolio->choices, by_time);
    portfolio->elapsed_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return g_steal_pointer(&portfolio);
}
