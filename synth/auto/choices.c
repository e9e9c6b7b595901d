/* Choices of machines of a cluster, and the tries on each. */
#include "synth/auto/tries.h"

#include <math.h>

#include "data/base/free.h"
#include "data/cluster/change.h"

enum {
    MOST_TYPES =
        6, /* all sets of up to this many device types; with more, sets of the fastest ones */
    MOST_CHOICES = 64, /* most choices of numbers of machines */
    MOST_DEVICES =
        1024, /* most single GPUs on which planners of one program for all devices are tried */
};

FREE_DEFINE(portfolio_choice_free, PortfolioChoice, choice,
            free_column((PortfolioTry *)(void *)choice->tries->data, choice->tries->len,
                        reason),
            g_array_unref(choice->tries), free_each(choice->machines, choice->only),
            sim_report_free(choice->report), plan_free(choice->plan),
            graph_free(choice->graph), cluster_view_free(choice->view),
            cluster_free(choice->cluster));

/* Adds the choice of the GPUs in `keep`, which `only` names; both NULL: all of them. Takes
 * `only` over. Adds nothing if the network cannot be built from these machines. */
static void add_choice(Portfolio *portfolio, const Cluster *cluster, const bool *keep,
                       char *only)
{
    g_autoptr(Cluster) part = cluster_copy(cluster, NULL);
    g_autofree char *owned = only;
    g_assert(part); /* it was written by the cluster itself */
    if (keep && !cluster_keep_gpus(part, keep, NULL))
        return;
    PortfolioChoice *choice = g_new0(PortfolioChoice, 1);
    choice->tries = g_array_new(FALSE, TRUE, sizeof(PortfolioTry));
    choice->only = g_steal_pointer(&owned);
    choice->machines = cluster_kinds_text(part);
    choice->gpus = cluster_gpus(part);
    choice->start_s = INFINITY;
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
        const uint32_t n =
            sum_over(uint32_t, i, cluster->n_machines, cluster->machine[i].type == t);
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

void portfolio_list_choices(Portfolio *portfolio, const Cluster *cluster,
                            const PortfolioOptions *how)
{
    add_choice(portfolio, cluster, NULL, NULL);
    if (how->some && add_some(portfolio, cluster))
        return;
    add_types(portfolio, cluster);
    add_machines(portfolio, cluster, how->numbers);
}

/* --- tries --- */

static bool choice_is_tried(const Planner *planner, Granularity granularity,
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
void portfolio_list_tries(const PortfolioRun *run, PortfolioChoice *choice)
{
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    for (uint32_t p = 0; p < n; p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            PortfolioTry attempt = {.planner = &maker[p],
                                    .granularity = g,
                                    .set = "",
                                    .iteration_s = INFINITY};
            /* frameworks run strategies of single GPUs, DDP also replicas of any shares */
            if (!choice_is_tried(attempt.planner, g, choice->cluster) ||
                (run->options->target != TARGET_ANY &&
                 !planner_can(attempt.planner, PLANNER_GPUS) &&
                 (run->options->target != TARGET_DDP ||
                  !planner_can(attempt.planner, PLANNER_ZERO))))
                continue;
            for (uint32_t row = 0; attempt.set;) {
                g_array_append_val(choice->tries, attempt);
                attempt.set =
                    technique_next(attempt.planner, run->has, run->options, &row);
            }
        }
    const PortfolioTry neighbours = {
        .planner = planner_find("manual", NULL),
        .granularity = GRANULARITY_GPU,
        .set = "",
        .iteration_s = INFINITY,
        .reason = g_strdup("not tried: no neighbour of the fastest strategy is faster"),
        .left_out = true};
    g_array_append_val(choice->tries, neighbours);
}
