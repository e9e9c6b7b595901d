/* kilter sweep. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "experiments/cli/command.h"

typedef struct {
    char *database, *granularity, *shard;
    int threads;
} Own;

static void own_clear(Own *own)
{
    g_free(own->database);
    g_free(own->granularity);
    g_free(own->shard);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, own_clear)

static void report(const char *name, const char *database, const SweepProgress *p,
                   const CommandOptions *options)
{
    command_report(options,
                   json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "experiment", name,
                             "database", database, "configurations", (int)p->total,
                             "present", (int)p->present, "evaluated", (int)p->done,
                             "out_of_memory", (int)p->oom, "impossible",
                             (int)p->impossible),
                   "{experiment}: {configurations} configurations, {present} there "
                   "before, {evaluated} evaluated ({out_of_memory} out of memory"
                   "[{?impossible}, {impossible} impossible]) in {database}\n",
                   NULL);
}

enum { MOST_SHARDS = 1000000 };

static bool count_of(const char *text, guint64 most, uint32_t *count)
{
    guint64 number = 0;
    const bool good =
        text && g_ascii_string_to_unsigned(text, 10, 0, most, &number, NULL);
    *count = (uint32_t)number;
    return good;
}

/* Of `--shard I/N`, or, without it, of the Slurm array that this is a task of. */
static bool find_shard(const Own *own, SweepOptions *sweep, GError **error)
{
    const char *task = g_getenv("SLURM_ARRAY_TASK_ID");
    if (!own->shard && !task)
        return true;
    g_auto(GStrv) part = g_strsplit(own->shard ? own->shard : "", "/", -1);
    uint32_t least = 0;
    bool good;
    if (own->shard) {
        good = g_strv_length(part) == 2 &&
               count_of(part[0], MOST_SHARDS, &sweep->shard) &&
               count_of(part[1], MOST_SHARDS, &sweep->shards);
    } else {
        good = count_of(task, UINT32_MAX, &sweep->shard) &&
               count_of(g_getenv("SLURM_ARRAY_TASK_MIN"), sweep->shard, &least) &&
               count_of(g_getenv("SLURM_ARRAY_TASK_COUNT"), MOST_SHARDS, &sweep->shards);
        sweep->shard -= least;
    }
    if (good && sweep->shard < sweep->shards)
        return true;
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       own->shard
                           ? "--shard: expected I/N with I from 0 to N - 1, got '%s'"
                           : "SLURM_ARRAY_TASK_ID: expected a task of an array "
                             "without gaps, got '%s'",
                       own->shard ? own->shard : task);
}

static bool sweep(const Experiment *experiment, const char *database, const char *line,
                  const Own *own, const CommandOptions *options, GError **error)
{
    SweepOptions sweep_options = {.threads = (uint32_t)own->threads,
                                  .watch = terminal_watch};
    if (!find_shard(own, &sweep_options, error))
        return false;
    if (sweep_options.shards > 0 && !own->shard && !options->quiet)
        fprintf(stderr, "kilter: shard %u of %u, by SLURM_ARRAY_TASK_ID\n",
                sweep_options.shard, sweep_options.shards);
    g_autoptr(Store) store = store_open(database, error);
    if (!store || !store_begin_run(store, line, command_revision(), error))
        return false;
    Terminal *terminal = terminal_begin(options->quiet);
    sweep_options.data = terminal;
    SweepProgress progress;
    bool good = sweep_run(experiment, store, &sweep_options, &progress, error);
    terminal_end(terminal);
    if (good)
        report(experiment_name(experiment), database, &progress, options);
    return good;
}

static bool load_and_sweep(const char *file, const char *line, const Own *own,
                           const CommandOptions *options, GError **error)
{
    if (own->threads < 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "-j: expected a number of threads, got %d", own->threads);
    ExperimentChange change = {.granularity = own->granularity,
                               .seed =
                                   options->seed_given ? &options->planner.seed : NULL,
                               .set = options->set};
    g_autoptr(Experiment) experiment = experiment_load(file, &change, error);
    if (!experiment)
        return false;
    if (own->database)
        return sweep(experiment, own->database, line, own, options, error);
    g_autofree char *database = g_strdup_printf("out/%s.db", experiment_name(experiment));
    if (g_mkdir_with_parents("out", 0777) != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT, "cannot make the folder out: %s",
                           g_strerror(errno));
    return sweep(experiment, database, line, own, options, error);
}

bool cmd_sweep(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {{"jobs", 'j', 0, G_OPTION_ARG_INT, &own.threads,
                                     "Threads (default: one per core)", "N"},
                                    {"db", 0, 0, G_OPTION_ARG_FILENAME, &own.database,
                                     "The results (default out/NAME.db)", "FILE"},
                                    {"granularity", 0, 0, G_OPTION_ARG_STRING,
                                     &own.granularity,
                                     "Instead of the file's: machine or gpu", "LEVEL"},
                                    {"shard", 0, 0, G_OPTION_ARG_STRING, &own.shard,
                                     "Only part I (from 0) of N, into a database of its "
                                     "own; kilter merge joins them",
                                     "I/N"},
                                    G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "sweep",
        .arguments = "FILE.yaml",
        .min_arguments = 1,
        .max_arguments = 1,
        .summary = "Evaluates every configuration of an experiment file that the "
                   "database lacks, one "
                   "row each.\nAfter an interruption the same command resumes.",
        .example = "kilter sweep experiments/hap-fig13.yaml -j 4 --db results.db",
        .entries = entries,
    };
    g_autofree char *line = command_line(argc, argv);
    g_auto(CommandOptions) options = {0};
    return command_parse(&syntax, &argc, argv, &options, error) &&
           load_and_sweep(argv[1], line, &own, &options, error);
}
