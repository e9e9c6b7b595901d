/* Options, errors and output shared by all commands. Only main.c and the commands speak to the
 * terminal. */
#pragma once

#include <jansson.h>

#include "data/cluster/change.h"
#include "experiments/sweep/configuration.h"
#include "experiments/sweep/sweep.h"

/* A command gets its arguments (argv[0]: its name). The code of its error is the exit status. */
typedef bool (*CommandRun)(int argc, char **argv, GError **error);

/* The groups of commands, in the order of the help. */
#define COMMAND_GROUPS(X)                   \
    X(ASK, "Ask")                           \
    X(LIST, "Describe models and clusters") \
    X(SIMULATE, "Simulate")                 \
    X(RUN, "Launch and run")                \
    X(MEASURE, "Measure and calibrate")     \
    X(STUDY, "Study and publish")
#define COMMAND_GROUP_ID(group, title) COMMAND_##group,
typedef enum { COMMAND_GROUPS(COMMAND_GROUP_ID) } CommandGroup;

/* The most plans that commands take at once. */
enum { COMMAND_COMPARES = 16, COMMAND_SIMULATES = 64 };

/* Name (a_b is given as a-b), group, what it does, its arguments, how many at least and at most. */
/* clang-format off */
#define COMMAND_TABLE(X)                                                                                                                          \
    X(advise, ASK, "say which machines to use, and what mixing gains", "MODEL CLUSTER", 2, 2)                                                     \
    X(plan, ASK, "plan a model on a cluster", "MODEL CLUSTER | PLAN.json", 1, 2)                                                                  \
    X(compare, ASK, "show plans side by side, and what differs", "PLAN.json PLAN.json...", 2, COMMAND_COMPARES)                                   \
    X(sensitivity, ASK, "show how much each number of a cluster matters", "MODEL CLUSTER | PLAN.json", 1, 2)                                      \
    X(memory, ASK, "show what fills the memory of each device type", "MODEL CLUSTER | PLAN.json", 1, 2)                                           \
    X(days, ASK, "simulate days of training: failures, checkpoints, spares", "DAYS MODEL CLUSTER | DAYS PLAN.json", 2, 3)                         \
    X(models, LIST, "list the built-in models, or describe one", "[MODEL]", 0, 1)                                                                 \
    X(clusters, LIST, "list the clusters, or show one", "[NAME|FILE]", 0, 1)                                                                      \
    X(cluster, LIST, "make a cluster from a description of a machine", "import FILE", 2, 2)                                                       \
    X(devices, LIST, "list the device types with data sheets, or show one", "[DEVICE]", 0, 1)                                                     \
    X(links, LIST, "list the links inside and between machines", "", 0, 0)                                                                        \
    X(planners, LIST, "list the planners and options", "", 0, 0)                                                                                  \
    X(doctor, LIST, "say what is installed, where data come from, and how fast it is", "", 0, 0)                                                  \
    X(formats, LIST, "list the formats of files, or tell a file's", "[FILE...]", 0, 1000)                                                         \
    X(simulate, SIMULATE, "simulate an iteration of a plan", "PLAN.json | MODEL CLUSTER | PLAN.json ... --cluster CLUSTER", 1, COMMAND_SIMULATES) \
    X(run_trace, SIMULATE, "simulate execution traces and task graphs", "TRACE.0.et CLUSTER | TASKS.json", 1, 2)                                  \
    X(collective, SIMULATE, "simulate one collective on a network", "KIND CLUSTER", 2, 2)                                                         \
    X(kernel, SIMULATE, "time one kernel on a device", "KIND DEVICE", 2, 2)                                                                       \
    X(sfb, SIMULATE, "find the ops that sufficient factors duplicate (TAG)", "CASES.json | MODEL CLUSTER", 1, 2)                                  \
    X(theory, SIMULATE, "print the sharding theory of a model", "MODEL", 1, 1)                                                                    \
    X(export, RUN, "write a plan for a framework", "PLAN.json", 1, 1)                                                                             \
    X(verify, RUN, "prove a plan, or the sharding rules, by running", "PLAN.json | MODEL CLUSTER | MODEL", 1, 2)                                  \
    X(exec, RUN, "run a plan for real, and time it", "PLAN.json | MODEL CLUSTER", 1, 2)                                                           \
    X(profile, MEASURE, "measure ops and collectives on this machine", "MODEL...", 1, 100)                                                        \
    X(import, MEASURE, "read measurements in other formats", "FILE...", 1, 1000)                                                                  \
    X(calibrate, MEASURE, "fit a cluster's costs to measured ops and collectives", "FILE...", 1, 1000)                                            \
    X(fit, MEASURE, "fit a cluster's costs to measured iterations", "TRIALS.csv", 1, 1)                                                           \
    X(validate, MEASURE, "compare predicted with measured times of plans", "FILE.csv | RESULTS.db", 1, 1)                                         \
    X(sweep, STUDY, "evaluate the grid of an experiment file", "FILE.yaml", 1, 2)                                                                 \
    X(merge, STUDY, "join the results of the parts of a sweep", "RESULTS.db PART.db...", 2, 100000)                                               \
    X(league, STUDY, "rank the planners of an experiment", "EXPERIMENT", 1, 1)                                                                    \
    X(table, STUDY, "print stored results as a table", "RESULTS.db", 1, 1)                                                                        \
    X(plot, STUDY, "draw stored results as a chart", "RESULTS.db", 1, 1)                                                                          \
    X(show, STUDY, "print a stored result", "HASH", 1, 1)                                                                                         \
    X(rerun, STUDY, "evaluate a stored result again, and compare", "HASH", 1, 1)                                                                  \
    X(figure, STUDY, "draw a figure from stored results", "NAME|timeline|all|plan PLAN.json", 1, 2)                                               \
    X(reproduce, STUDY, "run a published experiment, draw its figure, check its claims", "[NAME|PAPER|all|scorecard[:SET,...]]", 0, 1)            \
    X(report, STUDY, "write results or a plan as a page", "RESULTS.db | PLAN.json | NAME|PAPER|all", 1, 1)
/* clang-format on */

#define X(name, ...) bool cmd_##name(int argc, char **argv, GError **error);
COMMAND_TABLE(X)
#undef X

/* The environment variables that count: a list of {name, meaning, value}. Caller frees. */
json_t *command_environment(void);

/* A row of the table. */
typedef struct {
    const char *name, *help;
    CommandRun run;
    CommandGroup group;
} Command;

/* Options that every command takes. */
typedef struct {
    gboolean json, quiet, verbose;
    char *seed_text, *memory_limit, *color;
    char **set;
    /* set by COMMAND_PIN_ENTRIES */
    char **pin, **pins, *strategy;
    char *line; /* the command as it was typed, shell-quoted */
    bool seed_given;
    PlannerOptions planner; /* with --seed, --set and pins applied */
} CommandOptions;

/* Entries of a command that plans: pins from files and one by one; those from files come first. */
/* clang-format off */
#define COMMAND_PIN_ENTRIES(options)                                           \
    {"pin", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(options)->pin, NULL, NULL},     \
    {"pins", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &(options)->pins, NULL, NULL}, \
    {"strategy", 0, 0, G_OPTION_ARG_FILENAME, &(options)->strategy, NULL, NULL}
/* clang-format on */

AUTOCLEAR(command_options_clear, CommandOptions)

/* A command's own options as a table, with one row per option:
 *
 *     #define TABLE_OPTIONS(X)     \
 *         X(TEXT, rows, "rows", 0) \
 *         X(COUNT, threads, "jobs", 'j', 0, G_MAXINT)
 *
 * from which follow the members of a struct, what clears it, the entries for help and parser (of a
 * struct `own`), and the checks of ranges. Kinds: TEXT, FILE (char *), LIST (char **), FLAG
 * (gboolean), COUNT (int, with its least and most), HIDDEN_TEXT and HIDDEN_FLAG (not in the help);
 * PLANNING, GRANULARITY, SLOWDOWN and CHANGES, which stand for options of a CommandPlanning
 * (CHANGED: CHANGES, with the struct), PINS of the CommandOptions `options`, and others with a
 * struct, in its header; VALUE (of a type) and OWNED (with what frees it), which are no options. A
 * kind's row has what declares a member, what clears it, its entries and the check of its range.
 * Help, and what stands for a value, are data: data/commands/NAME.txt and options.txt
 * (experiments/cli/describe.h). */
/* clang-format off */
#define COMMAND_KIND_TEXT(at, member, ...)        COMMAND_POINTER(at, char *, member, g_free, STRING, 0, __VA_ARGS__)
#define COMMAND_KIND_FILE(at, member, ...)        COMMAND_POINTER(at, char *, member, g_free, FILENAME, 0, __VA_ARGS__)
#define COMMAND_KIND_LIST(at, member, ...)        COMMAND_POINTER(at, char **, member, g_strfreev, STRING_ARRAY, 0, __VA_ARGS__)
#define COMMAND_KIND_HIDDEN_TEXT(at, member, ...) COMMAND_POINTER(at, char *, member, g_free, STRING, G_OPTION_FLAG_HIDDEN, __VA_ARGS__)
#define COMMAND_KIND_FLAG(at, member, ...) \
    (gboolean member;), (), (COMMAND_ENTRY_OF(at.member, NONE, 0, __VA_ARGS__)), ()
#define COMMAND_KIND_HIDDEN_FLAG(at, member, ...) \
    (gboolean member;), (), (COMMAND_ENTRY_OF(at.member, NONE, G_OPTION_FLAG_HIDDEN, __VA_ARGS__)), ()
#define COMMAND_KIND_COUNT(at, member, name, letter, least, most)                  \
    (int member;), (), (COMMAND_ENTRY_OF(at.member, INT, 0, name, letter)), \
    (&&command_check_range("--" name, own->member, least, most, error))
#define COMMAND_KIND_PLANNING(at, member) \
    COMMAND_PART(CommandPlanning, member, command_planning_clear, COMMAND_PLANNING_ENTRIES(at.member),)
#define COMMAND_KIND_PINS(at, member)             (), (), (COMMAND_PIN_ENTRIES(&member),), ()
#define COMMAND_KIND_GRANULARITY(at, member)      (), (), (COMMAND_GRANULARITY_ENTRY(at.member),), ()
#define COMMAND_KIND_SLOWDOWN(at, member)         (), (), (COMMAND_SLOWDOWN_ENTRY(at.member),), ()
#define COMMAND_KIND_CHANGES(at, member)          (), (), (COMMAND_CHANGE_ENTRIES(at.member),), ()
#define COMMAND_KIND_CHANGED(at, member) \
    COMMAND_PART(CommandPlanning, member, command_planning_clear, COMMAND_CHANGE_ENTRIES(at.member),)
#define COMMAND_KIND_VALUE(at, member, type)      (type member;), (), (), ()
#define COMMAND_KIND_OWNED(at, member, type, clear) \
    (type member;), (g_clear_pointer(&own->member, clear);), (), ()
/* Of several rows: a pointer; a struct with entries of its own. */
#define COMMAND_POINTER(at, type, member, clear, arg, flags, ...)    \
    (type member;), (g_clear_pointer(&own->member, clear);), \
    (COMMAND_ENTRY_OF(at.member, arg, flags, __VA_ARGS__)), ()
#define COMMAND_PART(Struct, member, clear, ...) \
    (Struct member;), (clear(&own->member);), (__VA_ARGS__), ()
#define COMMAND_ENTRY_OF(value, arg, flags, name, letter) \
    {name, letter, flags, G_OPTION_ARG_##arg, &value, NULL, NULL},
#define COMMAND_OPEN(...)                         __VA_ARGS__
#define COMMAND_1(members, clears, entries, range) COMMAND_OPEN members
#define COMMAND_2(members, clears, entries, range) COMMAND_OPEN clears
#define COMMAND_3(members, clears, entries, range) COMMAND_OPEN entries
#define COMMAND_4(members, clears, entries, range) COMMAND_OPEN range
#define COMMAND_PICK(column, ...)                 COMMAND_##column(__VA_ARGS__)
#define COMMAND_MEMBER(kind, ...)                 COMMAND_PICK(1, COMMAND_KIND_##kind(own, __VA_ARGS__))
#define COMMAND_CLEAR(kind, ...)                  COMMAND_PICK(2, COMMAND_KIND_##kind(own, __VA_ARGS__))
#define COMMAND_ENTRY(kind, ...)                  COMMAND_PICK(3, COMMAND_KIND_##kind(own, __VA_ARGS__))
#define COMMAND_RANGE(kind, ...)                  COMMAND_PICK(4, COMMAND_KIND_##kind(own, __VA_ARGS__))
/* clang-format on */

/* The struct, PREFIX_clear and its use by g_auto; and PREFIX_in_range(own, error). */
#define COMMAND_OPTIONS(Struct, prefix, TABLE)                    \
    typedef struct {                                              \
        TABLE(COMMAND_MEMBER)                                     \
    } Struct;                                                     \
    static inline void prefix##_clear(G_GNUC_UNUSED Struct *own){ \
        TABLE(COMMAND_CLEAR)} G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Struct, prefix##_clear)
#define COMMAND_RANGES(Struct, prefix, TABLE)                             \
    static inline bool prefix##_in_range(G_GNUC_UNUSED const Struct *own, \
                                         G_GNUC_UNUSED GError **error)    \
    {                                                                     \
        return true TABLE(COMMAND_RANGE);                                 \
    }

/* A command with its table of options and the first values of their members: it defines cmd_NAME.
 * The body that follows gets `own`, argc, argv, `options` and `error`, parsed and within the
 * ranges:
 *
 *     COMMAND(table, Own, TABLE_OPTIONS, 0)
 *     {
 *         return table_write(argv[1], own->output, error);
 *     }
 *
 * COMMAND_BELOW: with tables that --help prints below the summary; COMMAND_PLAIN: without options
 * of its own. */
#define COMMAND(name, Own, TABLE, ...) COMMAND_DEFINE(name, Own, TABLE, NULL, __VA_ARGS__)
#define COMMAND_BELOW(name, Own, TABLE, tables) \
    COMMAND_DEFINE(name, Own, TABLE, tables, 0)
#define COMMAND_DEFINE(name, Own, TABLE, tables, ...)                                    \
    COMMAND_RANGES(Own, name##_options, TABLE)                                           \
    static bool name##_command(Own *own, int argc, char **argv, CommandOptions *options, \
                               GError **error);                                          \
    bool cmd_##name(int argc, char **argv, GError **error)                               \
    {                                                                                    \
        g_auto(Own) own = {__VA_ARGS__};                                                 \
        g_auto(CommandOptions) options = {0};                                            \
        g_autofree char *below = tables;                                                 \
        const GOptionEntry entries[] = {TABLE(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};       \
        return command_parse(below, entries, &argc, argv, &options, error) &&            \
               name##_options_in_range(&own, error) &&                                   \
               name##_command(&own, argc, argv, &options, error);                        \
    }                                                                                    \
    static bool name##_command(                                                          \
        G_GNUC_UNUSED Own *own, G_GNUC_UNUSED int argc, G_GNUC_UNUSED char **argv,       \
        G_GNUC_UNUSED CommandOptions *options, G_GNUC_UNUSED GError **error)
#define COMMAND_PLAIN(name)                                                          \
    static bool name##_command(int argc, char **argv, const CommandOptions *options, \
                               GError **error);                                      \
    bool cmd_##name(int argc, char **argv, GError **error)                           \
    {                                                                                \
        g_auto(CommandOptions) options = {0};                                        \
        return command_parse(NULL, NULL, &argc, argv, &options, error) &&            \
               name##_command(argc, argv, &options, error);                          \
    }                                                                                \
    static bool name##_command(G_GNUC_UNUSED int argc, G_GNUC_UNUSED char **argv,    \
                               G_GNUC_UNUSED const CommandOptions *options,          \
                               G_GNUC_UNUSED GError **error)

/* A command as it is parsed. Its summary, help of options and examples are data:
 * data/commands/NAME.txt. */
typedef struct {
    const char *name, *arguments;
    int least, most;
    const char *tables;          /* printed below the summary; may be NULL */
    const GOptionEntry *entries; /* the command's own; may be NULL */
} CommandSyntax;

/* Parses the options of the command argv[0]: `own`, which may be NULL, and those of all commands;
 * argv is left with the name and the arguments. --help prints and exits; `tables` (NULL: none)
 * follow its summary. */
bool command_parse(const char *tables, const GOptionEntry *own, int *argc, char **argv,
                   CommandOptions *options, GError **error);

/* Checks that an option's value is within bounds, or one of the words; else fails with
 * KILTER_ERROR_INPUT. */
bool command_check_range(const char *option, int value, int least, int most,
                         GError **error);
/* The devices below n of a list such as 0,1 or 0-3, each once: uint32_t, in its order. NULL with
 * KILTER_ERROR_INPUT that names the option. */
GArray *command_ranks(const char *option, const char *list, uint32_t n, GError **error);
bool command_check_choice(const char *option, const char *value,
                          const char *const *choices, GError **error);

/* Prints and releases a command's answer: as JSON, or as text by the templates
 * (experiments/render.h; NULL ends them), in which {?verbose} holds under -v. Prints nothing under
 * --quiet. */
void command_report(const CommandOptions *options, json_t *answer,
                    ...) G_GNUC_NULL_TERMINATED;
/* Whether nothing is printed, so that no answer is needed. */
bool command_is_silent(const CommandOptions *options);
/* Prints one JSON object to stdout and releases the value. Its first member is "format": {"name":
 * "kilter COMMAND", "version"}; a list becomes a member with the command's name. */
void command_print_json(json_t *value);
/* One line on stderr: an object of that format with "error": {"status", "message"}. */
void command_print_error(const GError *error, int status);

/* The options of a command that plans: --planner (NULL: hap), --granularity (NULL: machine, or gpu
 * where a machine has unlike GPUs), changes of the cluster (data/cluster/change.h), and --slowdown,
 * which slows devices down. */
typedef struct {
    char *planner, *granularity;
    char **change[CHANGES]; /* NULL: none */
    char **slowdown;        /* RANK=FACTOR; NULL: none */
} CommandPlanning;

AUTOCLEAR(command_planning_clear, CommandPlanning)

/* clang-format off */
#define COMMAND_GRANULARITY_ENTRY(how) \
    {"granularity", 0, 0, G_OPTION_ARG_STRING, &(how).granularity, NULL, NULL}
#define COMMAND_PLANNING_ENTRIES(how)                                     \
    {"planner", 'p', 0, G_OPTION_ARG_STRING, &(how).planner, NULL, NULL}, \
    COMMAND_GRANULARITY_ENTRY(how)
#define COMMAND_SLOWDOWN_ENTRY(how) \
    {"slowdown", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).slowdown, NULL, NULL}
#define COMMAND_CHANGE_ENTRIES(how)                                                          \
    {"only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_ONLY], NULL, NULL},       \
    {"without", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_WITHOUT], NULL, NULL}, \
    {"add", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_ADD], NULL, NULL},         \
    {"scale", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(how).change[CHANGE_SCALE], NULL, NULL}
/* clang-format on */

/* Sets the option `for` from --for TARGET (NULL: nothing to do), as --set for=TARGET does. */
bool command_for(CommandOptions *options, const char *target, GError **error);

/* Applies --only, --without, --add and --scale to a cluster: machines are added and chosen before
 * anything is scaled. */
bool command_change(Cluster *cluster, const CommandPlanning *how, GError **error);
/* Whether any change was asked for. */
bool command_changes(const CommandPlanning *how);

/* Fills in the planner where none is asked for MODEL CLUSTER: auto, or hap with an option that only
 * it takes (only_hap: one of the command's own); and how far it searches, by a word of --effort
 * (NULL: its default) in the unit of the option `work`, unless this is set. */
bool command_ask(CommandPlanning *how, int argc, const char *effort, bool only_hap,
                 CommandOptions *options, GError **error);
/* Whether --set says how far it searches. */
bool command_sets_work(const CommandOptions *options);

/* Applies a --slowdown to a cluster. */
bool command_stretch(Cluster *cluster, Granularity granularity, char **slowdown,
                     GError **error);

/* The same options looked up, with the cluster. */
typedef struct {
    const Planner *planner;
    Granularity granularity;
    Cluster *cluster; /* stretched */
} CommandSetting;

bool command_setting(const CommandPlanning *how, const char *cluster,
                     CommandSetting *setting, GError **error);
AUTOCLEAR(command_setting_clear, CommandSetting)

/* The changes of an experiment by a command's options; granularity may be NULL. */
ExperimentChange command_experiment_change(const CommandOptions *options,
                                           const char *granularity);

/* The configuration of the arguments MODEL CLUSTER, which borrows from the setting. */
Configuration *command_configuration(const CommandPlanning *how, char **argv,
                                     const char *fidelity, const PlannerOptions *options,
                                     CommandSetting *setting, GError **error);
/* Plans and simulates MODEL CLUSTER, or simulates PLAN.json (argc 2), by a fidelity (NULL: the
 * default of the plan's kind). */
bool command_evaluate(const CommandPlanning *how, int argc, char **argv,
                      const char *fidelity, const CommandOptions *options,
                      Evaluation *evaluation, GError **error);

/* A plan file is planned already: only the simulation's options apply to it. */
bool command_check_plan_file(const char *file, const CommandPlanning *how,
                             const CommandOptions *options, GError **error);

/* A progress line on a terminal, and a stop after the first Ctrl-C, while sweeps run. */
typedef struct Terminal Terminal;
Terminal *terminal_begin(bool quiet);
bool terminal_watch(const SweepProgress *progress, void *terminal);
void terminal_end(Terminal *terminal);

/* A line on a terminal about a command that searches: "planning 3 of 7 (joint on 24 GPUs), 12 s,
 * about 20 s left", from the first second on. `doing` is borrowed. quiet: nothing is shown. */
typedef struct Pace Pace;
Pace *pace_begin(const char *doing, bool quiet);
/* Step `done` of `total` begins; from any thread. */
void pace_step(void *pace, uint32_t done, uint32_t total, const char *what);
AUTOPTR(pace_end, Pace)

/* The commit that the program was built from, "" if it was not built in a checkout. */
const char *command_revision(void);
