/* Every planner on every choice of machines. */
#include "data/models/model.h"
#include "synth/auto/portfolio_try.h"

#include <math.h>
#include <string.h>

enum {
    MOST_TYPES =
        6, /* all sets of up to this many device types; with more, sets of the fastest ones */
    MOST_CHOICES = 64, /* most choices of numbers of machines */
    MOST_DEVICES =
        1024, /* most single GPUs on which planners of one program for all devices are tried */
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

static char *describe(const Cluster *cluster)
{
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t gpus = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            gpus += machine_gpus_of(&cluster->machine[i], t);
        if (gpus > 0)
            g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", gpus,
                                   cluster->type[t].name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Adds the choice of the GPUs in `keep`, which `only` names; both NULL: all of them. Takes
 * `only` over. Adds nothing if the network cannot be built from these machines. */
static void add_choice(Portfolio *portfolio, const Cluster *cluster, const bool *keep,
                       char *only)
{
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(Cluster) part = cluster_parse(cluster->name, text, strlen(text), NULL);
    g_autofree char *owned = only;
    g_assert(part); /* it was written by the cluster itself */
    if (keep && !cluster_keep_gpus(part, keep, NULL))
        return;
    PortfolioChoice *choice = g_new0(PortfolioChoice, 1);
    choice->tries = g_array_new(FALSE, TRUE, sizeof(PortfolioTry));
    choice->only = g_steal_pointer(&owned);
    choice->machines = describe(part);
    choice->gpus = cluster_gpus(part);
    choice->cluster = g_steal_pointer(&part);
    g_ptr_array_add(portfolio->choices, choice);
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

/* All sets of device types but the empty and the full set. */
static void add_types(Portfolio *portfolio, const Cluster *cluster)
{
    const uint32_t n = MIN(cluster->n_types, MOST_TYPES);
    const uint32_t end = (1u << n) - (n == cluster->n_types);
    g_autofree bool *keep = g_new(bool, cluster_gpus(cluster));
    for (uint32_t set = 1; set < end; set++) {
        for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++)
            for (uint32_t g = 0; g < cluster->machine[i].gpus; g++) {
                const uint32_t type = machine_type_at(&cluster->machine[i], g);
                keep[gpu++] = type < n && set & 1u << type;
            }
        add_choice(portfolio, cluster, keep, types_of(cluster, set));
    }
}

/* Adds the choice of some machines, as keep[machine] says. */
static void add_kept(Portfolio *portfolio, const Cluster *cluster, const bool *keep,
                     char *only)
{
    g_autofree bool *gpus = g_new(bool, cluster_gpus(cluster));
    for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++)
        for (uint32_t g = 0; g < cluster->machine[i].gpus; g++)
            gpus[gpu++] = keep[i];
    add_choice(portfolio, cluster, gpus, only);
}

/* The first machine of each type that has several. */
static void add_machines(Portfolio *portfolio, const Cluster *cluster)
{
    g_autofree bool *keep = g_new(bool, cluster->n_machines);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t n = 0, first = 0;
        for (uint32_t i = cluster->n_machines; i-- > 0;)
            if (cluster->machine[i].type == t) {
                first = i;
                n++;
            }
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            keep[i] = i == first;
        if (n > 1)
            add_kept(portfolio, cluster, keep, g_strdup(cluster->machine[first].name));
    }
}

/* Numbers of machines of each kind: planning sees no difference between machines of a kind. */
static void add_counts(Portfolio *portfolio, const Cluster *cluster,
                       const DeviceKinds *kinds, const uint32_t *count)
{
    g_autofree bool *keep = g_new0(bool, cluster->n_machines);
    g_autofree uint32_t *left = g_memdup2(count, kinds->n * sizeof *count);
    g_autoptr(GString) names = g_string_new("");
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        keep[i] = left[kinds->of[i]] > 0;
        left[kinds->of[i]] -= keep[i];
        if (keep[i])
            g_string_append_printf(names, "%s%s", names->len ? "," : "",
                                   cluster->machine[i].name);
    }
    add_kept(portfolio, cluster, keep, g_strdup(names->str));
}

/* Adds every combination of numbers of machines of each kind, except none and all, if there are not
 * too many. */
static bool add_some(Portfolio *portfolio, const Cluster *cluster)
{
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(view, UINT32_MAX, &kinds);
    const uint32_t *most = kinds.count;
    g_autofree uint32_t *count = g_new0(uint32_t, kinds.n);
    uint64_t n = 1;
    for (uint32_t k = 0; k < kinds.n && n <= MOST_CHOICES; k++)
        n *= most[k] + 1;
    if (n > MOST_CHOICES)
        return false;
    for (uint64_t c = 1; c + 1 < n; c++) {
        uint64_t rest = c;
        for (uint32_t k = 0; k < kinds.n; k++) {
            count[k] = (uint32_t)(rest % (most[k] + 1));
            rest /= most[k] + 1;
        }
        add_counts(portfolio, cluster, &kinds, count);
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
    if (cluster_mixed(cluster))
        return gpus && cluster_gpus(cluster) <= MOST_DEVICES;
    return !gpus || (!same && cluster_gpus(cluster) <= MOST_DEVICES);
}

static void list_tries(PortfolioChoice *choice)
{
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    for (uint32_t p = 0; p < n; p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            const PortfolioTry attempt = {
                .planner = &maker[p], .granularity = g, .iteration_s = INFINITY};
            if (is_tried(attempt.planner, g, choice->cluster))
                g_array_append_val(choice->tries, attempt);
        }
}

/* --- the whole --- */

/* Orders choices by their bounds; the whole cluster comes first where no bound is known. */
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
    if (s != t)
        return (s > t) - (s < t);
    return x->gpus != y->gpus && isfinite(s) ? (x->gpus > y->gpus) - (x->gpus < y->gpus)
                                             : by_bound(a, b);
}

static void list_choices(Portfolio *portfolio, const Cluster *cluster, bool some)
{
    add_choice(portfolio, cluster, NULL, NULL);
    if (some && add_some(portfolio, cluster))
        return;
    add_types(portfolio, cluster);
    add_machines(portfolio, cluster);
}

static bool prepare(PortfolioRun *run, const char *model, const Cluster *cluster,
                    GError **error)
{
    Portfolio *portfolio = run->portfolio;
    run->graph = model_build(model, cluster_gpus(cluster), &portfolio->model, error);
    if (!run->graph)
        return false;
    run->floor = sim_memory_floor(run->graph);
    list_choices(portfolio, cluster, run->how->some);
    for (uint32_t i = 0; i < portfolio->choices->len; i++) {
        PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, i);
        g_autoptr(ClusterView) view =
            cluster_view(choice->cluster, granularity_default(choice->cluster));
        choice->bound_s = sim_compute_bound_s(run->graph, view);
        if (!choice->only)
            portfolio->bound_s = choice->bound_s;
        list_tries(choice);
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
    PortfolioRun run = {
        .portfolio = portfolio, .how = how, .options = options, .best_s = INFINITY};
    if (options->budget_s > 0)
        run.deadline_us = start + (gint64)(options->budget_s * G_USEC_PER_SEC);
    const bool prepared = prepare(&run, model, cluster, error);
    if (prepared)
        portfolio_run(&run);
    graph_free(run.graph);
    if (!prepared)
        return NULL;
    if (!isfinite(run.best_s)) {
        g_propagate_error(error, run.failure);
        return NULL;
    }
    g_clear_error(&run.failure);
    g_ptr_array_sort(portfolio->choices, by_time);
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
