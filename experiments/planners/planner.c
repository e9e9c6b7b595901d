#include "experiments/planners/planner.h"

#include <string.h>

#include "experiments/planners/complete.h"
#include "experiments/planners/make.h"
#include "experiments/planners/segments.h"

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
    g_autofree const char **known = NAMES_OF(planner, name);
    uint32_t index;
    return names_find("planner", name, known, &index, error) ? &planner[index] : NULL;
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

/* Ratios that were the best ones for one microbatch are found again for two. */
static bool double_and_balance(const Planner *method, const Planning *planning,
                               Plan *plan, GError **error)
{
    const uint32_t ratios = planning->options->ratios;
    const bool best =
        ratios == RATIOS_BEST || (ratios == RATIOS_OWN && method->make == plan_make_hap);
    plan->optimal = false;
    return plan_double(plan, planning, error) &&
           (!best || (plan_complete(plan, planning, error) &&
                      plan_balance(plan, planning, error)));
}

/* A single box is cheap enough for every plan of the search; more of them, and other planners'
 * plans, are asked for. */
static bool certify(const Planner *method, const Planning *planning, Plan *plan,
                    GError **error)
{
    if (planning->options->certify > 0)
        return plan_certify(plan, planning, error);
    return method->make != plan_make_hap || is_doubled(method, planning->options) ||
           plan_bound(plan, planning, error);
}

/* view: the whole cluster, which evaluates what was made with the planning's. */
static bool make_plan(const Planner *method, const Planning *planning,
                      const ClusterView *view, Plan *plan, GError **error)
{
    const bool doubled = is_doubled(method, planning->options);
    Planning whole = *planning;
    whole.view = view;
    return method->make(planning, plan, error) &&
           (!doubled || double_and_balance(method, planning, plan, error)) &&
           plan_complete(plan, &whole, error) &&
           program_check(plan->program, planning->graph, error) &&
           certify(method, planning, plan, error) &&
           (plan->feasible || !planner_searches(method) || doubled ||
            plan_disprove(plan, planning, error));
}

/* A plan of nothing yet: what it is of. */
static Plan *blank_plan(const Planner *method, const char *cluster_name,
                        const ClusterView *view, const PlannerOptions *options)
{
    Plan *plan = plan_new();
    plan->cluster = g_strdup(cluster_name);
    plan->granularity = view->granularity;
    plan->planner = g_strdup(method->name);
    plan->seed = options->seed;
    plan->version = g_strdup(KILTER_VERSION);
    plan->bucket_bytes = options->bucket_bytes;
    return plan;
}

static gint64 deadline_of(const PlannerOptions *options)
{
    return options->budget_s > 0
               ? g_get_monotonic_time() + (gint64)(options->budget_s * G_USEC_PER_SEC)
               : 0;
}

Plan *planner_plan(const Planner *method, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error)
{
    g_autoptr(Plan) plan = blank_plan(method, cluster_name, view, options);
    g_autoptr(Graph) built =
        model_build(model, cluster_gpus(view->cluster), &plan->model, error);
    if (!built ||
        !cluster_check_precision(view->cluster, graph_precision(built), error) ||
        !planner_check(method, options, built, error))
        return NULL;
    g_autoptr(SynthPins) pins = pins_for(options, built, error);
    const SynthPins *kept = options->pins ? pins : NULL;
    g_autoptr(SynthSpace) space = synth_space_new(built, kept);
    const ClusterView seen = narrowed(view, options->collectives);
    const Planning planning = {.graph = built,
                               .view = &seen,
                               .options = options,
                               .pins = kept,
                               .space = space,
                               .deadline_us = deadline_of(options)};
    if (!make_plan(method, &planning, view, plan, error))
        return NULL;
    if (graph)
        *graph = g_steal_pointer(&built);
    return g_steal_pointer(&plan);
}
