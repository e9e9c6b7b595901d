/* kilter exec: runs a plan for real and times it. */
#include <glib/gstdio.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/units.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/answers.h"
#include "experiments/calibration/calibrated.h"
#include "experiments/cli/command.h"
#include "experiments/cli/exec_launch.h"
#include "experiments/cli/exec_plan.h"
#include "experiments/sweep/result.h"
#include "sim/sim.h"
#include "synth/answer/complete.h"

/* --- the report --- */

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ExecMeasurement *measured;
    /* by its kind of plans, under the same slowdowns; NULL: the cluster is not known */
    SimReport *predicted;
    /* number of instructions outside of the sizes that the cluster was calibrated on */
    uint32_t unmeasured;
    const char *backend, *dtype;
    char **slowdown; /* "1=2", ...; may be NULL */
    uint32_t warm_up;
    uint64_t seed;
} ExecReport;

/* --- prediction --- */

/* The plan's report on its own cluster with these slowdowns (NULL: none), by its kind of
 * plans; NULL if the cluster is not known. *unmeasured (unless NULL) gets the number of
 * instructions outside of the sizes that the cluster was calibrated on. */
static SimReport *exec_predict(const Plan *plan, const Graph *graph, char **slowdown,
                               uint32_t *unmeasured)
{
    g_autoptr(Cluster) cluster = evaluation_cluster(plan, "the plan", NULL);
    if (!cluster || !command_stretch(cluster, plan->granularity, slowdown, NULL))
        return NULL;
    g_autoptr(ClusterView) view = cluster_view(cluster, plan->granularity);
    SimReport *report = sim_evaluate(plan, graph, view, plan_fidelity(plan), NULL);
    if (report && unmeasured)
        *unmeasured = calibrated_outside(plan, graph, view);
    return report;
}

static CLEAR_DEFINE(exec_report_clear, ExecReport, report,
                    let_go(report->predicted, sim_report_free));
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecReport, exec_report_clear)

/* The prediction's stage that begins with the same instructions, or NULL. */
static const SimStageReport *stage_of(const ExecReport *report, uint32_t k)
{
    const SimReport *p = report->predicted;
    return p && p->n_stages == report->measured->n_stages ? &p->stage[k] : NULL;
}

static json_t *spread_json(const ExecSpread *spread)
{
    return json_pack("{s:f, s:f, s:f}", "median_s", spread->median_s, "low_s",
                     spread->low_s, "high_s", spread->high_s);
}

static void append_kind(json_t *list, const char *name, const ExecKind *kind)
{
    if (kind->n > 0)
        json_array_append_new(list, json_pack("{s:s, s:i, s:f}", "kind", name, "calls",
                                              (int)kind->n, "median_s", kind->median_s));
}

static json_t *exec_report_stages_json(const ExecReport *report)
{
    const ExecMeasurement *m = report->measured;
    json_t *stages = json_array();
    for (uint32_t k = 0; k < m->n_stages; k++) {
        const SimStageReport *predicted = stage_of(report, k);
        g_autofree char *first =
            instr_text(&report->plan->program->instr[m->stage[k].first], report->graph);
        json_t *stage = json_pack("{s:s, s:o, s:o}", "first", first, "communication",
                                  spread_json(&m->stage[k].comm), "computation",
                                  spread_json(&m->stage[k].comp));
        if (predicted)
            json_object_set_new(stage, "predicted",
                                json_pack("{s:f, s:f}", "communication_s",
                                          predicted->comm_s, "computation_s",
                                          predicted->comp_s));
        json_array_append_new(stages, stage);
    }
    return stages;
}

static void total(const ExecMeasurement *m, double *comm_s, double *comp_s)
{
    *comm_s = *comp_s = 0;
    for (uint32_t k = 0; k < m->n_stages; k++) {
        *comm_s += m->stage[k].comm.median_s;
        *comp_s += m->stage[k].comp.median_s;
    }
}

/* A number of bytes, or null if it is not known. */
static json_t *bytes_json(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

/* The peak of the device that needs most, by the prediction. */
static uint64_t predicted_bytes(const SimReport *predicted)
{
    uint64_t most = 0;
    for (uint32_t j = 0; predicted && j < predicted->n_devices; j++)
        most = MAX(most, predicted->memory_bytes[j]);
    return most;
}

/* The report, and the template of its text. */
static json_t *exec_report_json(const ExecReport *report)
{
    const Plan *plan = report->plan;
    const ExecMeasurement *m = report->measured;
    const SimReport *p = report->predicted;
    json_t *kinds = json_array();
    double comm_s, comp_s;
    total(m, &comm_s, &comp_s);
    for (uint32_t k = 0; k < OP_KINDS; k++)
        append_kind(kinds, op_kind_name((OpKind)k), &m->op[k]);
    for (uint32_t k = 0; k < COLLECTIVES; k++)
        append_kind(kinds, collective_name((Collective)k), &m->collective[k]);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:o, s:f, s:o, s:i, "
                     "s:f, s:f, s:o, s:o, s:o, s:I, s:I, s:s, s:o, s:o, s:o}",
                     "model", plan->model, "cluster", plan->cluster, "planner",
                     plan->planner, "fidelity", "exec", "backend", report->backend,
                     "dtype", report->dtype, "ranks", (int)plan->n_devices, "repeats",
                     (int)m->repeats, "iteration_time_s", m->iteration.median_s,
                     "iteration", spread_json(&m->iteration), "planned_time_s",
                     plan->iteration_time_s, "predicted_time_s",
                     p ? json_number(p->iteration_time_s) : json_null(), "unmeasured",
                     (int)report->unmeasured, "communication_s", comm_s, "computation_s",
                     comp_s, "stages", exec_report_stages_json(report), "kinds", kinds,
                     "slowdown", json_strings(report->slowdown), "bytes",
                     (json_int_t)m->bytes, "seed", (json_int_t)report->seed, "version",
                     KILTER_VERSION, "predicted_bytes", bytes_json(predicted_bytes(p)),
                     "allocated_bytes", bytes_json(m->memory.peak_bytes), "device_bytes",
                     bytes_json(m->memory.device_bytes));
}

/* --- the store --- */

/* SHA-256 of the program and shards that the ranks run. Caller frees. */
static char *program_hash(const ExecReport *report)
{
    static const char *const keys[] = {"program", "ratios", "segments", "splits"};
    g_autofree char *text = plan_write(report->plan, report->graph);
    json_t *plan = json_loads(text, 0, NULL), *kept = json_object();
    for (uint32_t i = 0; i < G_N_ELEMENTS(keys); i++)
        json_object_set(kept, keys[i], json_object_get(plan, keys[i]));
    json_decref(plan);
    g_autofree char *canonical = json_canonical(kept);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, canonical, -1);
}

static json_t *method_json(const ExecReport *report)
{
    const Plan *plan = report->plan;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "planner",
                     plan->planner, "fidelity", "exec", "granularity",
                     granularity_name(plan->granularity), "backend", report->backend,
                     "dtype", report->dtype, "host", g_get_host_name(), "repeats",
                     (int)report->measured->repeats, "warm_up", (int)report->warm_up,
                     "slowdown", json_strings(report->slowdown));
}

/* Adds a row of fidelity `exec` to a store (data/store/store.h), in one transaction: the measured
 * iteration, and in `detail` the content of exec_report_json. A store keeps the first measurement
 * of a configuration (plan, backend, numbers, slowdowns, host); *kept says whether it is this one.
 * `command`: the command line. */
static bool exec_report_store(const ExecReport *report, const char *file,
                              const char *command, bool *kept, GError **error)
{
    const Plan *plan = report->plan;
    const ExecMeasurement *m = report->measured;
    g_autofree char *program = program_hash(report);
    g_auto(StoreQuestion)
        question = {.subject = question_part(json_pack("{s:s, s:s}", "model", plan->model,
                                                       "program", program)),
                    .cluster = question_part(json_pack("{s:s}", "name", plan->cluster)),
                    .method = question_method(method_json(report)),
                    .seed = report->seed};
    g_autofree char *hash = store_question_hash(&question);
    const StoreAsked asked = {.experiment = "exec",
                              .hash = hash,
                              .model = plan->model,
                              .cluster = plan->cluster,
                              .entry = plan->planner};
    g_auto(Result) result = {.row = result_blank(&asked, &question)};
    StoreResult *row = &result.row;
    result_take_plan(&result, plan);
    result_take_detail(&result, exec_report_json(report));
    row->planner = plan->planner;
    row->fidelity = "exec";
    row->granularity = granularity_name(plan->granularity);
    row->gpus = plan->n_devices;
    row->status = "ok";
    row->iteration_time_s = m->iteration.median_s;
    row->stages = m->n_stages;
    row->peak_memory_bytes = m->bytes;
    row->search_time_s = plan->search_time_s;
    row->balance_time_s = plan->balance_time_s;
    total(m, &row->communication_s, &row->computation_s);
    g_autoptr(Store) store = store_open(file, error);
    bool has = false;
    if (!store || !store_begin_run(store, command, command_revision(), error) ||
        !store_find(store, &asked, 1, &has, error) || !store_put(store, row, error))
        return false;
    *kept = !has;
    return true;
}

/* Folder of the plan file that is made for the ranks. */
#define HANDED_PREFIX "kilter-exec-"

/* clang-format off */
#define EXEC_OPTIONS(X)                                                                        \
    X(TEXT, backend, "backend", 'b')                                                           \
    X(COUNT, ranks, "ranks", 'n', 0, G_MAXINT)                                                 \
    X(TEXT, dtype, "dtype", 0)                                                                 \
    X(TIMING, timing)                                                                          \
    X(SLOWDOWN, source.how)                                                                    \
    X(FLAG, shrink, "shrink", 0)                                                               \
    X(FLAG, check, "check", 0)                                                                 \
    X(FILE, db, "db", 0)                                                                       \
    X(HIDDEN_TEXT, command, "asked", 0) /* the command line that started these ranks */        \
    X(HIDDEN_FLAG, handed, "handed", 0) /* remove the plan file once all ranks have read it */ \
    X(PLAN_SOURCE, source)                                                                     \
    X(VALUE, chosen, bool) /* --dtype was given */                                             \
    X(VALUE, half, ExecNumbers) /* how tensors in half precision are stored */                 \
    X(VALUE, file, const char *) /* of the plan */
/* clang-format on */
COMMAND_OPTIONS(Own, exec_own, EXEC_OPTIONS)

static bool is_mpi(const Own *own)
{
    return strcmp(own->backend, "mpi") == 0;
}

static bool exec_is_cuda(const Own *own)
{
    return strcmp(own->backend, "cuda") == 0;
}

static bool is_single(const Own *own)
{
    return strcmp(own->dtype, "float64") != 0;
}

/* --- options --- */

static double slowdown_of(const Own *own, uint32_t n_ranks, uint32_t rank)
{
    double result = 1;
    for (char **text = own->source.how.slowdown; text && *text; text++) {
        uint32_t of;
        double factor;
        if (stretch_parse(*text, n_ranks, &of, &factor, NULL) && of == rank)
            result = factor;
    }
    return result;
}

static bool exec_check_options(Own *own, GError **error)
{
    own->backend = own->backend ? own->backend : g_strdup("mpi");
    static const char *const backends[] = {"mpi", "cuda", "reference", NULL},
                             *const dtypes[] = {"float32", "float64", NULL};
    const bool reference = strcmp(own->backend, "reference") == 0;
    own->chosen = own->dtype != NULL;
    own->dtype = own->dtype ? own->dtype : g_strdup(reference ? "float64" : "float32");
    if (!command_check_choice("--backend", own->backend, backends, error) ||
        !command_check_choice("--dtype", own->dtype, dtypes, error) ||
        !exec_timing_in_range(&own->timing, error))
        return false;
    if (reference && is_single(own))
        return refuse(error, "the reference backend computes in float64 only");
    if (!is_mpi(own) && own->source.how.slowdown)
        return refuse(error,
                      "--slowdown: only the mpi backend's ranks can be slowed down");
    return true;
}

/* Puts the shrunk model in place of the plan's. */
static bool shrink_source(ExecPlan *source, GError **error)
{
    Graph *small = NULL;
    Plan *plan = exec_shrink_plan(source->plan, source->graph, NULL, &small, error);
    if (!plan)
        return false;
    plan_free(source->plan);
    graph_free(source->graph);
    source->plan = plan;
    source->graph = small;
    return true;
}

/* --- on the ranks --- */

/* Checks the numbers first: on a small model the plan must compute the results of one device. */
static bool check_plan(const Own *own, ExecBackend *backend, uint64_t seed,
                       GError **error)
{
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan =
        exec_shrink_plan(own->source.plan, own->source.graph, NULL, &small, error);
    g_auto(ExecVerdict) verdict = {0};
    if (!plan || !exec_verify(backend, plan, small, seed, exec_tolerance(backend),
                              &verdict, error))
        return false;
    return verdict.right ||
           kilter_fail(
               error, KILTER_ERROR_FAILED,
               "the plan is wrong on this backend: relative error %.2g; the first "
               "wrong tensor is %s, made by %s",
               verdict.error, verdict.wrong_tensor, verdict.wrong_instr);
}

/* Prints and stores the measurement beside the prediction. */
static bool report(const Own *own, const ExecMeasurement *measurement,
                   const CommandOptions *options, GError **error)
{
    g_auto(ExecReport) report = {.plan = own->source.plan,
                                 .graph = own->source.graph,
                                 .measured = measurement,
                                 .backend = own->backend,
                                 .dtype = own->dtype,
                                 .slowdown = own->source.how.slowdown,
                                 .warm_up = (uint32_t)own->timing.warm_up,
                                 .seed = options->planner.seed};
    bool kept = false;
    if (own->shrink) { /* what it has now is of the whole model */
        g_autoptr(SimReport) alone = exec_predict(report.plan, report.graph, NULL, NULL);
        if (alone)
            plan_take_report(own->source.plan, alone);
    }
    report.predicted =
        exec_predict(report.plan, report.graph, report.slowdown, &report.unmeasured);
    if (own->db && !exec_report_store(&report, own->db, own->command, &kept, error))
        return false;
    json_t *answer = exec_report_json(&report);
    if (own->db) {
        json_object_set_new(answer, "database", json_string(own->db));
        json_object_set_new(answer, "kept", json_boolean(kept));
    }
    command_report(options, answer, ANSWER_EXEC, NULL);
    return true;
}

/* Times the plan; the process that holds rank 0 reports. */
static bool measure(Own *own, ExecBackend *backend, const CommandOptions *options,
                    GError **error)
{
    const uint64_t seed = options->planner.seed;
    if (own->check && !check_plan(own, backend, seed, error))
        return false;
    g_autoptr(ExecReplay) replay =
        exec_replay_new(backend, own->source.plan, own->source.graph, error);
    if (!replay)
        return false;
    exec_replay_train(replay);
    if (!exec_replay_load(replay, seed, error))
        return false;
    exec_replay_slow(replay, slowdown_of(own, backend->n_ranks, backend->first));
    g_auto(ExecMeasurement) measurement = {0};
    Pace *pace = pace_begin("running iterations", options->quiet);
    const bool good = exec_measure(
        backend, replay, own->source.plan, own->source.graph,
        (ExecRuns){(uint32_t)own->timing.warm_up, (uint32_t)own->timing.repeats},
        &measurement, error);
    pace_end(pace);
    return good && (backend->first > 0 || report(own, &measurement, options, error));
}

static size_t element_bytes(const Own *own)
{
    return is_single(own) ? sizeof(float) : sizeof(double);
}

typedef struct {
    Own *own;
    const CommandOptions *options;
} Work;

/* Removes the plan file that was made for these ranks, and its folder, when all of them have read
 * it: whoever started them may be killed before it can. */
static void remove_handed(const Own *own, ExecRank rank)
{
    double all = 0;
    exec_mpi(NULL)->maximum(&all, 1);
    if (rank.rank > 0)
        return;
    g_autofree char *folder = g_path_get_dirname(own->file);
    g_autofree char *name = g_path_get_basename(folder);
    if (g_str_has_prefix(name, HANDED_PREFIX)) {
        g_unlink(own->file);
        g_rmdir(folder);
    }
}

static bool measure_as_rank(ExecRank rank, void *data, GError **error)
{
    const Work *work = data;
    if (work->own->handed)
        remove_handed(work->own, rank);
    g_autoptr(ExecBackend) backend =
        exec_mpi(NULL)->backend_new(element_bytes(work->own));
    return measure(work->own, backend, work->options, error);
}

/* The machine of each of the plan's devices, or NULL if its cluster is not known. */
static uint32_t *exec_machines(const Plan *plan)
{
    g_autoptr(Cluster) cluster = evaluation_cluster(plan, "the plan", NULL);
    g_autoptr(ClusterView) view =
        cluster ? cluster_view(cluster, plan->granularity) : NULL;
    if (!view || view->n_devices != plan->n_devices)
        return NULL;
    uint32_t *machine = g_new(uint32_t, view->n_devices);
    for (uint32_t d = 0; d < view->n_devices; d++)
        machine[d] = view->device[d].machine;
    return machine;
}

/* Runs all GPUs of a machine in one process; under mpirun there is one process per machine, or one
 * per GPU. */
static bool measure_on_gpus(ExecRank rank, void *data, GError **error)
{
    const Work *work = data;
    g_autofree uint32_t *machine = exec_machines(work->own->source.plan);
    const ExecCudaWorld world = {
        .ranks = EXEC_CUDA_GPUS,
        .n_ranks = work->own->source.plan->n_devices,
        .process = rank.rank,
        .n_processes = rank.n,
        .machine = machine,
        .half = work->own->half,
        .loss_scale = exec_half_loss_scale(work->own->source.graph, work->own->half)};
    g_autoptr(ExecBackend) backend =
        exec_cuda_new(&world, element_bytes(work->own), error);
    return backend && measure(work->own, backend, work->options, error);
}

/* --- starting the ranks --- */

/* The free memory of this machine in bytes; UINT64_MAX if it is not known. */
static uint64_t free_memory(void)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL))
        return UINT64_MAX;
    const char *line = strstr(text, "MemAvailable:");
    return line ? 1024 * g_ascii_strtoull(line + strlen("MemAvailable:"), NULL, 10)
                : UINT64_MAX;
}

/* Checks that all ranks fit the memory, since a rank killed by the kernel leaves no message. */
static bool check_memory(const Own *own, GError **error)
{
    const Plan *plan = own->source.plan;
    g_autoptr(ExecBackend) all = exec_reference_new(plan->n_devices);
    all->element_bytes = element_bytes(own);
    g_autoptr(ExecReplay) replay = exec_replay_new(all, plan, own->source.graph, error);
    if (!replay)
        return false;
    const uint64_t needed = exec_replay_bytes_needed(replay), has = free_memory();
    g_autofree char *needed_text = units_format((double)needed, QUANTITY_BYTES);
    g_autofree char *has_text = units_format((double)has, QUANTITY_BYTES);
    return needed <= has ||
           kilter_fail(error, KILTER_ERROR_FAILED,
                       "too big for this machine: %u ranks need %s together, %s are free",
                       plan->n_devices, needed_text, has_text);
}

/* The same command for the ranks, on a plan file. */
static char **rank_arguments(const Own *own, const char *file,
                             const CommandOptions *options)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    g_autofree char *dtype = g_strdup_printf("--dtype=%s", own->dtype);
    g_strv_builder_add_many(list, "exec", file, "--backend=mpi", "--handed", dtype, NULL);
    exec_rank_options(list, options, &own->timing);
    if (own->check)
        g_strv_builder_add(list, "--check");
    if (own->shrink)
        g_strv_builder_add(list, "--shrink");
    for (char **text = own->source.how.slowdown; text && *text; text++) {
        g_autofree char *option = g_strdup_printf("--slowdown=%s", *text);
        g_strv_builder_add(list, option);
    }
    if (own->db)
        g_strv_builder_add_many(list, "--db", own->db, "--asked", own->command, NULL);
    return g_strv_builder_end(list);
}

static bool exec_start_ranks(Own *own, const CommandOptions *options, GError **error)
{
    if (!exec_mpi(error))
        return false;
    const Plan *plan = own->source.plan;
    g_autofree char *text = plan_write(plan, own->source.graph);
    const uint32_t n_ranks = plan->n_devices;
    if ((own->shrink && !shrink_source(&own->source, error)) || !check_memory(own, error))
        return false;
    g_autoptr(GError) trouble = NULL;
    g_autofree char *folder = g_dir_make_tmp(HANDED_PREFIX "XXXXXX", &trouble);
    g_autofree char *file = folder ? g_build_filename(folder, "plan.json", NULL) : NULL;
    bool good = file && g_file_set_contents(file, text, -1, &trouble);
    if (good) {
        g_auto(GStrv) arguments = rank_arguments(own, file, options);
        good = exec_launch(n_ranks, (uint32_t)own->timing.timeout_s,
                           (const char *const *)arguments, options->quiet, error);
    } else {
        kilter_fail(error, KILTER_ERROR_FAILED, "cannot pass the plan to the ranks: %s",
                    trouble->message);
    }
    if (file)
        g_unlink(file);
    if (folder)
        g_rmdir(folder);
    return good;
}

/* Names the numbers of a model in half precision, which its precision says. */
static bool exec_take_precision(Own *own, GError **error)
{
    if (!exec_plan_half(own->source.graph, exec_is_cuda(own), &own->half, error))
        return false;
    if (own->half == EXEC_PLAIN)
        return true;
    if (own->chosen)
        return refuse(error,
                      "--dtype: expected none, as the model's tensors are stored in %s",
                      exec_half_name(own->half));
    put_block(own->dtype, g_strdup(exec_half_name(own->half)));
    return true;
}

/* Refuses a file that is not a store, before anything is run. */
static bool prepare_store(Own *own, const char *line, GError **error)
{
    if (!own->db)
        return true;
    own->command = own->command ? own->command : g_strdup(line);
    if (exec_is_rank() || !g_file_test(own->db, G_FILE_TEST_EXISTS))
        return exec_is_rank() || output_check(own->db, error);
    g_autoptr(Store) store = store_open_read(own->db, error);
    return store != NULL;
}

static bool exec_run(Own *own, int argc, char **argv, const CommandOptions *options,
                     GError **error)
{
    uint32_t rank;
    double factor;
    const bool starts = is_mpi(own) && !exec_is_rank();
    own->file = argv[1];
    if (!exec_plan_obtain(&own->source, argc, argv, options, error) ||
        !exec_take_precision(own, error) ||
        (own->shrink && !starts && !shrink_source(&own->source, error)))
        return false;
    if (own->source.plan->strategy.sync_every > 1)
        return refuse(error,
                      "the plan's replicas exchange every %u steps, exec's after each "
                      "one; expected sync_every=1",
                      own->source.plan->strategy.sync_every);
    if (own->source.plan->strategy.offload)
        return refuse(error, "the plan offloads states to the host, which exec does not; "
                             "kilter verify proves it");
    if (strategy_has_rings(&own->source.plan->strategy))
        return refuse(error, "exec gathers keys and values, the plan's go around a ring; "
                             "expected cp_comm=allgather or a2a");
    for (char **text = own->source.how.slowdown; text && *text; text++)
        if (!stretch_parse(*text, own->source.plan->n_devices, &rank, &factor, error))
            return false;
    if (own->ranks != G_MININT && (uint32_t)own->ranks != own->source.plan->n_devices)
        return refuse(error, "--ranks %d: the plan is for %u devices", own->ranks,
                      own->source.plan->n_devices);
    Work work = {own, options};
    if (starts)
        return exec_start_ranks(own, options, error);
    if (is_mpi(own))
        return exec_as_rank((uint32_t)own->timing.timeout_s, false, measure_as_rank,
                            &work, error);
    if (exec_is_cuda(own))
        return exec_as_rank((uint32_t)own->timing.timeout_s, !exec_is_rank(),
                            measure_on_gpus, &work, error);
    g_autoptr(ExecBackend) backend = exec_reference_new(own->source.plan->n_devices);
    return check_memory(own, error) && measure(own, backend, options, error);
}

bool cmd_exec(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {.timing = {.warm_up = 2, .repeats = 10, .timeout_s = 600},
                       .ranks = G_MININT};
    const GOptionEntry entries[] = {EXEC_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    g_auto(CommandOptions) options = {0};
    return exec_rank_ends(command_parse(NULL, entries, &argc, argv, &options, error) &&
                          exec_check_options(&own, error) &&
                          prepare_store(&own, options.line, error) &&
                          exec_run(&own, argc, argv, &options, error));
}
