/* The plan of a trial. */
#include "experiments/calibration/trial_plan.h"

#include <math.h>
#include <string.h>

#include "experiments/planners/complete.h"
#include "experiments/sweep/configuration.h"
#include "synth/synth.h"

/* Planner manual. Trials take its program and shares, and price them once, where the planner looks for
 * what does not fit as well. */
static bool is_strategy(const Trial *trial)
{
    return strcmp(trial->planner, "manual") == 0;
}

const char *trial_fidelity(const Trial *trial)
{
    return is_strategy(trial) ? "stage" : "flow";
}

void trial_plan_clear(TrialPlan *plan)
{
    plan_free(plan->plan);
    graph_free(plan->graph);
    cluster_free(plan->cluster);
    *plan = (TrialPlan){0};
}

/* "key=value,key=value"; "" for none. */
static bool set_options(PlannerOptions *options, const char *text, GError **error)
{
    g_autoptr(Spec) spec = spec_read_pairs(text);
    planner_options_init(options);
    return options_assign(options, spec, error);
}

static bool make_strategy(TrialPlan *plan, const PlannerOptions *options,
                          const ClusterView *view, GError **error)
{
    plan->graph = model_build(plan->trial->model, view->n_devices, NULL, error);
    if (!plan->graph)
        return false;
    g_auto(StrategyLayout) layout = {0};
    Program *program =
        strategy_lay_out(&options->strategy, plan->graph, view->n_devices, &layout, error)
            ? synth_strategy_program(plan->graph, view, &layout, error)
            : NULL;
    if (!program)
        return false;
    g_autofree double *ratio = synth_strategy_ratios(&layout);
    plan->plan = plan_new();
    plan_set(plan->plan, plan->graph, view, program, ratio);
    return plan_round(plan->plan, plan->graph, error);
}

static Cluster *copy_of(const Cluster *cluster, GError **error)
{
    g_autofree char *text = cluster_write(cluster);
    return cluster_parse(cluster->name, text, strlen(text), error);
}

bool trial_plan_make(const Trial *trial, const double *log, TrialPlan *plan,
                     GError **error)
{
    *plan = (TrialPlan){.trial = trial, .cluster = copy_of(trial->cluster, error)};
    const Planner *planner = plan->cluster ? planner_find(trial->planner, error) : NULL;
    PlannerOptions options;
    if (!planner || !set_options(&options, trial->options, error))
        return false;
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

bool trial_plan_predict(TrialPlan *plan, const double *log, double *time_s,
                        TrialDetail *detail, GError **error)
{
    SimOptions options = plan->options;
    options.time_only = !detail;
    costs_apply(plan->trial->cluster, plan->trial->start, log, plan->cluster);
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    g_autoptr(SimReport) report = sim_evaluate_with(
        plan->plan, plan->graph, view, trial_fidelity(plan->trial), &options, error);
    if (!report)
        return false;
    *time_s = report->iteration_time_s;
    if (detail)
        *detail = detail_of(report);
    return true;
}

double trial_plan_measured_s(const TrialPlan *plan)
{
    const Trial *trial = plan->trial;
    if (!isnan(trial->measured_s) || trial->failed)
        return trial->measured_s;
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    const SimWorkload work = sim_workload(plan->plan, plan->graph, view);
    return trial->tokens_per_s > 0    ? work.tokens / trial->tokens_per_s
           : trial->samples_per_s > 0 ? work.samples / trial->samples_per_s
                                      : NAN;
}
