/* A cluster with costs fitted to the trials on it. */
#include "experiments/calibration/trial_cluster.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "data/cluster/change.h"
#include "experiments/calibration/prediction.h"

static Trial *trial_at(const GArray *list, uint32_t i)
{
    return &g_array_index(list, Trial, i);
}

CLEAR_DEFINE(trial_cluster_clear, TrialCluster, fitted, cluster_free(fitted->cluster),
             cluster_free(fitted->from), g_free(fitted->start),
             trial_fit_clear(&fitted->fit), let_go(fitted->measured, g_array_unref),
             g_free(fitted->runtime), *fitted = (TrialCluster){0});

/* --- plans --- */

typedef struct {
    const GArray *list;
    TrialPlan *plan;     /* [list] */
    TrialDetail *detail; /* [list] */
    uint32_t *first;     /* [list] the first trial that is predicted alike */
    const FittedCosts *costs;
} Work;

static bool is_used(const Trial *trial)
{
    return trial_is_measured(trial) || trial->failed;
}

uint32_t trial_list_alike(const GArray *list, uint32_t *first)
{
    g_autoptr(GHashTable) seen = text_table(NULL);
    for (uint32_t i = 0; i < list->len; i++) {
        const Trial *trial = trial_at(list, i);
        gpointer known;
        first[i] = i;
        if (!is_used(trial))
            continue;
        g_autofree char *cluster = cluster_write(trial->cluster),
                        *asked = g_strdup_printf(
                            "%s\n%s\n%s\n%s\n%d %d\n%s", trial->model, trial->planner,
                            trial->options, trial->fidelity ? trial->fidelity : "",
                            trial->waits, trial->steady, cluster);
        if (g_hash_table_lookup_extended(seen, asked, NULL, &known))
            first[i] = GPOINTER_TO_UINT(known);
        else
            g_hash_table_insert(seen, g_steal_pointer(&asked), GUINT_TO_POINTER(i));
    }
    return g_hash_table_size(seen);
}

static bool trial_make_one(void *data, uint32_t i, GError **error)
{
    const Work *work = data;
    Trial *trial = trial_at(work->list, i);
    if (work->first[i] != i || !is_used(trial))
        return true;
    if (!trial_plan_make(trial, NULL, &work->plan[i], error))
        return kilter_prefix(error, "%s: ", trial->name);
    return true;
}

/* Hands the plans to the trials that are predicted alike, as repeated measurements are. */
static void share(const Work *work)
{
    items_at (TrialPlan, plan, i, work->plan, work->list->len) {
        if (work->first[i] != i) {
            *plan = work->plan[work->first[i]];
            plan->trial = trial_at(work->list, i);
            plan->shared = true;
        }
        if (plan->plan)
            trial_at(work->list, i)->measured_s = trial_plan_measured_s(plan);
    }
}

static bool trial_predict_one(void *data, uint32_t i, GError **error)
{
    const Work *work = data;
    double time_s;
    if (!work->plan[i].plan || work->first[i] != i)
        return true;
    g_autofree double *log = fitted_costs_at(work->costs, trial_at(work->list, i));
    return trial_plan_predict(&work->plan[i], log, &time_s, &work->detail[i], error);
}

/* Fits to the measured trials, whose plans are moved next to one another. */
static bool fit_measured(const Work *work, TrialCluster *fitted, uint32_t threads,
                         GError **error)
{
    const TrialFitOptions how = {.threads = threads, .hold_out = true};
    g_autofree TrialPlan *plan = g_new(TrialPlan, work->list->len + 1);
    fitted->measured = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < work->list->len; i++)
        if (work->plan[i].plan && isfinite(trial_at(work->list, i)->measured_s)) {
            plan[fitted->measured->len] = work->plan[i];
            g_array_append_val(fitted->measured, i);
        }
    return trial_fit(plan, fitted->measured->len, &how, &fitted->fit, error);
}

/* --- memory --- */

/* By the trials whose peak was measured, on that device type only. */
static RuntimeMemory runtime_of(const char *type, const Work *work)
{
    g_autofree double *more = g_new(double, work->list->len + 1);
    RuntimeMemory runtime = {.type = type};
    for (uint32_t i = 0; i < work->list->len; i++) {
        const Trial *trial = trial_at(work->list, i);
        if (work->plan[i].plan && isfinite(trial->measured_bytes) &&
            trial->cluster->n_types == 1 &&
            strcmp(trial->cluster->type[0].name, type) == 0)
            more[runtime.n++] = trial->measured_bytes - work->detail[i].peak_bytes;
    }
    if (runtime.n > 0)
        runtime.bytes = fmax(0, gsl_stats_median(more, 1, runtime.n));
    return runtime;
}

static double runtime_bytes(const TrialCluster *fitted, const Trial *trial)
{
    double most = 0;
    for (uint32_t t = 0; t < fitted->base->n_types; t++)
        for (uint32_t k = 0; k < trial->cluster->n_types; k++)
            if (strcmp(fitted->runtime[t].type, trial->cluster->type[k].name) == 0)
                most = fmax(most, fitted->runtime[t].bytes);
    return most;
}

static void judge_all_memory(const Work *work, TrialCluster *fitted)
{
    g_auto(Pairs) peaks = {0};
    for (uint32_t i = 0; i < work->list->len; i++) {
        const Trial *trial = trial_at(work->list, i);
        if (!work->plan[i].plan)
            continue;
        const double bytes = work->detail[i].peak_bytes + runtime_bytes(fitted, trial);
        trial_judge_memory(trial, bytes, &fitted->memory);
        pairs_add(&peaks, bytes, trial->measured_bytes);
    }
    fitted->peaks = statistics_of_pairs(&peaks);
}

/* The errors of the measured trials by fits without their groups, and the range of these trials. */
static Fitted *fitted_to(const Work *work, const TrialCluster *fitted)
{
    g_autofree TrialPlan *plan = g_new(TrialPlan, fitted->measured->len + 1);
    for (uint32_t k = 0; k < fitted->measured->len; k++)
        plan[k] = work->plan[g_array_index(fitted->measured, uint32_t, k)];
    return prediction_record(plan, fitted->fit.held_out_s, fitted->measured->len);
}

/* --- the cluster --- */

/* A trial on the whole cluster, with the cluster's costs. */
static Trial whole(const TrialCluster *fitted)
{
    return (Trial){.cluster = fitted->from, .start = fitted->start};
}

static void describe(DeviceType *type, const RuntimeMemory *runtime, uint32_t trials)
{
    put_block(type->source, g_strdup_printf("fitted by kilter fit to %u trials", trials));
    if (runtime->n > 0)
        type->runtime_bytes = (uint64_t)runtime->bytes;
}

static bool make_cluster(TrialCluster *fitted, GError **error)
{
    const Trial all = whole(fitted);
    fitted->cluster = cluster_copy(fitted->base, error);
    if (!fitted->cluster)
        return false;
    g_autofree double *log = fitted_costs_at(&fitted->fit.costs, &all);
    costs_apply(fitted->from, fitted->start, log, fitted->cluster);
    for (uint32_t t = 0; t < fitted->cluster->n_types; t++)
        describe(&fitted->cluster->type[t], &fitted->runtime[t], fitted->fit.n);
    g_free(fitted->cluster->collective_source);
    fitted->cluster->collective_source =
        g_strdup_printf("fitted by kilter fit to %u trials", fitted->fit.n);
    return true;
}

static bool start_from(const Cluster *base, TrialCluster *fitted, GError **error)
{
    g_autoptr(Sheets) sheets = sheets_load(error);
    fitted->base = base;
    fitted->from = sheets ? cluster_copy(base, error) : NULL;
    if (!fitted->from)
        return false;
    fitted->start = g_new(TypeStart, base->n_types);
    for (uint32_t t = 0; t < base->n_types; t++)
        fitted->start[t] = type_start(sheets, &fitted->from->type[t]);
    return true;
}

static bool fit_all(Work *work, uint32_t threads, TrialCluster *fitted, GError **error)
{
    if (!parallel_each(work->list->len, threads, trial_make_one, work, error))
        return false;
    share(work);
    if (!fit_measured(work, fitted, threads, error))
        return false;
    work->costs = &fitted->fit.costs;
    if (!parallel_each(work->list->len, threads, trial_predict_one, work, error))
        return false;
    for (uint32_t i = 0; i < work->list->len; i++)
        work->detail[i] = work->detail[work->first[i]];
    fitted->runtime = g_new(RuntimeMemory, fitted->base->n_types);
    for (uint32_t t = 0; t < fitted->base->n_types; t++)
        fitted->runtime[t] = runtime_of(fitted->base->type[t].name, work);
    judge_all_memory(work, fitted);
    if (!make_cluster(fitted, error))
        return false;
    fitted_free(fitted->cluster->fitted);
    fitted->cluster->fitted = fitted_to(work, fitted);
    return true;
}

static bool any_measured(const GArray *list)
{
    return any_of(i, list->len, trial_is_measured(trial_at(list, i)));
}

bool trial_cluster_fit(const Cluster *base, GArray *list, uint32_t threads,
                       TrialCluster *fitted, GError **error)
{
    *fitted = (TrialCluster){0};
    if (!any_measured(list))
        return refuse(error, "no trial was measured: expected seconds, tokens_per_s, "
                             "tokens_per_s_per_gpu or samples_per_s in some line");
    if (!start_from(base, fitted, error))
        return false;
    g_autofree TrialPlan *plan = g_new0(TrialPlan, list->len + 1);
    g_autofree TrialDetail *detail = g_new0(TrialDetail, list->len + 1);
    g_autofree uint32_t *first = g_new(uint32_t, list->len + 1);
    (void)trial_list_alike(list, first);
    Work work = {.list = list, .plan = plan, .detail = detail, .first = first};
    const bool good = fit_all(&work, threads, fitted, error);
    clear_items(plan, list->len, trial_plan_clear);
    return good;
}

double trial_cluster_value(const TrialCluster *fitted, Cost cost, const char *key,
                           double log)
{
    const FittedCost *common = fitted_costs_find(&fitted->fit.costs, cost, "");
    for (uint32_t t = 0; t < fitted->from->n_types; t++) {
        const bool own = cost_is_of_network(cost)
                             ? strcmp(key, fitted->from->name) == 0
                             : strcmp(key, fitted->from->type[t].name) == 0;
        if (own)
            return cost_value(fitted->from, fitted->start, t, cost,
                              log + (common ? common->log : 0));
    }
    return NAN;
}
