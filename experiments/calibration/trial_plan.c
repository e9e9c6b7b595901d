/* The plan of a trial. */
#include "experiments/calibration/trial_plan.h"

#include <math.h>
#include <string.h>

#include "data/cluster/change.h"
#include "data/models/model.h"
#include "data/plan/fidelity.h"
#include "experiments/sweep/configuration.h"
#include "synth/answer/complete.h"
#include "synth/synth.h"

/* Whether the planner is manual. Trials take its program and shares and price them once; the
 * planner itself would also check what does not fit. */
static bool is_strategy(const Trial *trial)
{
    return strcmp(trial->planner, "manual") == 0;
}

const char *trial_fidelity(const Trial *trial)
{
    return trial->fidelity
               ? trial->fidelity
               : fidelity_name(is_strategy(trial) ? FIDELITY_STAGE : FIDELITY_DRAWN);
}

void trial_plan_clear(TrialPlan *plan)
{
    if (!plan->shared) {
        plan_free(plan->plan);
        graph_free(plan->graph);
        plan_free(plan->fewer);
        graph_free(plan->fewer_graph);
        cluster_free(plan->cluster);
    }
    *plan = (TrialPlan){0};
}

/* The strategy's program of the model; NULL with an error. *graph: the model's graph, also after an
 * error. */
static Plan *strategy_plan(const char *model, const PlannerOptions *options,
                           const ClusterView *view, Graph **graph, GError **error)
{
    g_auto(StrategyPipelines) pipelines = {0};
    *graph = model_build(model, view->n_devices, NULL, error);
    if (!*graph || !strategy_lay_out_pipelines(&options->strategy, *graph,
                                               view->n_devices, &pipelines, error))
        return NULL;
    Program *program = synth_strategy_pipelines(*graph, view, &pipelines, error);
    if (!program)
        return NULL;
    g_autofree double *ratio =
        synth_strategy_pipeline_ratios(&pipelines, view->n_devices);
    Plan *plan = plan_new();
    plan_set(plan, *graph, view, program, ratio);
    plan->strategy = options->strategy;
    if (!plan_round(plan, *graph, error))
        g_clear_pointer(&plan, plan_free);
    return plan;
}

static const char BATCH[] = "global_batch=";

static uint32_t batch_of(const char *model)
{
    const char *at = strstr(model, BATCH);
    return at ? (uint32_t)g_ascii_strtoull(at + strlen(BATCH), NULL, 10) : 0;
}

/* The model with another global batch. Caller frees. */
static char *with_batch(const char *model, uint32_t batch)
{
    const char *at = strstr(model, BATCH), *number = at + strlen(BATCH);
    return g_strdup_printf("%.*s%s%u%s", (int)(at - model), model, BATCH, batch,
                           number + strspn(number, "0123456789"));
}

/* Chooses a number of microbatches that fills the pipeline twice, as its first turns are not alike
 * where passes overlap, and those of a turn more, if the trial has more. */
static bool find_steady(const Strategy *strategy, uint32_t n_devices, TrialPlan *plan)
{
    enum { LEAST = 4 };
    const uint32_t pp = MAX(strategy->pp, 1), batch = batch_of(plan->trial->model);
    const uint64_t shared = (uint64_t)pp * MAX(strategy->tp, 1) * MAX(strategy->cp, 1);
    const uint64_t at_once = strategy->micro_batch * (n_devices / shared);
    if (!plan->trial->steady || at_once == 0 || batch == 0 || batch % at_once != 0)
        return false;
    plan->n_all = (uint32_t)(batch / at_once);
    const uint32_t turn = pp * ((LEAST + pp - 1) / pp); /* of interleaved stages */
    plan->n_fewer = pp > 1 ? 2 * turn : turn;
    plan->n_most = plan->n_fewer + turn;
    return plan->n_most < plan->n_all;
}

static bool make_strategy(TrialPlan *plan, const PlannerOptions *options,
                          const ClusterView *view, GError **error)
{
    const char *model = plan->trial->model;
    if (!find_steady(&options->strategy, view->n_devices, plan)) {
        plan->plan = strategy_plan(model, options, view, &plan->graph, error);
        return plan->plan != NULL;
    }
    const uint32_t each = batch_of(model) / plan->n_all;
    g_autofree char *most = with_batch(model, each * plan->n_most),
                    *fewer = with_batch(model, each * plan->n_fewer);
    plan->plan = strategy_plan(most, options, view, &plan->graph, error);
    if (plan->plan)
        plan->fewer = strategy_plan(fewer, options, view, &plan->fewer_graph, error);
    return plan->fewer != NULL;
}

bool trial_plan_make(const Trial *trial, const double *log, TrialPlan *plan,
                     GError **error)
{
    *plan = (TrialPlan){.trial = trial, .cluster = cluster_copy(trial->cluster, error)};
    const Planner *planner = plan->cluster ? planner_find(trial->planner, error) : NULL;
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(Spec) spec = spec_read_pairs(trial->options);
    if (!planner || !options_assign(&options, spec, error))
        return false;
    if (trial->start)
        costs_apply(trial->cluster, trial->start, log, plan->cluster);
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    plan->options = options.sim;
    if (is_strategy(trial)) {
        if (trial->waits)
            plan->options.host = SIM_HOST_WAITS;
        return make_strategy(plan, &options, view, error);
    }
    plan->plan = planner_plan(planner, trial->model, plan->cluster->name, view, &options,
                              &plan->graph, error);
    return plan->plan != NULL;
}

static TrialDetail detail_of(const SimReport *report)
{
    TrialDetail detail = {0};
    for (uint32_t j = 0; j < report->n_devices; j++) {
        detail.peak_bytes = fmax(detail.peak_bytes, (double)report->memory_bytes[j]);
        detail.comm_s +=
            (report->comm_busy_s[j] + report->hidden_s[j]) / report->n_devices;
        detail.hidden_s += report->hidden_s[j] / report->n_devices;
    }
    return detail;
}

/* Extrapolates from the time of n_most microbatches to that of all. */
static bool extrapolate(const TrialPlan *plan, const ClusterView *view,
                        const SimOptions *options, double *time_s, GError **error)
{
    SimOptions times = *options;
    times.time_only = true;
    g_autoptr(SimReport) report = sim_evaluate_with(
        plan->fewer, plan->fewer_graph, view, trial_fidelity(plan->trial), &times, error);
    if (!report)
        return false;
    *time_s += (*time_s - report->iteration_time_s) * (plan->n_all - plan->n_most) /
               (plan->n_most - plan->n_fewer);
    return true;
}

bool trial_plan_predict(TrialPlan *plan, const double *log, double *time_s,
                        TrialDetail *detail, GError **error)
{
    SimOptions options = plan->options;
    options.time_only = !detail;
    if (plan->trial->start)
        costs_apply(plan->trial->cluster, plan->trial->start, log, plan->cluster);
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    g_autoptr(SimReport) report = sim_evaluate_with(
        plan->plan, plan->graph, view, trial_fidelity(plan->trial), &options, error);
    if (!report)
        return false;
    *time_s = report->iteration_time_s;
    if (detail)
        *detail = detail_of(report);
    return !plan->fewer || extrapolate(plan, view, &options, time_s, error);
}

double trial_plan_measured_s(const TrialPlan *plan)
{
    const Trial *trial = plan->trial;
    if (!isnan(trial->measured_s) || trial->failed)
        return trial->measured_s;
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    const SimWorkload work = sim_workload(plan->plan, plan->graph, view);
    const double times = plan->fewer ? (double)plan->n_all / plan->n_most : 1;
    return trial->tokens_per_s > 0    ? times * work.tokens / trial->tokens_per_s
           : trial->samples_per_s > 0 ? times * work.samples / trial->samples_per_s
                                      : NAN;
}
