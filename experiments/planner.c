#include "experiments/planner.h"

#include "balance/balance.h"
#include "experiments/planners/make.h"
#include "experiments/planners/segments.h"

#include <string.h>

static const Planner planner[] = {
    {"hap", "best program and ratios by alternating search and linear program",
     "HAP (EuroSys'24), Sec. 3-5", false, plan_make_hap},
    {"dp-ev", "data parallelism, equal shares a GPU", "HAP Sec. 7.1", false,
     plan_make_dp_even},
    {"dp-cp", "data parallelism, shares proportional to speed", "HAP Sec. 7.1", false,
     plan_make_dp_proportional},
    {"deepspeed", "ZeRO data parallelism and expert parallelism, equal shares a GPU",
     "HAP Sec. 7.1; ZeRO (SC'20)", false, plan_make_deepspeed},
    {"gshard",
     "data parallelism, experts sharded and tokens exchanged, equal shares a GPU",
     "GShard (ICLR'21)", false, plan_make_gshard},
    {"tensor-parallel", "every device in one tensor parallel group, equal shares a GPU",
     "Megatron-LM (2019), Sec. 3", false, plan_make_tensor_parallel},
    {"amp", "pipelines, replicas and tensor parallelism, layers assigned exactly",
     "AMP (NeurIPS'22), Algorithm 1", true, plan_make_amp},
    {"amp-sa", "the same with the devices placed by simulated annealing", "AMP Sec. 4.2",
     true, plan_make_amp_annealed},
    {"megatron",
     "Megatron's heuristics: least tensor and pipeline parallelism, even cuts",
     "AMP Sec. 4.1; Megatron-LM (SC'21)", true, plan_make_megatron},
    {"amp-random", "degrees, placement and cuts at random, by the seed", "AMP Sec. 4.5",
     true, plan_make_amp_random},
    {"fastmoe",
     "expert parallelism for the expert layers, data parallelism for the others",
     "FastMoE (2021); HiDup Sec. 6.1", false, plan_make_fastmoe},
    {"ddp", "data parallelism, gradients in buckets of 25 MiB, as in PyTorch",
     "HiDup Sec. 6.1", false, plan_make_ddp},
    {"horovod", "data parallelism, gradients fused up to 64 MiB",
     "Horovod (2018); HiDup Sec. 6.1", false, plan_make_horovod},
    {"hidup", "best program for two microbatches that take turns, equal shares a GPU",
     "HiDup (SoCC'22), Sec. 3-4", false, plan_make_hidup},
};

uint32_t planner_count(void)
{
    return G_N_ELEMENTS(planner);
}

const Planner *planner_at(uint32_t index)
{
    return &planner[index];
}

bool planner_searches(const Planner *method)
{
    return method->make == plan_make_hap;
}

const Planner *planner_find(const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new("");
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++) {
        if (strcmp(planner[i].name, name) == 0)
            return &planner[i];
        g_string_append_printf(known, "%s%s", i ? ", " : "", planner[i].name);
    }
    kilter_fail(error, KILTER_ERROR_INPUT, "unknown planner '%s', expected one of %s",
                name, known->str);
    return NULL;
}

bool planner_is_late(const PlannerOptions *options)
{
    return options->deadline_us > 0 && g_get_monotonic_time() >= options->deadline_us;
}

static SynthPins *pins_for(const PlannerOptions *options, const Graph *graph,
                           GError **error)
{
    return synth_pins_new(graph, options->pins ? options->pins : "", error);
}

/* Options that cannot be had together, or not of this planner. */
static bool check_options(const Planner *method, const PlannerOptions *options,
                          GError **error)
{
    const bool is_hap = method->make == plan_make_hap;
    const bool is_hidup = method->make == plan_make_hidup;
    const bool takes_turns =
        is_hidup ? options->duplex != DUPLEX_OFF : options->duplex == DUPLEX_ON;
    const bool is_pinned =
        options->ratios == RATIOS_EVEN || options->ratios == RATIOS_PROPORTIONAL;
    const struct {
        bool wrong;
        const char *option, *expected;
    } rule[] = {
        {options->pins && !is_hap, "pin",
         "planner hap, since the others have forms of their own for every tensor"},
        {options->pins && options->search == SEARCH_REFERENCE, "pin",
         "search=exact, since HAP's own search knows no pins"},
        {options->segments && !is_hap, "segments",
         "planner hap, since the others have one vector of ratios"},
        {options->segments && is_pinned, "segments",
         "ratios=own or ratios=best, since others are the same for all segments"},
        {options->certify > 0 && (takes_turns || method->single), "certify",
         "duplex=off and no pipelines, since the bound is on programs of one microbatch"},
        {!is_hidup && (options->noise != 0 || options->communication != 0 ||
                       options->backward != BACKWARD_OVERLAPPED),
         "backward, communication, noise",
         "planner hidup, whose search alone can be told what to believe"},
        {method->single && options->duplex == DUPLEX_ON, "duplex",
         "another planner, since pipelines have microbatches of their own"},
        {method->single &&
             (options->ratios == RATIOS_PROPORTIONAL || options->ratios == RATIOS_BEST),
         "ratios", "own or even, which is the same for the planners of pipelines"},
        {!method->single && planner_options_of_pipelines(options),
         "pp, dp, tmp, mbs, schedule, ...",
         "one of the planners amp, amp-sa, megatron, amp-random"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(rule); i++)
        if (rule[i].wrong)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s with option '%s': expected %s", method->name,
                               rule[i].option, rule[i].expected);
    return true;
}

bool planner_check(const Planner *method, const PlannerOptions *options,
                   const Graph *graph, GError **error)
{
    if (!check_options(method, options, error))
        return false;
    g_autofree uint16_t *segment = g_new(uint16_t, graph_n_ops(graph));
    if (!segments_make(options->segments, graph, segment, error))
        return false;
    g_autoptr(SynthPins) pins = pins_for(options, graph, error);
    return pins != NULL;
}

/* --- from a program and ratios to a plan --- */

void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments)
{
    gsize n = (gsize)n_segments * plan->n_devices;
    g_free(plan->ratio);
    plan->n_segments = n_segments;
    plan->ratio = g_memdup2(ratio, n * sizeof *ratio);
    memcpy(plan->segment, segment, plan->n_ops * sizeof *segment);
}

void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio)
{
    program_free(plan->program);
    g_free(plan->ratio);
    g_free(plan->segment);
    plan->program = program;
    plan->n_devices = view->n_devices;
    plan->n_segments = 1;
    plan->ratio = g_memdup2(ratio, view->n_devices * sizeof *ratio);
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
}

static void take_report(Plan *plan, const SimReport *report)
{
    plan->iteration_time_s = report->iteration_time_s;
    plan->stages = report->n_stages;
    plan->feasible = report->feasible;
    g_free(plan->memory_bytes);
    plan->memory_bytes =
        g_memdup2(report->memory_bytes, plan->n_devices * sizeof *report->memory_bytes);
}

static void drop_splits(Plan *plan)
{
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    g_clear_pointer(&plan->split, g_free);
    plan->n_splits = 0;
}

/* The time before rounding: by the formula, or, of programs that it does not know, by `stage` at
 * the plan's ratios. */
static bool complete_fractional(Plan *plan, const Graph *graph, const ClusterView *view,
                                GError **error)
{
    if (program_is_spmd(plan->program)) {
        g_autoptr(SimLinear) linear =
            sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
        g_autofree double *share = sim_shares(linear, view, plan->ratio);
        plan->fractional_time_s = sim_linear_time(linear, view, share, NULL, NULL);
        return true;
    }
    drop_splits(plan);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", error);
    if (report)
        plan->fractional_time_s = report->iteration_time_s;
    return report != NULL;
}

const char *plan_fidelity(const Plan *plan)
{
    return program_is_spmd(plan->program) ? "analytic" : "stage";
}

bool plan_complete(Plan *plan, const Graph *graph, const ClusterView *view,
                   GError **error)
{
    if (!complete_fractional(plan, graph, view, error) || !plan_round(plan, graph, error))
        return false;
    g_autoptr(SimReport) report =
        sim_evaluate(plan, graph, view, plan_fidelity(plan), error);
    if (!report)
        return false;
    take_report(plan, report);
    return true;
}

bool plan_is_better(const Plan *a, const Plan *b)
{
    if (!b || a->feasible != b->feasible)
        return !b || a->feasible;
    if (a->iteration_time_s == b->iteration_time_s)
        return a->optimal && !b->optimal;
    return a->iteration_time_s < b->iteration_time_s;
}

/* The cluster as planners see it under the options: collectives that they may not use cost more
 * than any plan. */
static ClusterView narrowed(const ClusterView *view, uint32_t collectives)
{
    static const Collective uneven[][2] = {
        [EXCHANGES_PADDED] = {COLLECTIVE_GROUPED_ALL_GATHER,
                              COLLECTIVE_GROUPED_REDUCE_SCATTER},
        [EXCHANGES_GROUPED] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER}};
    static const double forbidden_s = 1e9;
    ClusterView copy = *view;
    if (collectives != EXCHANGES_BOTH)
        for (uint32_t i = 0; i < 2; i++) {
            copy.collective[uneven[collectives][i]].latency_s = forbidden_s;
            copy.pieces[uneven[collectives][i]].n = 0;
        }
    return copy;
}

/* Whether the planner's program is doubled when it is made. */
static bool is_doubled(const Planner *method, const PlannerOptions *options)
{
    return options->duplex == DUPLEX_ON && method->make != plan_make_hidup;
}

/* A single box is cheap enough for every plan of the search; more of them, and other planners'
 * plans, are asked for. */
static bool certify(const Planner *method, Plan *plan, const Graph *graph,
                    const ClusterView *view, const PlannerOptions *options,
                    GError **error)
{
    if (options->certify > 0)
        return plan_certify(plan, graph, view, options, error);
    return method->make != plan_make_hap || is_doubled(method, options) ||
           plan_bound(plan, graph, view, options, error);
}

/* Ratios that were the best ones for one microbatch are found again for two. */
static bool double_and_balance(const Planner *method, Plan *plan, const Graph *graph,
                               const ClusterView *view, const PlannerOptions *options,
                               GError **error)
{
    const bool best = options->ratios == RATIOS_BEST ||
                      (options->ratios == RATIOS_OWN && method->make == plan_make_hap);
    plan->optimal = false;
    return plan_double(plan, graph, error) &&
           (!best || (plan_complete(plan, graph, view, error) &&
                      plan_balance(plan, graph, view, error)));
}

Plan *planner_plan(const Planner *method, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error)
{
    g_autoptr(Plan) plan = plan_new();
    g_autoptr(Graph) built =
        model_build(model, cluster_gpus(view->cluster), &plan->model, error);
    if (!built || !planner_check(method, options, built, error))
        return NULL;
    g_autoptr(SynthPins) pins = pins_for(options, built, error);
    plan->cluster = g_strdup(cluster_name);
    plan->granularity = view->granularity;
    plan->planner = g_strdup(method->name);
    plan->seed = options->seed;
    plan->version = g_strdup(KILTER_VERSION);
    plan->bucket_bytes = options->bucket_bytes;
    const ClusterView seen = narrowed(view, options->collectives);
    PlannerOptions given = *options;
    given.held = options->pins ? pins : NULL;
    g_autoptr(SynthSpace) space = synth_space_new(built, given.held);
    given.space = space;
    if (options->budget_s > 0)
        given.deadline_us =
            g_get_monotonic_time() + (gint64)(options->budget_s * G_USEC_PER_SEC);
    if (!method->make(built, &seen, &given, plan, error) ||
        (is_doubled(method, options) &&
         !double_and_balance(method, plan, built, &seen, options, error)) ||
        !plan_complete(plan, built, view, error) ||
        !program_check(plan->program, built, error) ||
        !certify(method, plan, built, &seen, &given, error) ||
        (!plan->feasible && planner_searches(method) && !is_doubled(method, options) &&
         !plan_disprove(plan, &seen, &given, error)))
        return NULL;
    if (graph)
        *graph = g_steal_pointer(&built);
    return g_steal_pointer(&plan);
}
