/* A planning: opened and checked once, planned once, evaluated once. */
#include "synth/question/planning.h"

#include <math.h>
#include <string.h>

#include "synth/answer/complete.h"
#include "synth/planners/make.h"
#include "synth/question/segments.h"

/* --- what the options ask of the planner --- */

/* An ability, which the options need if `asked`. */
typedef struct {
    bool asked;
    uint32_t ability;
    const char *option, *reason;
} Demand;

static bool meets(const Planner *method, const Demand *demand, GError **error)
{
    if (!demand->asked || planner_can(method, demand->ability))
        return true;
    g_autofree char *able = planners_that(demand->ability);
    return kilter_fail(error, KILTER_ERROR_INPUT, "%s with option '%s': expected %s, %s",
                       method->name, demand->option, able, demand->reason);
}

/* Checks that the planner has the abilities that the options need. */
static bool check_abilities(const Planner *method, const PlannerOptions *options,
                            GError **error)
{
    const Demand demand[] = {
        {options->pins != NULL, PLANNER_PINS, "pin",
         "since the others have forms of their own for every tensor"},
        {options->segments != NULL, PLANNER_SEGMENTS, "segments",
         "since the others have one vector of ratios"},
        {options->noise != 0 || options->communication != 0 ||
             options->backward != BACKWARD_OVERLAPPED,
         PLANNER_TURNS, "backward, communication, noise", "whose search takes them"},
        {planner_options_of_pipelines(options), PLANNER_STRATEGY,
         "pp, dp, tmp, mbs, schedule, ...", "since the others have no pipelines"},
        {options->strategy.zero > 0 || options->strategy.zero_ranks > 0, PLANNER_ZERO,
         "zero, zero_ranks",
         "since the others have no replicas that hold the same, or divide it where that "
         "is faster"},
        {options->search == SEARCH_BEST || options->search == SEARCH_MCTS, PLANNER_TREES,
         "search", "since the others have one search"},
        {planner_options_of_op_groups(options), PLANNER_PLACES,
         "groups, evaluations, ...", "since the others place no op groups"},
        {options->certify > 0, PLANNER_CERTIFIES, "certify",
         "since the bound is on programs of one microbatch for all devices, no "
         "pipelines"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(demand); i++)
        if (!meets(method, &demand[i], error))
            return false;
    return true;
}

/* Whether two microbatches take turns in the planner's plans. */
static bool takes_turns(const Planner *method, const PlannerOptions *options)
{
    return planner_can(method, PLANNER_TURNS) ? options->duplex != DUPLEX_OFF
                                              : options->duplex == DUPLEX_ON;
}

/* Refuses options that exclude one another. */
static bool check_options(const Planner *method, const PlannerOptions *options,
                          GError **error)
{
    const bool is_pinned =
        options->ratios == RATIOS_EVEN || options->ratios == RATIOS_PROPORTIONAL;
    const bool is_technique =
        options->strategy.microbatches > 1 || options->strategy.recompute;
    const struct {
        bool wrong;
        const char *option, *expected;
    } rule[] = {
        {options->pins && options->search == SEARCH_REFERENCE, "pin",
         "search=exact, since HAP's own search knows no pins"},
        {options->segments && is_pinned, "segments",
         "ratios=own or ratios=best, since others are the same for all segments"},
        {planner_can(method, PLANNER_PLACES) && options->search == SEARCH_REFERENCE,
         "search", "own, best, mcts or exact"},
        {planner_can(method, PLANNER_PLACES) && !planner_can(method, PLANNER_TREES) &&
             options->search != SEARCH_OWN,
         "search", "own, since it has one search"},
        {takes_turns(method, options) && is_technique, "microbatches, recompute",
         "duplex=off, since two microbatches that take turns have a schedule of their "
         "own"},
        {options->certify > 0 && is_technique, "certify",
         "neither microbatches nor recompute, which the bound does not include"},
        {options->strategy.zero > 0 &&
             (options->certify > 0 || takes_turns(method, options) ||
              options->ratios == RATIOS_BEST),
         "zero",
         "neither certify, duplex=on nor ratios=best, which do not include replicas"},
        {options->certify > 0 && takes_turns(method, options), "certify",
         "duplex=off, since the bound is on programs of one microbatch"},
        {!planner_can(method, PLANNER_RATIOS) &&
             (options->ratios == RATIOS_PROPORTIONAL || options->ratios == RATIOS_BEST),
         "ratios",
         "own or even, which is the same for planners with shares of their own"},
        {planner_can(method, PLANNER_GROUPS) && options->duplex == DUPLEX_ON, "duplex",
         "another planner, since pipelines have microbatches of their own"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(rule); i++)
        if (rule[i].wrong)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s with option '%s': expected %s", method->name,
                               rule[i].option, rule[i].expected);
    return check_abilities(method, options, error);
}

/* --- opening --- */

/* The cluster as planners see it: collectives that the options forbid cost more than any plan. */
static ClusterView narrow(const ClusterView *view, uint32_t collectives)
{
    static const Collective uneven[][2] = {
        [EXCHANGES_PADDED] = {COLLECTIVE_GROUPED_ALL_GATHER,
                              COLLECTIVE_GROUPED_REDUCE_SCATTER},
        [EXCHANGES_GROUPED] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER}};
    ClusterView copy = *view;
    if (collectives != EXCHANGES_BOTH)
        for (uint32_t i = 0; i < 2; i++) {
            copy.collective[uneven[collectives][i]].latency_s = INFINITY;
            copy.pieces[uneven[collectives][i]].n = 0;
        }
    return copy;
}

/* Reads the pins and segments that the options name, for this graph. */
static bool read_parts(Planning *planning, GError **error)
{
    const PlannerOptions *options = planning->options;
    const Graph *graph = planning->graph;
    if (options->pins)
        planning->pins = synth_pins_new(graph, options->pins, error);
    if (options->pins && !planning->pins)
        return false;
    if (!options->segments)
        return true;
    planning->segment = g_new(uint16_t, graph_n_ops(graph));
    return segments_make(options->segments, graph, planning->segment, error);
}

/* The checks that need no graph: whether the planner works at this granularity and has the
 * abilities that the options need. */
static bool check_planner(const Planner *method, Granularity granularity,
                          const PlannerOptions *options, GError **error)
{
    if (planner_can(method, PLANNER_GPUS) && granularity != GRANULARITY_GPU)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s plans for single GPUs: expected --granularity gpu",
                           method->name);
    return check_options(method, options, error);
}

static void see_cluster(Planning *planning, const ClusterView *view)
{
    const uint32_t collectives = planning->options->collectives;
    planning->cluster = view;
    planning->narrowed = narrow(view, collectives);
    planning->view = collectives == EXCHANGES_BOTH ? view : &planning->narrowed;
}

static Planning *planning_new(const Planner *method, const ClusterView *view,
                              const PlannerOptions *options)
{
    Planning *planning = g_new0(Planning, 1);
    planning->planner = method;
    planning->own = *options;
    planning->options = &planning->own;
    see_cluster(planning, view);
    planning->done = g_new0(PlanningDone, 1);
    planning->upper_s = INFINITY;
    return planning;
}

/* --- what a framework holds beside the plan --- */

/* In what a plan of this kind runs, by the states that replicas divide and the degrees that are
 * asked for. */
static const char *runtime_by_kind(const Planner *method, const PlannerOptions *options)
{
    const Strategy *s = &options->strategy;
    if (s->zero > 0)
        return s->zero == 3 ? "fsdp" : "deepspeed";
    if (planner_can(method, PLANNER_ZERO) && !planner_can(method, PLANNER_GROUPS))
        return "ddp";
    return planner_can(method, PLANNER_GROUPS | PLANNER_GPUS) ? "megatron" : "pytorch";
}

const char *planner_runtime(const Planner *method, const PlannerOptions *options,
                            const Cluster *cluster)
{
    return *options->sim.runtime ? options->sim.runtime
           : planner_can(method, PLANNER_CHOOSES) || !cluster_is_bare(cluster)
               ? NULL
               : runtime_by_kind(method, options);
}

char **planner_runtime_files(const Planner *method, const PlannerOptions *options,
                             const Cluster *cluster)
{
    g_autoptr(GStrvBuilder) files = g_strv_builder_new();
    const char *name = planner_runtime(method, options, cluster);
    g_auto(GStrv) all = runtime_names();
    for (char **each = all; !*options->sim.runtime && *each; each++) {
        g_autofree char *file = g_strdup_printf(RUNTIME_FILE, *each);
        if (name ? strcmp(*each, name) == 0 : cluster_is_bare(cluster))
            g_strv_builder_add(files, file);
    }
    return g_strv_builder_end(files);
}

/* Kinds of groups that some plan of the planner has: those that are asked for, and where pipelines
 * are searched for as many as they can have. */
static uint32_t planning_communicators(const Planning *planning)
{
    Strategy s = planning->options->strategy;
    const uint32_t n = planning->cluster->n_devices;
    if (planner_can(planning->planner, PLANNER_GROUPS | PLANNER_GPUS)) {
        s.pp = s.pp == 0 ? MIN(n, 2) : s.pp;
        s.tp = s.tp == 0 ? MIN(n, 2) : s.tp;
    }
    return sim_communicators(&s, n);
}

/* The devices' memory is what the runtime leaves of it. */
static bool see_memory(Planning *planning, GError **error)
{
    const char *name =
        planner_runtime(planning->planner, planning->options, planning->cluster->cluster);
    if (!name)
        return true;
    planning->runtime = runtime_load(name, error);
    if (!planning->runtime)
        return false;
    planning->held = cluster_view_held(planning->cluster, planning->runtime,
                                       planning_communicators(planning));
    see_cluster(planning, planning->held);
    return true;
}

/* Devices are seen with the prices that the options say and, where ops have measured times, by their types. */
static bool see_times(Planning *planning, GError **error)
{
    planning->priced =
        sim_options_view(&planning->options->sim, planning->runtime, planning->cluster);
    if (planning->priced)
        see_cluster(planning, planning->priced);
    if (!graph_has_times(planning->graph))
        return true;
    if (!cluster_view_check_times(planning->cluster, planning->graph, error))
        return false;
    planning->measured = cluster_view_measured(planning->cluster);
    see_cluster(planning, planning->measured);
    return true;
}

/* The checks that need the graph. */
static bool check_graph(Planning *planning, GError **error)
{
    if (!planner_takes_size(planning->planner, planning->cluster, error) ||
        (!planner_can(planning->planner, PLANNER_CHOOSES) &&
         (!see_memory(planning, error) || !see_times(planning, error))))
        return false;
    return (planner_can(planning->planner, PLANNER_CHOOSES) ||
            cluster_check_precision(planning->cluster->cluster,
                                    graph_precision(planning->graph), error)) &&
           read_parts(planning, error);
}

Planning *planning_open_on(const Planner *method, const char *model, Graph *graph,
                           const ClusterView *view, const PlannerOptions *options,
                           GError **error)
{
    if (!granularity_check(view->cluster, view->granularity, error) ||
        !check_planner(method, view->granularity, options, error))
        return NULL;
    g_autoptr(Planning) planning = planning_new(method, view, options);
    planning->model = g_strdup(model);
    planning->graph = graph_ref(graph);
    return check_graph(planning, error) ? g_steal_pointer(&planning) : NULL;
}

Planning *planning_open(const Planner *method, const char *model, const ClusterView *view,
                        const PlannerOptions *options, GError **error)
{
    if (!granularity_check(view->cluster, view->granularity, error) ||
        !check_planner(method, view->granularity, options, error))
        return NULL;
    g_autoptr(Planning) planning = planning_new(method, view, options);
    planning->graph =
        model_build(model, cluster_gpus(view->cluster), &planning->model, error);
    return planning->graph && check_graph(planning, error) ? g_steal_pointer(&planning)
                                                           : NULL;
}

void planning_free(Planning *planning)
{
    if (!planning)
        return;
    cluster_view_free(planning->done->chosen);
    cluster_view_free(planning->held);
    runtime_free(planning->runtime);
    cluster_view_free(planning->measured);
    cluster_view_free(planning->priced);
    sim_report_free(planning->done->report);
    g_free(planning->done->memory_s);
    g_free(planning->done->misfit);
    g_free(planning->done);
    synth_space_free(planning->space);
    synth_pins_free(planning->pins);
    g_free(planning->segment);
    graph_free(planning->graph);
    g_free(planning->model);
    g_free(planning);
}

char *planning_size_words(const Planning *planning)
{
    return planner_size_words(planning->planner, planning->graph, planning->cluster);
}

const char *planning_model(const Planning *planning)
{
    return planning->model;
}

ClusterView *planning_take_view(Planning *planning)
{
    return g_steal_pointer(&planning->done->chosen);
}

void planning_set_upper(Planning *planning, double seconds)
{
    g_assert(!planning_is_used(planning) && seconds > 0);
    planning->upper_s = seconds;
}

void planning_skip_bound(Planning *planning)
{
    g_assert(!planning_is_used(planning));
    planning->unbounded = true;
}

bool planning_is_used(const Planning *planning)
{
    return planning->space != NULL;
}

Graph *planning_take_graph(Planning *planning)
{
    return g_steal_pointer(&planning->graph);
}

/* --- planning --- */

/* Whether the planner's program becomes a duplex program when it is made. */
static bool is_duplex(const Planning *planning)
{
    return takes_turns(planning->planner, planning->options) &&
           !planner_can(planning->planner, PLANNER_TURNS);
}

/* Ratios that were best for one microbatch are found again for two. */
static bool duplex_and_balance(const Planning *planning, Plan *plan, GError **error)
{
    plan->optimal = false;
    return plan_duplex(plan, planning, error) && (!planning_wants_best_ratios(planning) ||
                                                  (plan_complete(plan, planning, error) &&
                                                   plan_balance(plan, planning, error)));
}

/* One box is cheap enough for every plan of the search; more boxes, and bounds for other planners'
 * plans, must be requested. */
static bool bound(const Planning *planning, Plan *plan, GError **error)
{
    const gint64 start = g_get_monotonic_time();
    if (planning->done->misfit)
        return true;
    if (planning->options->certify == 0 &&
        (planning->unbounded || !planner_can(planning->planner, PLANNER_BOUNDS) ||
         is_duplex(planning) || planning->options->strategy.microbatches > 1))
        return true;
    const bool done = planning->options->certify > 0 ? plan_certify(plan, planning, error)
                                                     : plan_bound(plan, planning, error);
    plan->certificate_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

static bool make_plan(const Planning *planning, Plan *plan, GError **error)
{
    const Planner *method = planning->planner;
    const bool duplex = is_duplex(planning), trained = plan_is_trained(planning);
    if (planner_can(method, PLANNER_CHOOSES))
        return method->make(planning, plan, error);
    if (!(trained ? plan_make_trained(planning, plan, error)
                  : method->make(planning, plan, error)) ||
        (duplex && !duplex_and_balance(planning, plan, error)) ||
        !plan_finish(plan, planning, error) || !bound(planning, plan, error))
        return false;
    const bool may_fit = plan->feasible || !planner_can(method, PLANNER_SEARCHES) ||
                         planning_is_lost(planning, plan->iteration_time_s);
    if (may_fit || duplex || trained)
        return true;
    const bool done = plan_disprove(planning, error);
    plan->misfit = g_steal_pointer(&planning->done->misfit);
    return done;
}

/* A plan that only names its question. */
static Plan *blank_plan(const Planning *planning, const char *cluster)
{
    Plan *plan = plan_new();
    plan->model = g_strdup(planning->model);
    model_content(planning->model, &plan->content, NULL); /* it was read before */
    plan->cluster = g_strdup(cluster);
    plan->granularity = planning->cluster->granularity;
    plan->planner = g_strdup(planning->planner->name);
    plan->runtime = planning->runtime ? g_strdup(planning->runtime->name) : NULL;
    plan->seed = planning->options->seed;
    plan->version = g_strdup(KILTER_VERSION);
    plan->bucket_bytes = planning->options->bucket_bytes;
    return plan;
}

static gint64 deadline_of(const PlannerOptions *options)
{
    return options->budget_s > 0
               ? g_get_monotonic_time() + (gint64)(options->budget_s * G_USEC_PER_SEC)
               : 0;
}

Plan *planning_plan(Planning *planning, const char *cluster, SimReport **report,
                    GError **error)
{
    g_assert(planning->graph && !planning_is_used(planning));
    planning->space = synth_space_new(planning->graph, planning->pins);
    planning->deadline_us = deadline_of(planning->options);
    g_autoptr(Plan) plan = blank_plan(planning, cluster);
    if (!make_plan(planning, plan, error))
        return NULL;
    g_assert((plan->lower_bound_s > 0) == (plan->bound_over != NULL));
    *report = g_steal_pointer(&planning->done->report);
    return g_steal_pointer(&plan);
}

Plan *planner_plan(const Planner *method, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error)
{
    if (planner_can(method, PLANNER_CHOOSES)) {
        kilter_fail(
            error, KILTER_ERROR_INPUT,
            "%s chooses the machines: expected a planner that keeps the given ones",
            method->name);
        return NULL;
    }
    g_autoptr(Planning) planning = planning_open(method, model, view, options, error);
    g_autoptr(SimReport) report = NULL;
    Plan *plan = planning ? planning_plan(planning, cluster_name, &report, error) : NULL;
    if (plan && graph)
        *graph = planning_take_graph(planning);
    return plan;
}
