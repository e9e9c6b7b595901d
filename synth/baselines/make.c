/* The strategies that HAP is compared with (Sec. 7.1) and other known ones, at the level of virtual
 * devices. */
#include "synth/baselines/make.h"
#include "balance/balance.h"
#include "data/cluster/runtime.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/answer/rounding.h"
#include "synth/pipeline/strategy.h"

/* The inputs for finding a strategy's best ratios. */
typedef struct {
    const Question *question;
    Baseline baseline;
    Plan *plan; /* counts what the search takes */
    Plan *best; /* of those considered, rounded; NULL: none yet */
} Rebalance;

/* A program of the strategy and its costs. */
typedef struct {
    const Program *program;
    const SimLinear *linear;
    const SimMemory *memory;
} BaselineProgram;

/* Rounds the ratios to the nearest units, moves units as long as that is faster, and keeps the plan
 * if it is the best so far. */
static bool rebalance_consider(Rebalance *r, const BaselineProgram *of,
                               const double *ratio, GError **error)
{
    const Question *question = r->question;
    const ClusterView *view = question->view;
    g_autoptr(Plan) plan = plan_new();
    plan->bucket_bytes = r->plan->bucket_bytes;
    plan_set(plan, question->graph, view, program_copy(of->program), ratio);
    if (!plan_round(plan, question->graph, error))
        return false;
    g_autofree double *share = sim_plan_shares(plan, of->linear);
    plan->iteration_time_s = rounding_climb(plan, of->linear, of->memory, view, share,
                                            question->options->moves);
    plan->feasible = sim_memory_fits(of->memory, view, share);
    plan_keep_better(&r->best, g_steal_pointer(&plan));
    return true;
}

/* Considers the strategy's program at these ratios, and at its best ratios, in place: those that
 * fit the memory if any do. */
static bool rebalance(Rebalance *r, double *ratio, GError **error)
{
    const Graph *graph = r->question->graph;
    const ClusterView *view = r->question->view;
    SynthResult result;
    if (!synth_baseline(graph, view, ratio, r->baseline, &result, error))
        return false;
    g_autoptr(Program) program = result.program;
    g_autoptr(SimLinear) linear =
        sim_linear(program, graph, view, NULL, r->plan->bucket_bytes);
    g_autoptr(SimMemory) memory = sim_memory(program, graph, linear, NULL, view->runtime);
    const BaselineProgram of = {program, linear, memory};
    r->plan->search_time_s += result.search_s;
    if (!rebalance_consider(r, &of, ratio, error))
        return false;
    BalanceReport report;
    gint64 start = g_get_monotonic_time();
    if (!balance_ratios(linear, memory, view, 1, ratio, &report, NULL) &&
        !balance_ratios(linear, NULL, view, 1, ratio, &report, error))
        return false;
    r->plan->balance_time_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return rebalance_consider(r, &of, ratio, error);
}

/* Starts from both even and proportional ratios, since the strategy's collectives depend on the
 * ratios; repeats once, so that the collectives are those of the final ratios. */
static bool make_best(Rebalance *r, GError **error)
{
    bool good = true;
    for (uint32_t start = 0; start < 2 && good; start++) {
        g_autofree double *ratio =
            (start ? ratios_proportional : ratios_even)(r->question->view);
        for (uint32_t round = 0; round < 2 && good; round++)
            good = rebalance(r, ratio, error);
    }
    if (good)
        plan_take(r->plan, r->best, r->question);
    plan_free(r->best);
    return good;
}

/* Shares as text of the strategy; NULL: all shares are equal. */
static const char *shares_text(const double *ratio, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    bool even = true;
    for (uint32_t i = 0; i < n; i++) {
        even &= ratio[i] == ratio[0];
        g_string_append_printf(text, "%s%.17g", i ? " " : "", ratio[i]);
    }
    return even ? NULL : g_intern_string(text->str);
}

/* Replicas that divide states, gradients or parameters, by the program of planner manual with one
 * stage of single devices. */
static bool make_divided(const Question *question, const double *ratio, Plan *plan,
                         GError **error)
{
    const ClusterView *view = question->view;
    Strategy strategy = question->options->strategy;
    g_auto(StrategyPipelines) one = {0};
    if (view->granularity != GRANULARITY_GPU)
        return refuse(error, "%s with option 'zero': expected --granularity gpu",
                      question->planner->name);
    const gint64 start = g_get_monotonic_time();
    strategy.dp = view->n_devices;
    strategy.shares = shares_text(ratio, view->n_devices);
    if (!strategy_lay_out_pipelines(&strategy, question->graph, view->n_devices, &one,
                                    error))
        return false;
    Program *program = synth_strategy_pipelines(question->graph, view, &one, error);
    if (!program)
        return false;
    g_autofree double *shares = synth_strategy_pipeline_ratios(&one, view->n_devices);
    plan_set(plan, question->graph, view, program, shares);
    plan->strategy = strategy;
    plan->search_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}

/* `own`: the strategy's ratios, taken over; the options may replace them. */
static bool baseline_make(const Question *question, Baseline baseline, double *own,
                          Plan *plan, GError **error)
{
    const RatiosChoice choice = planner_ratios(question->options);
    g_autofree double *ratio = own;
    if (choice == RATIOS_BEST) {
        Rebalance r = {.question = question, .baseline = baseline, .plan = plan};
        return make_best(&r, error);
    }
    if (choice != RATIOS_OWN)
        put_block(ratio, ratios_pinned(question->view, question->options));
    if (question->options->strategy.zero > 0)
        return make_divided(question, ratio, plan, error);
    SynthResult result;
    if (!synth_baseline(question->graph, question->view, ratio, baseline, &result, error))
        return false;
    plan_set(plan, question->graph, question->view, result.program, ratio);
    plan->search_time_s = result.search_s;
    return true;
}

bool baselines_make(const Question *question, Answer *answer, GError **error)
{
    enum { HOROVOD_BUCKET = 64 << 20 }; /* its default, HOROVOD_FUSION_THRESHOLD */
    static const struct {
        Baseline baseline;
        uint64_t bucket_bytes; /* 0: gradients one by one */
    } VARIANT[] = {[BASELINES_REPLICAS] = {BASELINE_DATA_PARALLEL, 0},
                   [BASELINES_DEEPSPEED] = {BASELINE_ZERO_EXPERT, 0},
                   [BASELINES_GSHARD] = {BASELINE_GSHARD, 0},
                   [BASELINES_TENSOR_PARALLEL] = {BASELINE_MEGATRON, 0},
                   [BASELINES_DDP] = {BASELINE_DATA_PARALLEL, RUNTIME_BUCKET},
                   [BASELINES_HOROVOD] = {BASELINE_DATA_PARALLEL, HOROVOD_BUCKET}};
    const Planner *planner = question->planner;
    const uint64_t bucket_bytes = VARIANT[planner->variant].bucket_bytes;
    if (bucket_bytes > 0 && question->options->bucket_bytes == 0)
        answer->plan->bucket_bytes = bucket_bytes;
    return baseline_make(question, VARIANT[planner->variant].baseline,
                         (planner->ability & PLANNER_EVEN
                              ? ratios_even
                              : ratios_proportional)(question->view),
                         answer->plan, error);
}
