/* kilter sweep. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "experiments/cli/command.h"

typedef struct {
    char *database, *granularity;
    int threads;
} Own;

static void own_clear(Own *own)
{
    g_free(own->database);
    g_free(own->granularity);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, own_clear)

static void report(const char *name, const char *database, const SweepProgress *p,
                   const CommandOptions *options)
{
    if (options->json)
        command_print_json(json_pack(
            "{s:s, s:s, s:i, s:i, s:i, s:i}", "experiment", name, "database", database,
            "configurations", (int)p->total, "present", (int)p->present, "evaluated",
            (int)p->done, "out_of_memory", (int)p->oom));
    else if (!options->quiet)
        printf("%s: %u configurations, %u there before, %u evaluated (%u out of memory) "
               "in %s\n",
               name, p->total, p->present, p->done, p->oom, database);
}

static bool sweep(const Experiment *experiment, const char *database, const char *line,
                  const Own *own, const CommandOptions *options, GError **error)
{
    g_autoptr(Store) store = store_open(database, error);
    if (!store || !store_begin_run(store, line, command_revision(), error))
        return false;
    Terminal *terminal = terminal_begin(options->quiet);
    SweepOptions sweep_options = {
        .threads = (uint32_t)own->threads, .watch = terminal_watch, .data = terminal};
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
