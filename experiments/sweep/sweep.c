/* Sweeping an experiment's configurations on all cores. */
#include "experiments/sweep/sweep.h"

#include <math.h>
#include <string.h>

#include "experiments/json_values.h"

/* --- one row --- */

/* The result of a worker: a row and the strings it borrows, or an error. */
typedef struct {
    const Configuration *configuration;
    StoreResult row;
    char *message, *ratios, *detail;
    GError *error;
} Outcome;

static void outcome_free(Outcome *outcome)
{
    g_free(outcome->message);
    g_free(outcome->ratios);
    g_free(outcome->detail);
    g_clear_error(&outcome->error);
    g_free(outcome);
}

/* How many parameters rest whole and how many cut. */
static json_t *parameters_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    json_int_t n[2] = {0};
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_LOAD &&
            graph_tensor(evaluation->graph, instr->tensor)->role == ROLE_PARAMETER)
            n[form_is_gather(instr->to)]++;
    }
    return json_pack("{s:I, s:I}", "whole", n[0], "cut", n[1]);
}

/* How many gates of MoE layers are computed on parts of the tokens, and how many on all of them on
 * every device. */
static json_t *gates_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    json_int_t n[2] = {0};
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind != INSTR_COMPUTE ||
            (instr->microbatch != 0 && instr->microbatch != PROGRAM_WHOLE))
            continue;
        const Op *op = graph_get_op(evaluation->graph, instr->op);
        if (op_experts_of_token(op->kind, &op->attr) > 0)
            n[form_is_gather(instr->form[0])]++;
    }
    return json_pack("{s:I, s:I}", "whole", n[0], "cut", n[1]);
}

/* Per device: name, busy and idle seconds, peak bytes; parameters; gates; if it does not fit, what
 * the iteration would take. */
static char *detail_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    json_t *devices = json_array();
    for (uint32_t j = 0; j < report->n_devices; j++)
        json_array_append_new(devices,
                              json_pack("{s:s, s:o, s:o, s:o, s:o, s:I}", "name",
                                        evaluation->view->device[j].name, "busy_s",
                                        json_number(report->busy_s[j]), "communication_s",
                                        json_number(report->comm_busy_s[j]), "hidden_s",
                                        json_number(report->hidden_s[j]), "idle_s",
                                        json_number(report->idle_s[j]), "memory_bytes",
                                        (json_int_t)report->memory_bytes[j]));
    json_t *detail =
        json_pack("{s:o, s:o, s:o}", "devices", devices, "parameters",
                  parameters_json(evaluation), "gates", gates_json(evaluation));
    if (!report->feasible) {
        json_object_set_new(detail, "missing_bytes",
                            json_integer((json_int_t)report->missing_bytes));
        json_object_set_new(detail, "time_if_it_fit_s",
                            json_number(report->iteration_time_s));
    }
    return json_canonical(detail);
}

static double positive_or_nan(double value)
{
    return value > 0.0 && isfinite(value) ? value : NAN;
}

static void fill_from_plan(Outcome *outcome, const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    StoreResult *row = &outcome->row;
    bool fits = report->feasible;
    row->ratios = outcome->ratios = json_canonical(json_ratios(plan));
    row->detail = outcome->detail = detail_json(evaluation);
    row->stages = report->n_stages;
    row->search_time_s = plan->search_time_s;
    row->balance_time_s = plan->balance_time_s;
    for (uint32_t j = 0; j < report->n_devices; j++)
        row->peak_memory_bytes = MAX(row->peak_memory_bytes, report->memory_bytes[j]);
    row->lower_bound_s = positive_or_nan(plan->lower_bound_s);
    if (!fits) {
        outcome->message = evaluation_misfit(evaluation);
        return;
    }
    row->status = "ok";
    row->iteration_time_s = report->iteration_time_s;
    row->fractional_time_s = plan->fractional_time_s;
    row->communication_s = report->comm_s;
    row->computation_s = report->comp_s;
    double gap = plan_gap(plan);
    row->gap = isfinite(gap) ? gap : NAN;
    row->optimal = plan->optimal;
}

static void fill_from_exchange(Outcome *outcome)
{
    double seconds = configuration_exchange_s(outcome->configuration);
    outcome->row.status = "ok";
    outcome->row.iteration_time_s = outcome->row.communication_s = seconds;
    outcome->row.computation_s = 0;
}

static Outcome *evaluate(const Configuration *configuration, const char *experiment)
{
    Outcome *outcome = g_new0(Outcome, 1);
    outcome->configuration = configuration;
    outcome->row = (StoreResult){
        .hash = configuration->hash,
        .experiment = experiment,
        .config = configuration->json,
        .model = configuration->model,
        .cluster = configuration->cluster_name,
        .planner = configuration->planner ? configuration->planner->name : "none",
        .fidelity = configuration->fidelity,
        .granularity = granularity_name(configuration->granularity),
        .gpus = cluster_gpus(configuration->cluster),
        .seed = configuration->options.seed,
        .status = "oom",
        .iteration_time_s = NAN,
        .fractional_time_s = NAN,
        .lower_bound_s = NAN,
        .gap = NAN,
        .communication_s = NAN,
        .computation_s = NAN,
    };
    g_auto(Evaluation) evaluation = {0};
    if (!configuration->planner)
        fill_from_exchange(outcome);
    else if (configuration_evaluate(configuration, &evaluation, &outcome->error))
        fill_from_plan(outcome, &evaluation);
    else if (g_error_matches(outcome->error, KILTER_ERROR, KILTER_ERROR_INFEASIBLE)) {
        outcome->message = g_strdup(outcome->error->message);
        g_clear_error(&outcome->error);
    }
    outcome->row.message = outcome->message;
    return outcome;
}

/* --- the pool --- */

typedef struct {
    const Experiment *experiment;
    GAsyncQueue *outcomes;
} Work;

static void work(gpointer item, gpointer data)
{
    const Work *shared = data;
    g_async_queue_push(shared->outcomes,
                       evaluate(item, experiment_name(shared->experiment)));
}

typedef struct {
    const SweepOptions *options;
    SweepProgress *progress;
    Store *store;
    gint64 start_us;
    GError *first; /* why the first failed configuration failed, or the store */
    bool stopped;
} Sweep;

static void watch(Sweep *sweep)
{
    sweep->progress->elapsed_s =
        (double)(g_get_monotonic_time() - sweep->start_us) / G_USEC_PER_SEC;
    if (sweep->options->watch &&
        !sweep->options->watch(sweep->progress, sweep->options->data))
        sweep->stopped = true;
}

static void keep_first(Sweep *sweep, const Configuration *c, GError *error)
{
    if (sweep->first) {
        g_error_free(error);
        return;
    }
    g_prefix_error(&error, "%s on %s with %s: ", c->model, c->cluster_name,
                   c->planner ? c->planner->name : "no planner");
    sweep->first = error;
}

static void take(Sweep *sweep, Outcome *outcome)
{
    GError *error = g_steal_pointer(&outcome->error);
    if (!error && store_put(sweep->store, &outcome->row, &error)) {
        sweep->progress->done++;
        sweep->progress->oom += strcmp(outcome->row.status, "oom") == 0;
    } else {
        sweep->progress->failed++;
        keep_first(sweep, outcome->configuration, error);
    }
    outcome_free(outcome);
}

/* Configurations that the store lacks, in grid order. */
static GPtrArray *missing(const Experiment *experiment, Store *store,
                          SweepProgress *progress, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (uint32_t i = 0; i < experiment_count(experiment); i++) {
        const Configuration *configuration = experiment_at(experiment, i);
        bool has = false;
        if (!store_has(store, experiment_name(experiment), configuration->hash, &has,
                       error))
            return NULL;
        if (!has)
            g_ptr_array_add(list, (gpointer)configuration);
    }
    progress->total = experiment_count(experiment);
    progress->present = progress->total - list->len;
    return g_steal_pointer(&list);
}

/* Keeps as many configurations in flight as there are threads: then stopping needs no cancellation. */
static void drive(Sweep *sweep, GThreadPool *pool, GAsyncQueue *outcomes,
                  const GPtrArray *list, uint32_t threads)
{
    const guint64 poll_us = G_USEC_PER_SEC / 5;
    uint32_t next = 0, in_flight = 0;
    watch(sweep);
    while (in_flight > 0 || (next < list->len && !sweep->stopped)) {
        while (in_flight < threads && next < list->len && !sweep->stopped) {
            g_thread_pool_push(pool, list->pdata[next++], NULL);
            in_flight++;
        }
        Outcome *outcome = g_async_queue_timeout_pop(outcomes, poll_us);
        if (outcome) {
            take(sweep, outcome);
            in_flight--;
        }
        watch(sweep);
    }
}

static bool verdict(const Sweep *sweep, GError **error)
{
    const SweepProgress *p = sweep->progress;
    uint32_t left = p->total - p->present - p->done;
    if (p->failed > 0)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%u of %u configurations failed, first %s", p->failed,
                           p->total, sweep->first->message);
    if (left > 0)
        return kilter_fail(
            error, KILTER_ERROR_FAILED,
            "stopped with %u of %u configurations to do; the same command resumes", left,
            p->total);
    return true;
}

bool sweep_run(const Experiment *experiment, Store *store, const SweepOptions *options,
               SweepProgress *progress, GError **error)
{
    *progress = (SweepProgress){0};
    g_autoptr(GPtrArray) list = missing(experiment, store, progress, error);
    if (!list)
        return false;
    uint32_t threads = options->threads ? options->threads : g_get_num_processors();
    g_autoptr(GAsyncQueue) outcomes = g_async_queue_new();
    Work shared = {.experiment = experiment, .outcomes = outcomes};
    GThreadPool *pool = g_thread_pool_new(work, &shared, (int)threads, FALSE, error);
    if (!pool)
        return false;
    Sweep sweep = {.options = options,
                   .progress = progress,
                   .store = store,
                   .start_us = g_get_monotonic_time()};
    drive(&sweep, pool, outcomes, list, threads);
    g_thread_pool_free(pool, FALSE, TRUE);
    bool good = verdict(&sweep, error);
    g_clear_error(&sweep.first);
    return good;
}
