/* Options, errors and output, which all commands share. Only main.c and the commands speak to the
 * terminal. */
#ifndef KILTER_EXPERIMENTS_CLI_COMMAND_H
#define KILTER_EXPERIMENTS_CLI_COMMAND_H

#include <jansson.h>

#include "experiments/sweep/configuration.h"
#include "experiments/sweep/sweep.h"

/* A command gets its arguments (argv[0] is its name) and reports failure, whose code becomes the
 * exit status. */
typedef bool (*CommandRun)(int argc, char **argv, GError **error);

#define COMMAND_TABLE(X)                                                        \
    X(models, "list the built-in models")                                       \
    X(clusters, "list the clusters on the search path")                         \
    X(cluster, "make a cluster of what a machine says of itself")               \
    X(planners, "list the planners")                                            \
    X(plan, "plan a model on a cluster")                                        \
    X(advise, "say which machines to use, and what mixing buys")                \
    X(compare, "put plans side by side, and say what differs")                  \
    X(sensitivity, "say what each number of a cluster is worth")                \
    X(simulate, "simulate an iteration of a plan")                              \
    X(memory, "say what the memory of each type of devices holds")              \
    X(export, "write a plan for a framework, or results as CSV")                \
    X(collective, "simulate one collective on a network")                       \
    X(sfb, "which ops sufficient factor broadcasting duplicates")               \
    X(theory, "print the sharding theory of a model")                           \
    X(verify, "prove a plan, or the sharding rules, by running")                \
    X(exec, "run a plan for real, and time it")                                 \
    X(profile, "measure ops and collectives on this machine")                   \
    X(import, "read what others measured")                                      \
    X(calibrate, "fit a cluster's costs to measurements")                       \
    X(fit, "fit a cluster's costs to measured iterations")                      \
    X(validate, "compare predicted with measured times of plans")               \
    X(sweep, "evaluate the grid of an experiment file, resumably")              \
    X(merge, "add the results of the parts of a sweep to a store")              \
    X(league, "rank the planners of an experiment by regret")                   \
    X(table, "print stored results as a table")                                 \
    X(show, "print a stored result")                                            \
    X(rerun, "evaluate a stored result again, and compare")                     \
    X(figure, "draw a figure from stored results")                              \
    X(reproduce, "sweep, figure and table of claims of a published experiment") \
    X(report, "write results, or a plan, as a page")

#define X(name, help) bool cmd_##name(int argc, char **argv, GError **error);
COMMAND_TABLE(X)
#undef X

/* Options that every command takes. */
typedef struct {
    gboolean json, quiet, verbose;
    char *seed_text, *memory_limit;
    char **set;
    /* of commands that have COMMAND_PIN_ENTRIES */
    char **pin, **pins, *strategy;
    bool seed_given;
    PlannerOptions planner; /* with --seed, --set and pins applied */
} CommandOptions;

/* Entries of a command that plans: pins, in files and one by one; those of files come first. */
/* clang-format off */
#define COMMAND_PIN_ENTRIES(options)                                                \
    {"pin", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(options)->pin,                       \
     "Pin a tensor's form, as in 'decoder.weight=gather(0)'; may be repeated "      \
     "(see README)", "PIN"},                                                        \
    {"pins", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &(options)->pins,                   \
     "Read pins from a file, one per line", "FILE"},                                  \
    {"strategy", 0, 0, G_OPTION_ARG_FILENAME, &(options)->strategy,                 \
     "Read a strategy (YAML; its keys are those of kilter planners)", "FILE"}
/* clang-format on */

void command_options_clear(CommandOptions *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CommandOptions, command_options_clear)

typedef struct {
    const char *name;
    const char *arguments; /* "MODEL CLUSTER" */
    int min_arguments, max_arguments;
    const char *summary;
    const char *example;
    const GOptionEntry *entries; /* the command's own; may be NULL */
} CommandSyntax;

/* Parses options; argv is left with the name and the arguments. --help prints and exits. */
bool command_parse(const CommandSyntax *syntax, int *argc, char **argv,
                   CommandOptions *options, GError **error);

/* Whether what an option was given is within bounds, or one of the words. KILTER_ERROR_INPUT. */
bool command_check_range(const char *option, int value, int least, int most,
                         GError **error);
bool command_check_choice(const char *option, const char *value,
                          const char *const *choices, GError **error);

/* Prints what a command answers, and releases it: as JSON, or as the templates say (experiments/render.h; NULL ends
 * them), in which {?verbose} holds under -v; nothing if it is to be quiet. */
void command_report(const CommandOptions *options, json_t *answer,
                    ...) G_GNUC_NULL_TERMINATED;
/* Nothing is printed: there is no need for an answer. */
bool command_is_silent(const CommandOptions *options);
/* Prints one JSON object to stdout and releases the value. Its first member is "format": {"name":
 * "kilter COMMAND", "version"}; a list becomes the member that is called as the command is. */
void command_print_json(json_t *value);
/* One line on stderr: an object of that format with "error": {"status", "message"}. */
void command_print_error(const GError *error, int status);

/* How a command that plans is told to: --planner (NULL: hap), --granularity (NULL: machine), what
 * changes the cluster first (data/cluster/change.h), and --slowdown, devices whose computation is
 * stretched. */
typedef struct {
    char *planner, *granularity;
    char **change[CHANGES]; /* NULL: none */
    char **slowdown;        /* RANK=FACTOR; NULL: none */
} CommandPlanning;

void command_planning_clear(CommandPlanning *how);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CommandPlanning, command_planning_clear)

/* clang-format off */
#define COMMAND_PLANNING_ENTRIES(how)                                               \
    {"planner", 'p', 0, G_OPTION_ARG_STRING, &(how).planner,                        \
     "How to plan MODEL (default hap; see kilter planners)", "NAME"},               \
    {"granularity", 0, 0, G_OPTION_ARG_STRING, &(how).granularity,                  \
     "What a device is: machine (default; gpu for planners of single GPUs) or gpu", \
     "LEVEL"}
#define COMMAND_SLOWDOWN_ENTRY(how)                                                 \
    {"slowdown", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).slowdown,                  \
     "Stretch a device's computation by a factor, as kilter exec does; may be "     \
     "repeated", "RANK=FACTOR"}
#define COMMAND_CHANGE_ENTRIES(how)                                                 \
    {"only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_ONLY],           \
     "Keep the machines of these names or device types, as in h100,a100", "NAMES"}, \
    {"without", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_WITHOUT],     \
     "Leave these machines out", "NAMES"},                                          \
    {"add", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_ADD],             \
     "Add a machine like those of its device type, as in 'h100 x 8'",               \
     "DEVICE x GPUS"},                                                              \
    {"scale", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_SCALE],         \
     "Scale network, latency, inner, DEVICE.rate, .bandwidth or .memory, as in "    \
     "network=2; may be repeated", "WHAT=FACTOR"}
/* clang-format on */

/* Applies --only, --without, --add and --scale to a cluster: machines are added and chosen before numbers are scaled. */
bool command_change(Cluster *cluster, const CommandPlanning *how, GError **error);
/* Whether there is any. */
bool command_changes(const CommandPlanning *how);

/* Applies a --slowdown to a cluster. */
bool command_stretch(Cluster *cluster, Granularity granularity, char **slowdown,
                     GError **error);

/* The same in terms of what there is, with the cluster. */
typedef struct {
    const Planner *planner;
    Granularity granularity;
    Cluster *cluster; /* stretched */
} CommandSetting;

bool command_setting(const CommandPlanning *how, const char *cluster,
                     CommandSetting *setting, GError **error);
void command_setting_clear(CommandSetting *setting);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CommandSetting, command_setting_clear)

/* The configuration of arguments MODEL CLUSTER; the setting holds what it borrows. */
Configuration *command_configuration(const CommandPlanning *how, char **argv,
                                     const char *fidelity, const PlannerOptions *options,
                                     CommandSetting *setting, GError **error);
/* Plans and simulates MODEL CLUSTER, or simulates PLAN.json (argc 2), by a fidelity (NULL: the plan's own). */
bool command_evaluate(const CommandPlanning *how, int argc, char **argv,
                      const char *fidelity, const CommandOptions *options,
                      Evaluation *evaluation, GError **error);

/* The keys that every plan and simulation carries (verbose: each stage, too), and how they read. */
json_t *command_evaluation_json(const Evaluation *evaluation, bool verbose);
extern const char COMMAND_EVALUATION_TEXT[];
/* The same keys and, if it has a timeline, the time that was lost and (on demand) links and the critical
 * path. */
json_t *command_simulation_json(const Evaluation *evaluation, bool verbose, bool path);

/* What the iteration waits for, by its timeline. Caller frees. */
char *command_waits_text(const Evaluation *evaluation);

/* Fails, naming device and bytes missing, if the plan does not fit: with KILTER_ERROR_INFEASIBLE
 * where no other one does (a strategy's only plan; a search's, with a proof), else
 * KILTER_ERROR_FAILED. */
bool command_check_fits(const Evaluation *evaluation, GError **error);

/* A progress line on a terminal, and a stop after the first Ctrl-C, while sweeps run. */
typedef struct Terminal Terminal;
Terminal *terminal_begin(bool quiet);
bool terminal_watch(const SweepProgress *progress, void *terminal);
void terminal_end(Terminal *terminal);

/* The commit that the program was built from, "" if it was not built in a checkout. */
const char *command_revision(void);

/* "kilter sweep -j 2 x.yaml", shell-quoted, for the store. Call before command_parse. Caller
 * frees. */
char *command_line(int argc, char **argv);

#endif
