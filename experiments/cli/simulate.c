/* kilter simulate. */

#include "data/base/free.h"
#include "data/base/output.h"
#include "data/formats/format.h"
#include "data/formats/trace/perfetto.h"
#include "data/plan/fidelity.h"
#include "experiments/answers.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/answers/jobs.h"
#include "experiments/cli/command.h"
#include "experiments/cli/execution.h"
#include "sim/flow/jobs.h"

/* --- several plans on one network --- */

enum { ITERATIONS = 10 };

typedef struct {
    uint32_t n;
    char **file;
    Evaluation *plan;
    uint32_t **place;
    SimJobTime *time;
} Side;

OWN_CLEAR_DEFINE(side_clear, Side, side,
                 clear_items(side->plan, side->n, evaluation_clear),
                 free_items(side->place, side->n),
                 free_each(side->plan, side->place, side->time));

static bool side_read(Side *side, const CommandOptions *options, GError **error)
{
    const CommandPlanning how = {0};
    for (uint32_t i = 0; i < side->n; i++) {
        char *argv[] = {(char *)"simulate", side->file[i], NULL};
        if (!command_check_plan_file(side->file[i], &how, options, error) ||
            !command_evaluate(&how, 2, argv, fidelity_name(FIDELITY_STAGE), options,
                              &side->plan[i], error))
            return false;
    }
    return true;
}

static bool side_run(Side *side, const ClusterView *view, uint32_t iterations,
                     const CommandOptions *options, GError **error)
{
    SimOptions sim = options->planner.sim;
    sim.seed = options->planner.seed;
    g_autofree SimJob *job = g_new0(SimJob, side->n);
    for (uint32_t i = 0; i < side->n; i++)
        job[i] = (SimJob){side->plan[i].plan, side->plan[i].graph, side->plan[i].view,
                          side->place[i]};
    return sim_jobs(job, side->n, view, &sim, iterations, side->time, error);
}

/* The machines that a plan's devices are placed on. */
static json_t *machines_json(const ClusterView *view, const uint32_t *place, uint32_t n)
{
    json_t *names = json_array();
    g_autofree bool *named = g_new0(bool, view->cluster->n_machines);
    for (uint32_t d = 0; d < n; d++) {
        const uint32_t machine = view->device[place[d]].machine;
        if (!named[machine])
            json_array_append_new(names,
                                  json_string(view->cluster->machine[machine].name));
        named[machine] = true;
    }
    return names;
}

static json_t *side_json(const Side *side, const ClusterView *view)
{
    json_t *jobs = json_array();
    items_at (const Evaluation, plan, i, side->plan, side->n) {
        const SimJobTime *time = &side->time[i];
        json_array_append_new(
            jobs, json_pack("{s:s, s:s, s:i, s:o, s:f, s:f, s:f, s:i}", "plan",
                            side->file[i], "model", plan->plan->model, "devices",
                            (int)plan->view->n_devices, "machines",
                            machines_json(view, side->place[i], plan->view->n_devices),
                            "alone_s", time->alone_s, "together_s", time->together_s,
                            "slowdown", time->together_s / time->alone_s, "iterations",
                            (int)time->iterations));
    }
    return json_pack("{s:s, s:o}", "cluster", view->cluster->name, "jobs", jobs);
}

/* Simulates the plans of n files side by side on a cluster, `iterations` of each (0: 10), and
 * prints what each loses by the others. order: how their machines are placed there (NULL: packed).
 */
static bool command_simulate_jobs(char **file, uint32_t n, const char *cluster,
                                  const char *order, uint32_t iterations,
                                  const CommandOptions *options, GError **error)
{
    g_assert(n > 0 && n <= COMMAND_SIMULATES);
    if (order && !command_check_choice("--place", order, JOBS_ORDER_NAMES, error))
        return false;
    g_autoptr(Cluster) shared = cluster_load(cluster, error);
    if (!shared)
        return false;
    g_auto(Side) side = {.n = n,
                         .file = file,
                         .plan = g_new0(Evaluation, n),
                         .place = g_new0(uint32_t *, n),
                         .time = g_new0(SimJobTime, n)};
    if (!side_read(&side, options, error))
        return false;
    g_autoptr(ClusterView) view = cluster_view(shared, side.plan[0].view->granularity);
    const bool spread = g_strcmp0(order, JOBS_ORDER_NAMES[JOBS_SPREAD]) == 0;
    if (!jobs_place(side.plan, file, n, view, spread ? JOBS_SPREAD : JOBS_PACKED,
                    side.place, error) ||
        !side_run(&side, view, iterations > 0 ? iterations : ITERATIONS, options, error))
        return false;
    command_report(options, side_json(&side, view), ANSWER_JOBS, NULL);
    return true;
}

/* Each sample is an iteration that is simulated. */
enum { MOST_SAMPLES = 1000000 };

/* clang-format off */
#define SIMULATE_OPTIONS(X)                              \
    X(PLANNING, how)                                     \
    X(SLOWDOWN, how)                                     \
    X(CHANGES, how)                                      \
    X(TEXT, fidelity, "fidelity", 'f')                   \
    X(FILE, trace, "trace", 't')                         \
    X(TEXT, trace_ranks, "trace-ranks", 0)               \
    X(TEXT, trace_microbatches, "trace-microbatches", 0) \
    X(FLAG, explain, "explain", 'e')                     \
    X(COUNT, samples, "samples", 'n', 0, MOST_SAMPLES)   \
    X(COUNT, jobs, "jobs", 'j', 0, G_MAXINT)             \
    X(EXECUTION, execution)                              \
    X(FILE, dot, "dot", 0)                               \
    X(TEXT, cluster, "cluster", 0)                       \
    X(TEXT, place, "place", 0)                           \
    X(PINS, options)
/* clang-format on */
COMMAND_OPTIONS(Own, simulate_own, SIMULATE_OPTIONS)

/* [n] which ones the list of an option names; *chosen stays NULL without a list. Caller frees. */
static bool read_chosen(const char *option, const char *list, uint32_t n, bool **chosen,
                        GError **error)
{
    if (!list)
        return true;
    const bool all = strcmp(list, "all") == 0;
    g_autoptr(GArray) ids = all ? NULL : command_ranks(option, list, n, error);
    if (!all && !ids)
        return false;
    *chosen = g_new0(bool, n);
    for (uint32_t i = 0; i < (all ? n : ids->len); i++)
        (*chosen)[all ? i : g_array_index(ids, uint32_t, i)] = true;
    return true;
}

static bool write_trace(const Evaluation *evaluation, const Own *own, GError **error)
{
    const Program *program = evaluation->plan->program;
    g_autofree bool *shown = NULL, *whole = NULL;
    if (!read_chosen("--trace-ranks", own->trace_ranks, evaluation->view->n_devices,
                     &shown, error) ||
        !read_chosen("--trace-microbatches", own->trace_microbatches,
                     program->n_microbatches, &whole, error))
        return false;
    g_autoptr(GByteArray) trace =
        sim_timeline_trace(evaluation->report->timeline, program, evaluation->graph,
                           evaluation->view, shown, whole, perfetto_is_name(own->trace));
    return output_write(own->trace, (const char *)trace->data, trace->len, error);
}

/* Runs the samples, if any were requested. */
static bool sample(const Evaluation *evaluation, const Own *own, const SimOptions *sim,
                   SimSamples **samples, GError **error)
{
    if (own->samples == 0)
        return true;
    g_autofree char *others = fidelity_list(FIDELITY_STREAMS);
    if (!fidelity_can(evaluation->report->fidelity, FIDELITY_STREAMS))
        return refuse(error, "fidelity %s has no noise for --samples, expected %s",
                      evaluation->report->fidelity, others);
    const uint32_t jobs = own->jobs > 0 ? (uint32_t)own->jobs : g_get_num_processors();
    *samples = sim_samples(evaluation->plan, evaluation->graph, evaluation->view, sim,
                           (uint32_t)own->samples, jobs, error);
    return *samples != NULL;
}

static json_t *samples_json(const SimSamples *samples)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:[f, f]}", "n", (int)samples->n,
                     "mean_s", samples->mean_s, "median_s", samples->median_s, "p95_s",
                     samples->p95_s, "deviation_s", samples->deviation_s, "interval_s",
                     samples->low_s, samples->high_s);
}

static bool simulate_report(Evaluation *evaluation, const Own *own,
                            const CommandOptions *options, GError **error)
{
    g_autoptr(SimSamples) samples = NULL;
    SimOptions sim = options->planner.sim;
    sim.seed = options->planner.seed;
    const bool wanted = own->explain || own->trace;
    g_autofree char *others = fidelity_list(FIDELITY_LANES);
    if (wanted)
        evaluation_record(evaluation);
    if (wanted && !evaluation->report->timeline)
        return refuse(
            error, "fidelity %s has no timeline for --trace and --explain, expected %s",
            evaluation->report->fidelity, others);
    if (!evaluation_check_fits(evaluation, error) ||
        !sample(evaluation, own, &sim, &samples, error))
        return false;
    json_t *object =
        evaluation_simulation_json(evaluation, options->verbose, own->explain);
    if (own->explain) {
        g_autofree char *waits = evaluation_waits_text(evaluation);
        json_object_set_new(object, "waits", json_string(waits));
    }
    if (samples)
        json_object_set_new(object, "samples", samples_json(samples));
    if ((own->trace && !write_trace(evaluation, own, error)) ||
        (own->dot &&
         !output_take(own->dot, program_dot(evaluation->plan->program, evaluation->graph),
                      error)) ||
        !command_execution_write(&own->execution, evaluation, &sim, error)) {
        json_decref(object);
        return false;
    }
    command_report(options, object, ANSWER_EVALUATION, ANSWER_SIMULATE, NULL);
    return true;
}

/* Refuses options that say nothing about several plans. */
static bool check_single(const Own *own, GError **error)
{
    const struct {
        const char *option;
        bool given;
    } OF_PLANS[] = {{"--fidelity", own->fidelity},       {"--trace", own->trace},
                    {"--explain", own->explain},         {"--dot", own->dot},
                    {"--chakra", own->execution.chakra}, {"--goal", own->execution.goal}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF_PLANS); i++)
        if (OF_PLANS[i].given)
            return refuse(error, "%s is for a plan; --cluster is for several plans",
                          OF_PLANS[i].option);
    return true;
}

/* Several plans side by side. */
static bool simulate_jobs(int argc, char **argv, const Own *own,
                          const CommandOptions *options, GError **error)
{
    if (!own->cluster)
        return refuse(
            error,
            own->place
                ? "--place is for --cluster"
                : "several plans need --cluster, expected PLAN.json | MODEL CLUSTER");
    if (command_changes(&own->how) || own->how.slowdown || own->how.planner ||
        own->how.granularity)
        return refuse(error, "--planner, --granularity, --slowdown and what changes a "
                             "cluster are for one plan");
    return check_single(own, error) &&
           command_simulate_jobs(argv + 1, (uint32_t)argc - 1, own->cluster, own->place,
                                 (uint32_t)own->samples, options, error);
}

/* The fidelities, and the options of the simulation. Caller frees. */
static char *simulate_tables(void)
{
    GString *text = g_string_new("Fidelities:\n" FIDELITY_LINES
                                 "\nOptions of the flow fidelity (--set KEY=VALUE):");
    options_help(&sim_option_table, text);
    return g_string_free(text, FALSE);
}

COMMAND_BELOW(simulate, Own, SIMULATE_OPTIONS, simulate_tables())
{
    if (!own->trace && (own->trace_ranks || own->trace_microbatches))
        return refuse(error, "%s needs --trace FILE",
                      own->trace_ranks ? "--trace-ranks" : "--trace-microbatches");
    const char *fidelity = fidelity_find(
        own->fidelity ? own->fidelity : fidelity_name(FIDELITY_DEFAULT), error);
    if (!fidelity || (own->trace && !output_check(own->trace, error)) ||
        (own->dot && !output_check(own->dot, error)) ||
        !command_execution_check(&own->execution, error))
        return false;
    if (own->cluster || own->place || argc > 3)
        return simulate_jobs(argc, argv, own, options, error);
    if (argc == 2 && !command_check_plan_file(argv[1], &own->how, options, error))
        return false;
    if (format_of_file(argv[1], FORMAT_EXECUTION) != FORMATS)
        return refuse(error,
                      "%s: expected a plan; traces and task graphs are run by "
                      "kilter run-trace",
                      argv[1]);
    g_auto(Evaluation) evaluation = {0};
    return command_ask(&own->how, argc, NULL, false, options, error) &&
           command_evaluate(&own->how, argc, argv, fidelity, options, &evaluation,
                            error) &&
           simulate_report(&evaluation, own, options, error);
}
