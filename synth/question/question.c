/* A question to a planner: its options are checked against the planner's abilities, its graph, pins
 * and segments are opened. */
#include "synth/question/question.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/models/model.h"
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
    return refuse(error, "%s with option '%s': expected %s, %s", method->name,
                  demand->option, able, demand->reason);
}

/* Checks that the planner has the abilities that the options need. */
static bool check_abilities(const Planner *method, const PlannerOptions *options,
                            GError **error)
{
#define X(id, asked, option, reason) {asked, PLANNER_##id, option, reason},
    const Demand demand[] = {ABILITY_TABLE(X)};
#undef X
    for (uint32_t i = 0; i < G_N_ELEMENTS(demand); i++)
        if (!meets(method, &demand[i], error))
            return false;
    return true;
}

bool question_takes_turns(const Planner *method, const PlannerOptions *options)
{
    return planner_can(method, PLANNER_TURNS) ? options->duplex != DUPLEX_OFF
                                              : options->duplex == DUPLEX_ON;
}

/* Refuses options that exclude one another. */
static bool question_check_options(const Planner *method, const PlannerOptions *options,
                                   GError **error)
{
    const RatiosChoice ratios = planner_ratios(options);
    const bool is_technique =
        options->strategy.microbatches > 1 || options->strategy.recompute;
    const Schedule schedule = (Schedule)options->strategy.schedule;
    const bool has_shares = planner_can(method, PLANNER_SHARES) ||
                            options->strategy.shares || options->strategy.pipeline_shares;
    const bool turns = question_takes_turns(method, options);
    const OptionRule rule[] = {
        {options->pins && options->search == SEARCH_REFERENCE, "pin", "search=exact",
         "since HAP's own search knows no pins"},
        {options->segments && planner_ratios_are_fixed(options), "segments",
         "ratios=own or ratios=best", "since others are the same for all segments"},
        {planner_can(method, PLANNER_PLACES) && options->search == SEARCH_REFERENCE,
         "search", "own, best, mcts or exact", NULL},
        {planner_can(method, PLANNER_PLACES) && !planner_can(method, PLANNER_TREES) &&
             options->search != SEARCH_OWN,
         "search", "own", "since it has one search"},
        {turns && is_technique, "microbatches, recompute", "duplex=off",
         "since two microbatches that take turns have a schedule of their own"},
        {options->strategy.pieces > 1
             ? !turns && !planner_can(method, PLANNER_WHOLE)
             : options->strategy.pieces == 0 && !planner_can(method, PLANNER_CHOOSES),
         "pieces", "some with planner manual or duplex=on, or 0 with auto", NULL},
        {options->strategy.pieces > 1 && options->sim.dispatcher != SIM_DISPATCHER_ONCE &&
             options->sim.dispatcher != SIM_DISPATCHER_RUNTIME,
         "dispatcher", "once", "since pieces that take turns hide exchanges themselves"},
        {options->certify > 0 && is_technique, "certify",
         "neither microbatches nor recompute", "which the bound does not include"},
        {options->strategy.zero > 0 &&
             (options->certify > 0 || turns || ratios == RATIOS_BEST),
         "zero", "neither certify, duplex=on nor ratios=best",
         "which do not include replicas"},
        {options->certify > 0 && turns, "certify", "duplex=off",
         "since the bound is on programs of one microbatch"},
        {options->mix && strcmp(options->ratios, "own") != 0, "mix", "ratios=own",
         "since both say the ratios"},
        {!planner_can(method, PLANNER_RATIOS) && ratios != RATIOS_OWN &&
             (ratios != RATIOS_EVEN || has_shares),
         options->mix ? "mix" : "ratios",
         options->mix ? "none"
         : has_shares ? "own"
                      : "own or even",
         options->mix ? "since the planner has shares of its own"
         : has_shares ? "since the plan has shares of its own"
                      : "which is the same for planners without ratios"},
        {planner_can(method, PLANNER_GROUPS) && options->duplex == DUPLEX_ON, "duplex",
         "pieces=2 of planner manual",
         "in which the pieces of each microbatch of a pipeline take turns"},
        {planner_can(method, PLANNER_WHOLE) && planner_options_of_amp(options),
         "tmp, mbs, chunks, ...", "those of the strategy",
         "tp for tmp, micro_batch for mbs, virtual_stages for chunks"},
        {planner_can(method, PLANNER_PIPELINES) && !planner_can(method, PLANNER_WHOLE) &&
             (schedule_splits(schedule) || schedule == SCHEDULE_BREADTH_FIRST),
         "schedule", "planner manual, or joint", "which chooses it where it is faster"},
        {planner_can(method, PLANNER_SHARES) && options->strategy.recompute &&
             strcmp(options->strategy.recompute, "auto") != 0,
         "recompute", "auto", "since it chooses for each stage"},
        {strategy_offloads(&options->strategy, OFFLOAD_PARAMETERS) &&
             options->strategy.zero < 3,
         "offload", "zero=3", "since parameters are offloaded where they are divided"},
    };
    g_autofree char *prefix = g_strdup_printf("%s with option '", method->name);
    return options_obey(rule, G_N_ELEMENTS(rule), prefix, "'", error) &&
           check_abilities(method, options, error);
}

/* --- opening --- */

/* The cluster as planners see it: collectives that the options forbid cost more than any plan. */
static ClusterView question_narrow(const ClusterView *view, uint32_t collectives)
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
static bool read_parts(Question *question, GError **error)
{
    const PlannerOptions *options = question->options;
    const Graph *graph = question->graph;
    if (options->pins)
        question->pins = synth_pins_new(graph, options->pins, error);
    if (options->pins && !question->pins)
        return false;
    if (!options->segments)
        return true;
    question->segment = g_new(uint16_t, graph_n_ops(graph));
    return segments_make(options->segments, graph, question->segment, error);
}

/* The checks that need no graph: whether the planner works at this granularity and has the
 * abilities that the options need. */
static bool check_planner(const Planner *method, Granularity granularity,
                          const PlannerOptions *options, GError **error)
{
    if (planner_can(method, PLANNER_GPUS) && granularity != GRANULARITY_GPU)
        return refuse(error,
                      "%s plans for single GPUs: expected --granularity gpu (in an "
                      "experiment granularity: [gpu])",
                      method->name);
    return question_check_options(method, options, error);
}

static void see_cluster(Question *question, const ClusterView *view)
{
    const uint32_t collectives = question->options->collectives;
    question->cluster = view;
    question->narrowed = question_narrow(view, collectives);
    question->view = collectives == EXCHANGES_BOTH ? view : &question->narrowed;
}

/* NULL if the planner does not take the cluster or the options. */
static Question *question_new(const Planner *method, const ClusterView *view,
                              const PlannerOptions *options, GError **error)
{
    if (!granularity_check(view->cluster, view->granularity, error) ||
        !check_planner(method, view->granularity, options, error))
        return NULL;
    Question *question = g_new0(Question, 1);
    question->planner = method;
    question->own = *options;
    question->options = &question->own;
    see_cluster(question, view);
    return question;
}

/* --- what a framework holds beside the plan --- */

/* The framework that runs a plan of this kind today: the one that it is made for, or else the usual
 * one of the planner's programs. Megatron-LM divides states, too (its distributed optimizer). */
static const char *runtime_by_kind(const Planner *method, const PlannerOptions *options)
{
    static const char *const OF_TARGET[] = {
        [TARGET_MEGATRON] = "megatron", [TARGET_FLAGSCALE] = "flagscale",
        [TARGET_TORCHTITAN] = "fsdp",   [TARGET_DEEPSPEED] = "deepspeed-2",
        [TARGET_FSDP] = "fsdp",         [TARGET_DDP] = "ddp",
        [TARGET_PYTORCH] = "pytorch"};
    const uint32_t zero = options->strategy.zero;
    if (options->target != TARGET_ANY)
        return OF_TARGET[options->target];
    if (zero == 3)
        return "fsdp";
    if (planner_can(method, PLANNER_GROUPS | PLANNER_GPUS))
        return "megatron";
    return zero > 0                            ? "deepspeed-2"
           : planner_can(method, PLANNER_ZERO) ? "ddp"
                                               : "pytorch";
}

const char *planner_runtime(const Planner *method, const PlannerOptions *options,
                            const Cluster *cluster)
{
    return *options->sim.runtime ? options->sim.runtime
           : planner_can(method, PLANNER_CHOOSES) || !cluster_is_bare(cluster)
               ? NULL
               : runtime_by_kind(method, options);
}

ClusterView *planner_view(const PlannerOptions *options, const char *name,
                          const Cluster *cluster, Granularity granularity)
{
    g_autoptr(Runtime) runtime = name ? runtime_load(name, NULL) : NULL;
    if (name && !runtime)
        return NULL;
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    ClusterView *priced = sim_options_view(&options->sim, runtime, view);
    return priced ? priced : g_steal_pointer(&view);
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
static uint32_t question_communicators(const Question *question)
{
    Strategy s = question->options->strategy;
    const uint32_t n = question->cluster->n_devices;
    if (planner_can(question->planner, PLANNER_GROUPS | PLANNER_GPUS)) {
        s.pp = s.pp == 0 ? MIN(n, 2) : s.pp;
        s.tp = s.tp == 0 ? MIN(n, 2) : s.tp;
    }
    return sim_communicators(&s, n);
}

/* Whether machines say what their hosts have, where these keep states. */
static bool check_hosts(const Question *question, GError **error)
{
    const Cluster *cluster = question->cluster->cluster;
    const Strategy *asked = &question->options->strategy;
    for (uint32_t m = 0; asked->offload && m < cluster->n_machines; m++) {
        const Machine *machine = &cluster->machine[m];
        if (machine->host_memory_bytes == 0 || machine->host_link == 0 ||
            machine->host_bandwidth == 0)
            return refuse(
                error,
                "option 'offload': cluster %s: machine %s: expected its host_memory, "
                "host_link "
                "and host_bandwidth, in the cluster's file or as in "
                "8xh100-sxm,host_memory=2TB,host_link=50GB/s,host_bandwidth=400GB/s",
                cluster->name, machine->name);
    }
    return true;
}

/* The devices' memory is what the runtime leaves of it. */
static bool see_memory(Question *question, GError **error)
{
    const char *name =
        planner_runtime(question->planner, question->options, question->cluster->cluster);
    if (!name)
        return true;
    question->runtime = runtime_load(name, error);
    if (!question->runtime)
        return false;
    question->held = cluster_view_held(question->cluster, question->runtime,
                                       question_communicators(question));
    see_cluster(question, question->held);
    return true;
}

/* Devices are seen with the prices that the options say and, where ops have measured times, by
 * their types. */
static bool see_times(Question *question, GError **error)
{
    if (!sim_options_check(&question->options->sim, question->graph, question->cluster,
                           error))
        return false;
    question->priced =
        sim_options_view(&question->options->sim, question->runtime, question->cluster);
    if (question->priced)
        see_cluster(question, question->priced);
    if (!graph_has_times(question->graph))
        return true;
    if (!cluster_view_check_times(question->cluster, question->graph, error))
        return false;
    question->measured = cluster_view_measured(question->cluster);
    see_cluster(question, question->measured);
    return true;
}

/* The checks that need the graph. */
static bool check_graph(Question *question, GError **error)
{
    if (!planner_takes_size(question->planner, question->cluster, error) ||
        (!planner_can(question->planner, PLANNER_CHOOSES) &&
         (!check_hosts(question, error) || !see_memory(question, error) ||
          !see_times(question, error))))
        return false;
    if (planner_ratios(question->options) == RATIOS_GIVEN) {
        g_autofree double *given =
            given_ratios(question->options->ratios, question->view, error);
        if (!given)
            return false;
    }
    return (planner_can(question->planner, PLANNER_CHOOSES) ||
            cluster_check_precision(question->cluster->cluster,
                                    graph_precision(question->graph), error)) &&
           read_parts(question, error);
}

Question *question_open_on(const Planner *method, const char *model, Graph *graph,
                           const ClusterView *view, const PlannerOptions *options,
                           GError **error)
{
    g_autoptr(Question) question = question_new(method, view, options, error);
    if (!question)
        return NULL;
    question->model = g_strdup(model);
    question->graph = graph_ref(graph);
    return check_graph(question, error) ? g_steal_pointer(&question) : NULL;
}

Question *question_open(const Planner *method, const char *model, const ClusterView *view,
                        const PlannerOptions *options, GError **error)
{
    g_autoptr(Question) question = question_new(method, view, options, error);
    if (question)
        question->graph =
            model_build(model, cluster_gpus(view->cluster), &question->model, error);
    return question && question->graph && check_graph(question, error)
               ? g_steal_pointer(&question)
               : NULL;
}

FREE_DEFINE(question_free, Question, question, cluster_view_free(question->held),
            runtime_free(question->runtime), cluster_view_free(question->measured),
            cluster_view_free(question->priced), synth_pins_free(question->pins),
            g_free(question->segment), graph_free(question->graph),
            g_free(question->model));

const char *question_spec(const Question *question)
{
    return question->model;
}

Graph *question_graph(const Question *question)
{
    return graph_ref(question->graph);
}
