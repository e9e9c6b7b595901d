/* kilter sweep. */
#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/store/store.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/sweep_script.h"
#include "experiments/report/report.h"

enum { MOST_SHARDS = 1000000 };

/* clang-format off */
#define SWEEP_OPTIONS(X)                               \
    X(COUNT, threads, "jobs", 'j', G_MININT, G_MAXINT) \
    X(FILE, database, "db", 0)                         \
    X(TEXT, granularity, "granularity", 0)             \
    X(TEXT, shard, "shard", 0)                         \
    X(FLAG, retry, "retry", 0)                         \
    X(FLAG, dry_run, "dry-run", 0)                     \
    X(FLAG, status, "status", 0)                       \
    X(FILE, page, "page", 0)                           \
    X(TEXT, emit, "emit", 0)                           \
    X(TEXT, processors, "cpus-per-task", 0)            \
    X(TEXT, memory, "mem", 0)                          \
    X(TEXT, time, "time", 0)                           \
    X(TEXT, queue, "partition", 0)                     \
    X(COUNT, parts, "plan-shards", 0, 0, MOST_SHARDS)
/* clang-format on */
COMMAND_OPTIONS(Own, sweep_options, SWEEP_OPTIONS)

static void sweep_report(const char *name, const char *database, const SweepProgress *p,
                         const CommandOptions *options)
{
    command_report(options,
                   json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "experiment", name,
                             "database", database, "configurations", (int)p->total,
                             "present", (int)p->present, "evaluated", (int)p->done,
                             "out_of_memory", (int)p->oom, "impossible",
                             (int)p->impossible),
                   ANSWER_SWEEP, NULL);
}

static bool sweep_count_of(const char *text, guint64 most, uint32_t *count)
{
    guint64 number = 0;
    const bool good =
        text && g_ascii_string_to_unsigned(text, 10, 0, most, &number, NULL);
    *count = (uint32_t)number;
    return good;
}

/* The variable that says which part of an array this process is; NULL: it is of none. */
static const char *shard_variable(void)
{
    static const char *const VARIABLE[] = {"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(VARIABLE); i++)
        if (g_getenv(VARIABLE[i]))
            return VARIABLE[i];
    return NULL;
}

/* The shard that Slurm's or Kubernetes' variables name. An indexed job of Kubernetes does not say
 * how many parts it has. */
static bool shard_of_array(const Own *own, const char *variable, SweepOptions *sweep,
                           GError **error)
{
    const char *text = g_getenv(variable);
    uint32_t least = 0;
    if (strcmp(variable, "JOB_COMPLETION_INDEX") == 0) {
        sweep->shards = (uint32_t)own->parts;
        return (sweep_count_of(text, MOST_SHARDS, &sweep->shard) &&
                sweep->shard < sweep->shards) ||
               refuse(error,
                      "JOB_COMPLETION_INDEX: expected an index below --plan-shards N, "
                      "the job's completions, got '%s' of %d",
                      text, own->parts);
    }
    const bool good =
        sweep_count_of(text, UINT32_MAX, &sweep->shard) &&
        sweep_count_of(g_getenv("SLURM_ARRAY_TASK_MIN"), sweep->shard, &least) &&
        sweep_count_of(g_getenv("SLURM_ARRAY_TASK_COUNT"), MOST_SHARDS, &sweep->shards);
    sweep->shard -= least;
    return (good && sweep->shard < sweep->shards) ||
           refuse(
               error,
               "SLURM_ARRAY_TASK_ID: expected a task of an array without gaps, got '%s'",
               text);
}

/* Finds the shard in `--shard I/N` or, without it, in the environment of the array that this
 * process is of. */
static bool find_shard(const Own *own, SweepOptions *sweep, GError **error)
{
    const char *variable = shard_variable();
    if (!own->shard)
        return !variable || shard_of_array(own, variable, sweep, error);
    g_auto(GStrv) part = g_strsplit(own->shard, "/", -1);
    return (g_strv_length(part) == 2 &&
            sweep_count_of(part[0], MOST_SHARDS, &sweep->shard) &&
            sweep_count_of(part[1], MOST_SHARDS, &sweep->shards) &&
            sweep->shard < sweep->shards) ||
           refuse(error, "--shard: expected I/N with I from 0 to N - 1, got '%s'",
                  own->shard);
}

/* The page of a running sweep is written this often, in seconds, and rests for so many times what
 * writing it takes. */
enum { PAGE_EVERY_S = 3, PAGE_REST = 10 };

typedef struct {
    Terminal *terminal;
    const char *database, *file;
    const char *names[2];
    double next_s; /* elapsed when it may be written again */
} LivePage;

static bool page_write(const LivePage *page, const char *running, GError **error)
{
    return output_take(page->file,
                       report_store(page->database, page->names, running, error), error);
}

static bool page_watch(const SweepProgress *progress, void *data)
{
    LivePage *page = data;
    if (page->file && progress->done > 0 && progress->elapsed_s >= page->next_s) {
        const gint64 start_us = g_get_monotonic_time();
        g_autofree char *running =
            g_strdup_printf("Running: %u of %u are done; load the page again for more.",
                            progress->present + progress->done, progress->total);
        page_write(page, running, NULL);
        const double took_s =
            (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
        page->next_s = progress->elapsed_s + fmax(PAGE_EVERY_S, PAGE_REST * took_s);
    }
    return terminal_watch(progress, page->terminal);
}

static bool sweep(const Experiment *experiment, const char *database, const Own *own,
                  const CommandOptions *options, GError **error)
{
    if (own->page && !output_check(own->page, error))
        return false;
    SweepOptions sweep_options = {.threads = (uint32_t)own->threads,
                                  .again = own->retry,
                                  .watch = page_watch,
                                  .faults = limits_mark_faults};
    if (!find_shard(own, &sweep_options, error))
        return false;
    if (sweep_options.shards > 0 && !own->shard && !options->quiet)
        limits_note("shard %u of %u, by %s", sweep_options.shard, sweep_options.shards,
                    shard_variable());
    if (!own->database && g_mkdir_with_parents("out", 0777) != 0)
        return refuse(error, "cannot make the folder out: %s", g_strerror(errno));
    g_autoptr(Store) store = store_open(database, error);
    if (!store || !store_begin_run(store, options->line, command_revision(), error))
        return false;
    if (store_note(store))
        limits_note("%s", store_note(store));
    LivePage page = {.next_s = PAGE_EVERY_S,
                     .terminal = terminal_begin(options->quiet || options->json),
                     .database = database,
                     .file = own->page,
                     .names = {experiment_name(experiment)}};
    sweep_options.data = &page;
    SweepProgress progress;
    bool good = sweep_run(experiment, store, &sweep_options, &progress, error);
    terminal_end(page.terminal);
    good = good && (!own->page || page_write(&page, NULL, error));
    if (good)
        sweep_report(experiment_name(experiment), database, &progress, options);
    return good;
}

/* --- without running it --- */

static bool dry_run(const Experiment *experiment, const char *database, const Own *own,
                    const CommandOptions *options, GError **error)
{
    if (own->page && !output_check(own->page, error))
        return false;
    SweepOptions sweep_options = {.threads = (uint32_t)own->threads};
    SweepEstimate estimate;
    const bool exists = g_file_test(database, G_FILE_TEST_EXISTS);
    g_autoptr(Store) store = exists ? store_open_read(database, error) : NULL;
    if ((exists && !store) || !find_shard(own, &sweep_options, error) ||
        !sweep_estimate(experiment, store, &sweep_options, &estimate, error))
        return false;
    command_report(options,
                   json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:o}", "experiment",
                             experiment_name(experiment), "configurations",
                             (int)estimate.total, "present", (int)estimate.present,
                             "missing", (int)(estimate.total - estimate.present), "tried",
                             (int)estimate.tried, "each_s", json_number(estimate.each_s),
                             "estimated_s", json_number(estimate.all_s)),
                   ANSWER_SWEEP_PLAN, NULL);
    return true;
}

static json_t *status_json(const SweepStatus *s)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "configurations",
                     (int)s->total, "ok", (int)s->ok, "out_of_memory", (int)s->oom,
                     "impossible", (int)s->impossible, "missing", (int)s->missing,
                     "running", (int)s->running, "failed", (int)s->failed);
}

/* Configurations without a result: tried, and not. */
typedef struct {
    json_t *tried, *untried;
} StatusLeft;

static void add_failed(const Configuration *c, const StoreAttempt *attempt, void *data)
{
    const StatusLeft *left = data;
    const char *planner = c->entry ? c->entry : "none";
    if (attempt)
        json_array_append_new(
            left->tried,
            json_pack("{s:s, s:s, s:s, s:s, s:s*, s:I, s:s, s:I, s:s, s:i, s:s?}", "hash",
                      attempt->hash, "model", c->model, "cluster", c->cluster_name,
                      "planner", planner, "fidelity", c->fidelity, "seed",
                      (json_int_t)c->seed, "host", attempt->host, "pid",
                      (json_int_t)attempt->pid, "started", attempt->started,
                      "processes_ended", (int)attempt->deaths, "message",
                      attempt->message));
    else
        json_array_append_new(left->untried,
                              json_pack("{s:s, s:s, s:s, s:s*, s:I}", "model", c->model,
                                        "cluster", c->cluster_name, "planner", planner,
                                        "fidelity", c->fidelity, "seed",
                                        (json_int_t)c->seed));
}

/* The databases of the parts of an emitted script. Free with g_strfreev. */
static char **status_parts(const Experiment *experiment)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    g_autofree char *folder = g_strconcat(experiment_name(experiment), ".parts", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        if (g_str_has_prefix(name, "part-") && g_str_has_suffix(name, ".db")) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            g_strv_builder_add(list, path);
        }
    return g_strv_builder_end(list);
}

/* Whether one of the files was written after the database, or there is no database. */
static bool status_is_newer(char **part, const char *database)
{
    GStatBuf merged, own;
    bool newer = g_stat(database, &merged) != 0;
    for (; *part && !newer; part++)
        newer = g_stat(*part, &own) == 0 && own.st_mtime > merged.st_mtime;
    return newer;
}

/* The results so far: of the database or, where parts are newer, of these too, copied into `folder`
 * (NULL: nothing was copied), a new one that is removed again. */
static Store *status_store(const Experiment *experiment, const char *database,
                           char **folder, GError **error)
{
    g_auto(GStrv) part = status_parts(experiment);
    if (!*part || !status_is_newer(part, database))
        return store_open_read(database, error);
    *folder = g_dir_make_tmp("kilter-status-XXXXXX", error);
    g_autofree char *file = *folder ? g_build_filename(*folder, "all.db", NULL) : NULL;
    g_autoptr(Store) store = file ? store_open(file, error) : NULL;
    uint32_t added;
    if (store && g_file_test(database, G_FILE_TEST_EXISTS) &&
        !store_merge(store, database, &added, error))
        return NULL;
    for (char **next = part; store && *next; next++)
        if (!store_merge(store, *next, &added, error)) {
            kilter_prefix(error, "%s: ", *next);
            return NULL;
        }
    return g_steal_pointer(&store);
}

/* Reports how far the sweep is, in total and for each part. KILTER_ERROR_FAILED while results are
 * missing. */
static bool status(const Experiment *experiment, const char *database, const Own *own,
                   const CommandOptions *options, GError **error)
{
    const uint32_t shards = (uint32_t)own->parts;
    g_autofree char *copied = NULL;
    Store *store = status_store(experiment, database, &copied, error);
    json_auto_t *list = json_array(), *tried = json_array(), *untried = json_array();
    StatusLeft left = {tried, untried};
    g_autofree SweepStatus *of =
        store ? sweep_status(experiment, store, shards, add_failed, &left, error) : NULL;
    g_clear_pointer(&store, store_close);
    output_forget(copied);
    if (!of)
        return false;
    SweepStatus all = {0};
    for (uint32_t i = 0; i < MAX(shards, 1); i++) {
        all.total += of[i].total;
        all.ok += of[i].ok;
        all.oom += of[i].oom;
        all.impossible += of[i].impossible;
        all.missing += of[i].missing;
        all.running += of[i].running;
        all.failed += of[i].failed;
        json_t *one = status_json(&of[i]);
        json_object_set_new(one, "shard", json_integer(i));
        json_array_append_new(list, one);
    }
    json_t *answer = status_json(&all);
    json_object_update_new(
        answer, json_pack("{s:s, s:o, s:O*, s:O, s:O, s:b}", "experiment",
                          experiment_name(experiment), "database", json_text(database),
                          "shards", shards > 0 ? list : NULL, "tried", tried, "untried",
                          untried, "parts", copied != NULL));
    command_report(options, answer, ANSWER_SWEEP_STATUS, NULL);
    return all.missing == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED,
                       "%u of %u configurations have no result; the same sweep evaluates "
                       "them",
                       all.missing, all.total);
}

/* The experiment's file with the options that change it, quoted for the shell. Caller frees. */
static char *quoted_experiment(const char *file, const Own *own,
                               const CommandOptions *options)
{
    g_autoptr(GString) text = g_string_new(NULL);
    /* a pod has other folders */
    const bool pods = g_strcmp0(own->emit, "k8s") == 0;
    g_autofree char *path = !pods && g_file_test(file, G_FILE_TEST_IS_REGULAR)
                                ? g_canonicalize_filename(file, NULL)
                                : g_strdup(file);
    g_autofree char *quoted = g_shell_quote(path);
    g_string_append(text, quoted);
    const char *const option[] = {"--granularity", "--seed"};
    const char *const value[] = {own->granularity,
                                 options->seed_given ? options->seed_text : NULL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(option); i++)
        if (value[i])
            g_string_append_printf(text, " %s %s", option[i], value[i]);
    for (char **set = options->set; set && *set; set++) {
        g_autofree char *pair = g_shell_quote(*set);
        g_string_append_printf(text, " --set %s", pair);
    }
    return g_strdup(text->str);
}

static bool emit(const Experiment *experiment, const char *file, const char *database,
                 const Own *own, const CommandOptions *options, GError **error)
{
    enum { PARTS = 16 };
    g_autofree char *quoted = quoted_experiment(file, own, options);
    g_autofree char *threads =
        own->threads ? g_strdup_printf("-j %d ", own->threads) : g_strdup("");
    g_autofree char *processors = own->processors    ? g_strdup(own->processors)
                                  : own->threads > 0 ? g_strdup_printf("%d", own->threads)
                                                     : NULL;
    const SweepScript script = {.processors = processors,
                                .memory = own->memory,
                                .time = own->time,
                                .queue = own->queue,
                                .name = experiment_name(experiment),
                                .database = database,
                                .experiment = quoted,
                                .threads = threads,
                                .shards = own->parts ? (uint32_t)own->parts : PARTS};
    g_autofree char *text = sweep_script(own->emit, &script, error);
    if (text)
        command_report(options,
                       json_pack("{s:s, s:i, s:s}", "experiment", script.name, "shards",
                                 (int)script.shards, "script", text),
                       "{script}", NULL);
    return text != NULL;
}

static bool sweep_work(const Experiment *experiment, const char *file, const Own *own,
                       const CommandOptions *options, GError **error)
{
    g_autofree char *database =
        own->database ? g_strdup(own->database)
                      : g_strdup_printf("out/%s.db", experiment_name(experiment));
    if (!own->emit && (own->processors || own->memory || own->time || own->queue))
        return refuse(error,
                      "--cpus-per-task, --mem, --time and --partition are for --emit");
    if (own->emit)
        return emit(experiment, file, database, own, options, error);
    if (own->dry_run)
        return dry_run(experiment, database, own, options, error);
    if (own->status)
        return status(experiment, database, own, options, error);
    return sweep(experiment, database, own, options, error);
}

static bool load_and_sweep(const char *file, const Own *own,
                           const CommandOptions *options, GError **error)
{
    if (own->threads < 0)
        return refuse(error, "-j: expected a number of threads, got %d", own->threads);
    const ExperimentChange change = command_experiment_change(options, own->granularity);
    g_autoptr(Experiment) experiment = experiment_load(file, &change, error);
    return experiment && sweep_work(experiment, file, own, options, error);
}

/* Whether a file, which need not exist, is a database rather than an experiment. */
static bool is_database(const char *file)
{
    return !g_str_has_suffix(file, ".yaml") &&
           (g_str_has_suffix(file, ".db") || g_file_test(file, G_FILE_TEST_IS_REGULAR));
}

COMMAND(sweep, Own, SWEEP_OPTIONS, 0)
{
    if (argc == 3 && (!own->status || own->database))
        return refuse(error, "expected one experiment, got '%s' too", argv[2]);
    /* RESULTS.db and the experiment in either order */
    const bool first = argc == 3 && is_database(argv[1]);
    if (argc == 3 && !first && !is_database(argv[2]))
        return refuse(
            error, "--status: expected a database and an experiment, got '%s' and '%s'",
            argv[1], argv[2]);
    if (argc == 3)
        own->database = g_strdup(argv[first ? 1 : 2]);
    return load_and_sweep(argv[first ? 2 : 1], own, options, error);
}
