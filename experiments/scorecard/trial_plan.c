/* The plan of a trial. */
#include "experiments/scorecard/trial_plan.h"

#include <math.h>

#include "experiments/planners/complete.h"
#include "experiments/planners/ratios.h"
#include "experiments/sweep/configuration.h"
#include "synth/synth.h"

const char *trial_fidelity(const Trial *trial)
{
    return *trial->planner ? "flow" : "stage";
}

void trial_plan_clear(TrialPlan *plan)
{
    plan_free(plan->plan);
    graph_free(plan->graph);
}

/* Elements of an output that a processor makes at a time. */
enum { TILE = 128 * 128 };

/* The number of times that an op's bytes pass through memory. Frameworks compute some in several
 * passes over large values in between: attention over its scores, the loss over its logits. */
static ScoreParameter memory_of(OpKind kind)
{
    switch (kind) {
    case OP_ATTENTION:
    case OP_ATTENTION_DX:
        return SCORE_ATTENTION;
    case OP_SUM_EXP:
    case OP_CROSS_ENTROPY:
    case OP_CROSS_ENTROPY_DX:
        return SCORE_LOSS;
    default:
        return SCORE_BANDWIDTH;
    }
}

static OpCost op_cost(const Trial *trial, const double *parameter, OpKind kind)
{
    OpCost cost = {.rate = parameter[SCORE_RATE],
                   .bandwidth = parameter[memory_of(kind)],
                   .overhead_s = parameter[SCORE_OVERHEAD],
                   .launch_s = parameter[SCORE_LAUNCH],
                   .wave = trial->processors * TILE,
                   .largest = INFINITY};
    if (op_kind_is_view(kind)) {
        cost.bandwidth = INFINITY;
        cost.overhead_s = 0;
    }
    return cost;
}

static DeviceType device_type(const Trial *trial, const double *parameter)
{
    DeviceType type = {.name = g_strdup(trial->device),
                       .rate = parameter[SCORE_RATE],
                       .memory_bytes = (uint64_t)trial->memory_bytes,
                       .source = g_strdup("fitted"),
                       .slowdown = fmax(trial->slowdown, 1), /* NAN: none */
                       .launch_s = parameter[SCORE_LAUNCH],
                       .op = g_new(OpCost, OP_KINDS)};
    for (uint32_t k = 0; k < OP_KINDS; k++)
        type.op[k] = op_cost(trial, parameter, (OpKind)k);
    return type;
}

static Cluster *cluster_of(const Trial *trial, const double *parameter)
{
    Cluster *cluster = g_new0(Cluster, 1);
    const LinkCost inner = {parameter[SCORE_INNER_LATENCY],
                            parameter[SCORE_INNER_BANDWIDTH]},
                   outer = {parameter[SCORE_OUTER_LATENCY],
                            parameter[SCORE_OUTER_BANDWIDTH]};
    cluster->name = g_strdup("scorecard");
    cluster->n_types = 1;
    cluster->type = g_new(DeviceType, 1);
    cluster->type[0] = device_type(trial, parameter);
    cluster->n_machines = trial->machines;
    cluster->machine = g_new0(Machine, trial->machines);
    for (uint32_t i = 0; i < trial->machines; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("machine-%u", i),
                                        .gpus = trial->gpus,
                                        .inner = inner};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] = trial->machines > 1 ? outer : inner;
    return cluster;
}

/* "key=value,key=value" of a strategy; "" for none. */
static bool set_keys(const char *text, Strategy *strategy, GError **error)
{
    g_autoptr(Spec) spec = spec_read_pairs(text);
    for (uint32_t i = 0; i < spec->n; i++) {
        const Option *option = options_find(&strategy_table, spec->key[i]);
        if (!option)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "options: no key '%s' of a strategy", spec->key[i]);
        if (!option_set(option, strategy, spec->value[i], error))
            return false;
    }
    return true;
}

/* Ranks in Megatron's order: tensor parallelism innermost, then replicas, then stages. */
static bool strategy_of(const Trial *trial, Strategy *strategy, GError **error)
{
    strategy_init(strategy);
    strategy->pp = trial->pp;
    strategy->dp = trial->dp;
    strategy->tp = trial->tmp;
    strategy->micro_batch = trial->mbs;
    strategy->schedule = trial->chunks > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    strategy->virtual_stages = trial->chunks;
    return strategy_list(trial->cuts, &strategy->cuts, error) &&
           strategy_recompute(trial->recompute ? "full" : "none", &strategy->recompute,
                              error) &&
           set_keys(trial->options, strategy, error);
}

static Program *program_of(const Trial *trial, const Graph *graph,
                           const ClusterView *view, GError **error)
{
    Strategy strategy;
    g_auto(StrategyLayout) layout = {0};
    if (strategy_of(trial, &strategy, error) &&
        strategy_lay_out(&strategy, graph, view->n_devices, &layout, error))
        return synth_strategy_program(graph, view, &layout, error);
    g_prefix_error(error, "%s: ", trial->model);
    return NULL;
}

/* "key=value,key=value"; "" for none. */
static bool set_options(PlannerOptions *options, const char *text, GError **error)
{
    g_autoptr(Spec) spec = spec_read_pairs(text);
    planner_options_init(options);
    return options_assign(options, spec, error);
}

static Plan *planner_plan_of(const Trial *trial, const ClusterView *view, Graph **graph,
                             SimOptions *sim, GError **error)
{
    const Planner *planner = planner_find(trial->planner, error);
    PlannerOptions options;
    if (!planner || !set_options(&options, trial->options, error))
        return NULL;
    *sim = options.sim;
    return planner_plan(planner, trial->model, view->cluster->name, view, &options, graph,
                        error);
}

bool trial_plan_make(const Trial *trial, const double *parameter, TrialPlan *plan,
                     GError **error)
{
    *plan = (TrialPlan){.trial = trial};
    sim_options_init(&plan->options);
    plan->options.host = SIM_HOST_WAITS;
    g_autoptr(Cluster) cluster = cluster_of(trial, parameter);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    if (*trial->planner) {
        plan->plan = planner_plan_of(trial, view, &plan->graph, &plan->options, error);
        return plan->plan != NULL;
    }
    plan->graph = model_build(trial->model, view->n_devices, NULL, error);
    Program *program = plan->graph ? program_of(trial, plan->graph, view, error) : NULL;
    if (!program)
        return false;
    g_autofree double *even = ratios_even(view);
    plan->plan = plan_new();
    plan_set(plan->plan, plan->graph, view, program, even);
    return true;
}

static ScoreDetail detail_of(const SimReport *report)
{
    ScoreDetail detail = {0};
    for (uint32_t j = 0; j < report->n_devices; j++) {
        detail.peak_bytes = fmax(detail.peak_bytes, (double)report->memory_bytes[j]);
        detail.comm_s +=
            (report->comm_busy_s[j] + report->hidden_s[j]) / report->n_devices;
        detail.hidden_s += report->hidden_s[j] / report->n_devices;
    }
    return detail;
}

bool trial_plan_predict(const TrialPlan *plan, const double *parameter, double *time_s,
                        ScoreDetail *detail, GError **error)
{
    SimOptions options = plan->options;
    options.time_only = !detail;
    g_autoptr(Cluster) cluster = cluster_of(plan->trial, parameter);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(SimReport) report = sim_evaluate_with(
        plan->plan, plan->graph, view, trial_fidelity(plan->trial), &options, error);
    if (!report)
        return false;
    *time_s = report->iteration_time_s;
    if (detail)
        *detail = detail_of(report);
    return true;
}
