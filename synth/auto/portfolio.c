/* Every planner on every choice of machines. */
#include "data/base/units.h"
#include "data/models/model.h"
#include "data/plan/fidelity.h"
#include "synth/auto/portfolio_try.h"
#include "synth/auto/technique.h"

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
    g_ptr_array_unref(portfolio->notes);
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
static void add_kept(Portfolio *portfolio, const Cluster *cluster, const bool *keep)
{
    g_autofree bool *gpus = g_new(bool, cluster_gpus(cluster));
    GString *only = g_string_new("");
    for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++) {
        for (uint32_t g = 0; g < cluster->machine[i].gpus; g++)
            gpus[gpu++] = keep[i];
        if (keep[i])
            g_string_append_printf(only, "%s%s", only->len ? "," : "",
                                   cluster->machine[i].name);
    }
    add_choice(portfolio, cluster, gpus, g_string_free(only, FALSE));
}

/* Of each type that has several machines the first one; numbers: also half of them, a quarter, and
 * so on. */
static void add_machines(Portfolio *portfolio, const Cluster *cluster, bool numbers)
{
    g_autofree bool *keep = g_new(bool, cluster->n_machines);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            n += cluster->machine[i].type == t;
        for (uint32_t most = numbers ? n / 2 : MIN(n / 2, 1); most > 0; most /= 2) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < cluster->n_machines; i++) {
                keep[i] = cluster->machine[i].type == t && kept < most;
                kept += keep[i];
            }
            add_kept(portfolio, cluster, keep);
        }
    }
}

/* Numbers of machines of each kind: planning sees no difference between machines of a kind. */
static void add_counts(Portfolio *portfolio, const Cluster *cluster,
                       const DeviceKinds *kinds, const uint32_t *count)
{
    g_autofree bool *keep = g_new0(bool, cluster->n_machines);
    g_autofree uint32_t *left = g_memdup2(count, kinds->n * sizeof *count);
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        keep[i] = left[kinds->of[i]] > 0;
        left[kinds->of[i]] -= keep[i];
    }
    add_kept(portfolio, cluster, keep);
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

/* Each planner as it is, then with each set of techniques. */
static void list_tries(const PortfolioRun *run, PortfolioChoice *choice)
{
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    for (uint32_t p = 0; p < n; p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            PortfolioTry attempt = {.planner = &maker[p],
                                    .granularity = g,
                                    .set = "",
                                    .iteration_s = INFINITY};
            if (!is_tried(attempt.planner, g, choice->cluster))
                continue;
            for (uint32_t row = 0; attempt.set;) {
                g_array_append_val(choice->tries, attempt);
                attempt.set =
                    technique_next(attempt.planner, run->attends, run->options, &row);
            }
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

static void list_choices(Portfolio *portfolio, const Cluster *cluster,
                         const PortfolioOptions *how)
{
    add_choice(portfolio, cluster, NULL, NULL);
    if (how->some && add_some(portfolio, cluster))
        return;
    add_types(portfolio, cluster);
    add_machines(portfolio, cluster, how->numbers);
}

static bool prepare(PortfolioRun *run, const char *model, const Cluster *cluster,
                    GError **error)
{
    Portfolio *portfolio = run->portfolio;
    run->graph = model_build(model, cluster_gpus(cluster), &portfolio->model, error);
    if (!run->graph)
        return false;
    run->floor = sim_memory_floor(run->graph);
    run->attends = technique_has_attention(run->graph);
    list_choices(portfolio, cluster, run->how);
    for (uint32_t i = 0; i < portfolio->choices->len; i++) {
        PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, i);
        g_autoptr(ClusterView) view =
            cluster_view(choice->cluster, granularity_default(choice->cluster));
        choice->bound_s = sim_compute_bound_s(run->graph, view);
        if (!choice->only)
            portfolio->bound_s = choice->bound_s;
        list_tries(run, choice);
    }
    g_ptr_array_sort(portfolio->choices, by_bound);
    return true;
}

/* --- the order by flow --- */

/* Choices whose plans are compared again: the first ones, whose times by the planners' fidelity
 * are near the best. In flow messages share links, and steps overlap. */
enum { MOST_FLOWS = 6, MOST_INSTRUCTIONS = 400000 };

/* Seconds of the choice's plan by flow, with the prices of ops that were asked for; INFINITY: not
 * to be had. */
static double portfolio_flow_s(const PortfolioChoice *choice, const SimOptions *asked)
{
    SimOptions options;
    sim_options_init(&options);
    options.costs = asked->costs;
    options.time_only = true;
    g_autoptr(SimReport) report =
        choice->plan->program->n > MOST_INSTRUCTIONS
            ? NULL
            : sim_evaluate_with(choice->plan, choice->graph, choice->view,
                                fidelity_name(FIDELITY_FLOW), &options, NULL);
    return report ? report->iteration_time_s : INFINITY;
}

static gint portfolio_by_flow(gconstpointer a, gconstpointer b)
{
    const PortfolioChoice *x = *(PortfolioChoice *const *)a;
    const PortfolioChoice *y = *(PortfolioChoice *const *)b;
    return (x->flow_s > y->flow_s) - (x->flow_s < y->flow_s);
}

/* Says that another choice came first by the planners' fidelity. */
static char *portfolio_flow_words(const PortfolioChoice *first,
                                  const PortfolioChoice *before)
{
    g_autofree char *now = units_format(first->flow_s, QUANTITY_TIME),
                    *then = units_format(before->flow_s, QUANTITY_TIME),
                    *own = units_format(first->report->iteration_time_s, QUANTITY_TIME),
                    *other =
                        units_format(before->report->iteration_time_s, QUANTITY_TIME);
    return g_strdup_printf(
        "ranks change by flow, in which messages share links: %s takes %s and %s %s, "
        "against %s and %s by %s",
        first->machines, now, before->machines, then, own, other,
        before->report->fidelity);
}

/* Puts the fastest choices in order by flow, if the first one is then clearly faster than the one
 * that was first, of which the time must be known. */
static void portfolio_rank_by_flow(Portfolio *portfolio, const SimOptions *asked)
{
    static const double near = 1.5, clearly = 0.99;
    PortfolioChoice **choice = (PortfolioChoice **)(void *)portfolio->choices->pdata;
    PortfolioChoice *const before = choice[0];
    uint32_t n = 0;
    while (n < MIN(portfolio->choices->len, MOST_FLOWS) && choice[n]->report &&
           choice[n]->report->iteration_time_s <= near * before->report->iteration_time_s)
        n++;
    before->flow_s = n > 1 ? portfolio_flow_s(before, asked) : INFINITY;
    bool changes = false;
    for (uint32_t i = 1; isfinite(before->flow_s) && i < n; i++) {
        choice[i]->flow_s = portfolio_flow_s(choice[i], asked);
        changes |= choice[i]->flow_s < clearly * before->flow_s;
    }
    if (!changes)
        return;
    qsort(choice, n, sizeof *choice, portfolio_by_flow);
    g_ptr_array_add(portfolio->notes, portfolio_flow_words(choice[0], before));
}

/* Says what was searched, and what techniques bring. */
static void portfolio_add_notes(Portfolio *portfolio)
{
    uint32_t plans = 0, tries = 0;
    for (uint32_t c = 0; c < portfolio->choices->len; c++) {
        const PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, c);
        for (uint32_t i = 0; i < choice->tries->len; i++) {
            const PortfolioTry *t = &g_array_index(choice->tries, PortfolioTry, i);
            plans += isfinite(t->iteration_s);
            tries += !t->left_out;
        }
    }
    g_ptr_array_insert(
        portfolio->notes, 0,
        g_strdup_printf(
            "%u searches by planners and techniques on %u choices of machines "
            "gave %u plans",
            tries, portfolio->choices->len, plans));
    char *words = technique_words(g_ptr_array_index(portfolio->choices, 0));
    if (words)
        g_ptr_array_add(portfolio->notes, words);
}

Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error)
{
    const gint64 start = g_get_monotonic_time();
    g_autoptr(Portfolio) portfolio = g_new0(Portfolio, 1);
    portfolio->choices = g_ptr_array_new_with_free_func(choice_free);
    portfolio->notes = g_ptr_array_new_with_free_func(g_free);
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
    if (how->flow)
        portfolio_rank_by_flow(portfolio, &options->sim);
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
