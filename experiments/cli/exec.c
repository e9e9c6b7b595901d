/* kilter exec: runs a plan for real and times it. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "data/base/output.h"
#include "data/base/units.h"
#include "data/store/store.h"
#include "exec/exec.h"
#include "experiments/answers/command_line.h"
#include "experiments/cli/exec_launch.h"
#include "experiments/cli/exec_plan.h"
#include "experiments/cli/exec_report.h"
#include "synth/answer/complete.h"

/* Folder of the plan file that is made for the ranks. */
#define HANDED_PREFIX "kilter-exec-"

/* clang-format off */
#define COMMAND_MEMBER_RANK_SLOWDOWN(member)
#define COMMAND_CLEAR_RANK_SLOWDOWN(member)
#define COMMAND_ENTRY_RANK_SLOWDOWN(member)                                                      \
    {"slowdown", 0, 0, G_OPTION_ARG_STRING_ARRAY, &own.member.how.slowdown,                      \
     "Slow a rank's computation down by a factor; may be repeated", "RANK=FACTOR"},
#define EXEC_OPTIONS(X)                                                                                           \
    X(TEXT, backend, "backend", 'b', "Backend: mpi (default), cuda or reference", "NAME")                         \
    X(COUNT, ranks, "ranks", 'n',                                                                                 \
      "Number of ranks; must equal the number of the plan's devices (default)", "N", 0, G_MAXINT)                 \
    X(TEXT, dtype, "dtype", 0,                                                                                    \
      "float32 (default of mpi and cuda) or float64; cuda runs models in half precision in fp16 or bf16", "TYPE") \
    X(TIMING, timing, "iterations", "600")                                                                        \
    X(RANK_SLOWDOWN, source)                                                                                      \
    X(FLAG, shrink, "shrink", 0, "Run the small model that kilter verify uses", NULL)                             \
    X(FLAG, check, "check", 0, "Verify the plan on these ranks first", NULL)                                      \
    X(FILE, db, "db", 0, "Add the measurement and the prediction to this database", "FILE")                       \
    X(HIDDEN_TEXT, command, "asked", 0, "The command line that started these ranks", "LINE")                      \
    X(HIDDEN_FLAG, handed, "handed", 0, "Remove the plan file once all ranks have read it", NULL)                 \
    X(PLAN_SOURCE, source)                                                                                        \
    X(VALUE, chosen, bool) /* --dtype was given */                                                                \
    X(VALUE, half, ExecNumbers) /* how tensors in half precision are stored */                                    \
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
        !exec_timing_check(&own->timing, error))
        return false;
    if (reference && is_single(own))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "the reference backend computes in float64 only");
    if (!is_mpi(own) && own->source.how.slowdown)
        return kilter_fail(error, KILTER_ERROR_INPUT,
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

/* Gives a plan the time and memory that it has on its cluster, if that is known. */
static void exec_evaluate(Plan *plan, const Graph *graph)
{
    g_autoptr(Cluster) cluster = evaluation_cluster(plan, "the plan", NULL);
    if (!cluster)
        return;
    g_autoptr(ClusterView) view = cluster_view(cluster, plan->granularity);
    g_autoptr(SimReport) report =
        sim_evaluate(plan, graph, view, plan_fidelity(plan), NULL);
    if (report)
        plan_take_report(plan, report);
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
    if (own->shrink)
        exec_evaluate(own->source.plan, own->source.graph);
    exec_report_predict(&report);
    if (own->db && !exec_report_store(&report, own->db, own->command, &kept, error))
        return false;
    json_t *answer = exec_report_json(&report);
    if (own->db) {
        json_object_set_new(answer, "database", json_string(own->db));
        json_object_set_new(answer, "kept", json_boolean(kept));
    }
    command_report(options, answer, EXEC_REPORT_TEXT, NULL);
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
    if (!exec_measure(
            backend, replay, own->source.plan, own->source.graph,
            (ExecRuns){(uint32_t)own->timing.warm_up, (uint32_t)own->timing.repeats},
            &measurement, error))
        return false;
    return backend->first > 0 || report(own, &measurement, options, error);
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
    exec_mpi_maximum(&all, 1);
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
    g_autoptr(ExecBackend) backend = exec_mpi_new(element_bytes(work->own));
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

/* Checks that all ranks together fit the memory, since a rank killed by the kernel leaves no
 * message. */
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
    uint32_t unused;
    if (!exec_mpi_built())
        return exec_mpi_start(&unused, &unused, error);
    const Plan *plan = own->source.plan;
    if (own->ranks >= 0 && (uint32_t)own->ranks != plan->n_devices)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--ranks %d: the plan is for %u devices", own->ranks,
                           plan->n_devices);
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
                           (const char *const *)arguments, error);
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
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "--dtype: expected none, as the model's tensors are stored in %s",
            exec_half_name(own->half));
    g_free(own->dtype);
    own->dtype = g_strdup(exec_half_name(own->half));
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
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "the plan's replicas exchange every %u steps, exec's after "
                           "each one; expected sync_every=1",
                           own->source.plan->strategy.sync_every);
    if (own->source.plan->strategy.offload)
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "the plan offloads states to the host, which exec does not; kilter "
            "verify proves it");
    for (char **text = own->source.how.slowdown; text && *text; text++)
        if (!stretch_parse(*text, own->source.plan->n_devices, &rank, &factor, error))
            return false;
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
    g_auto(Own)
        own = {.timing = {.warm_up = 2, .repeats = 10, .timeout_s = 600}, .ranks = -1};
    const GOptionEntry entries[] = {EXEC_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "exec",
        .arguments = "PLAN.json | MODEL CLUSTER",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary = "Runs a plan for real and times it, with one rank per device. The "
                   "backend mpi runs on this\n"
                   "machine's CPUs; it starts the ranks itself, or is started by mpirun "
                   "-n RANKS. The backend cuda\n"
                   "runs on GPUs, all GPUs of a node in one process; mpirun starts one "
                   "process per node.",
        .example = "kilter exec plan.json --shrink --repeats 20 --db results.db\n  "
                   "kilter exec bert-base:layers=2,batch=1,vocab=512 hap-8 --planner "
                   "dp-ev --check",
        .entries = entries,
    };
    g_auto(CommandOptions) options = {0};
    g_autofree char *line = command_line(argc, argv);
    return exec_rank_ends(command_parse(&syntax, &argc, argv, &options, error) &&
                          exec_check_options(&own, error) &&
                          prepare_store(&own, line, error) &&
                          exec_run(&own, argc, argv, &options, error));
}
