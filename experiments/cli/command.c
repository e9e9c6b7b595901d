/* Options and errors that commands share. */
#include "experiments/cli/command.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "experiments/answers/command_line.h"
#include "experiments/cli/help.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/screen.h"
#include "experiments/render.h"
#include "experiments/revision.h" /* KILTER_REVISION, made when the program is built */

#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CLEAR_DEFINE(command_options_clear, CommandOptions, options,
             let_go(options->seed_text, g_free), let_go(options->memory_limit, g_free),
             let_go(options->color, g_free), let_go(options->set, g_strfreev),
             let_go(options->line, g_free), let_go(options->strategy, g_free),
             let_go(options->pin, g_strfreev), let_go(options->pins, g_strfreev));

const char *command_revision(void)
{
    return KILTER_REVISION;
}

static bool set_all(CommandOptions *options, const char *key, char **value,
                    GError **error)
{
    for (; value && *value; value++)
        if (!planner_options_set(&options->planner, key, *value, error))
            return false;
    return true;
}

static bool finish_options(CommandOptions *options, GError **error)
{
    if (options->quiet)
        limits_hush();
    if (options->memory_limit && !limits_set_memory(options->memory_limit, error))
        return kilter_prefix(error, "--memory-limit: ");
    if (options->color && !screen_set_color(options->color, error))
        return false;
    planner_options_init(&options->planner);
    options->seed_given = options->seed_text != NULL;
    if (options->seed_given &&
        !seed_parse(options->seed_text, &options->planner.seed, error))
        return kilter_prefix(error, "--seed: ");
    if (options->strategy &&
        !planner_options_set(&options->planner, "strategy", options->strategy, error))
        return kilter_prefix(error, "--strategy: ");
    for (char **pair = options->set; pair && *pair; pair++)
        if (!option_assign(&options->planner, *pair, error))
            return kilter_prefix(error, "--set: ");
    return set_all(options, "pins", options->pins, error) &&
           set_all(options, "pin", options->pin, error);
}

static GOptionContext *make_context(const CommandSyntax *syntax,
                                    const GOptionEntry *common)
{
    GOptionContext *context = g_option_context_new(NULL);
    if (syntax->entries)
        g_option_context_add_main_entries(context, syntax->entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    g_option_context_set_help_enabled(context, FALSE);
    return context;
}

/* "; did you mean '--planner'?" where GLib's message names an option that the command does not
 * have, else "". Caller frees. */
static char *option_hint(const char *message, const CommandSyntax *syntax,
                         const GOptionEntry *common)
{
    const GOptionEntry *const list[] = {syntax->entries, common};
    const char *at = strstr(message, " --");
    g_autofree char *given = at ? g_strndup(at + 1, strcspn(at + 1, "= ")) : NULL;
    g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < G_N_ELEMENTS(list); i++)
        for (const GOptionEntry *e = list[i]; e && e->long_name; e++)
            if (!(e->flags & G_OPTION_FLAG_HIDDEN))
                g_ptr_array_add(known, g_strconcat("--", e->long_name, NULL));
    g_ptr_array_add(known, NULL);
    g_autofree char *near =
        names_hint(given ? given : "", (const char *const *)known->pdata);
    return *near || !given ? g_steal_pointer(&near) : command_having(given + 2);
}

/* Whether the option of this letter, or of this name, takes a value. */
static bool takes_value(const GOptionEntry *const *list, char letter, const char *name)
{
    for (; *list; list++)
        for (const GOptionEntry *e = *list; e->long_name; e++)
            if (name ? strcmp(e->long_name, name) == 0 : e->short_name == letter)
                return e->arg != G_OPTION_ARG_NONE;
    return false;
}

/* The arguments with values apart from their letters: -j1 is -j 1 and -qj1 is -q -j 1, as for make
 * and gcc; GOption knows only the second form. What follows "--" are no options. *help: whether
 * --help or -h stands where an option may. Ends with NULL; the caller frees it. */
static char **split_options(int argc, char **argv, const GOptionEntry *const *list,
                            bool *help)
{
    g_autoptr(GStrvBuilder) split = g_strv_builder_new();
    bool is_value = true,
         more = true; /* of the option before; the program's name is none */
    for (int i = 0; i < argc; i++) {
        const char *at = argv[i];
        const bool plain = is_value || !more || at[0] != '-';
        is_value = false;
        more &= plain || strcmp(at, "--") != 0;
        *help |= !plain && (strcmp(at, "--help") == 0 || strcmp(at, "-h") == 0);
        if (!plain && at[1] == '-')
            is_value = takes_value(list, 0, at + 2);
        if (plain || at[1] == '-' || !at[1]) {
            g_strv_builder_add(split, at);
            continue;
        }
        for (at++; at[1] && !takes_value(list, *at, NULL);)
            at++;
        is_value = !at[1] && takes_value(list, *at, NULL);
        g_autofree char *letters = g_strndup(argv[i], (gsize)(at + 1 - argv[i]));
        g_strv_builder_add(split, letters);
        if (at[1])
            g_strv_builder_add(split, at + 1);
    }
    return g_strv_builder_end(split);
}

/* Parses all that were split, and leaves the arguments in argv. */
static bool parse_options(GOptionContext *context, char **all, int *argc, char **argv,
                          GError **error)
{
    g_autofree char **left = g_memdup2(all, (g_strv_length(all) + 1) * sizeof *all);
    char **parsed = left;
    int n = (int)g_strv_length(all), at = 0;
    if (!g_option_context_parse(context, &n, &parsed, error))
        return false;
    /* Arguments are never split, so that each is one of argv, in the same order. */
    for (int i = 0; i < n; i++) {
        while (strcmp(argv[at], parsed[i]) != 0)
            at++;
        argv[i] = argv[at++];
    }
    argv[n] = NULL;
    *argc = n;
    return true;
}

/* The row of COMMAND_TABLE with this name as it is given. */
static CommandSyntax command_row(const char *name)
{
#define COMMAND_ROW(name, group, help, ...) {#name, __VA_ARGS__, NULL, NULL},
    static const CommandSyntax rows[] = {COMMAND_TABLE(COMMAND_ROW)};
    g_autofree char *word = g_strdelimit(g_strdup(name), "-", '_');
    CommandSyntax row = rows[NAME_PLACE(rows, G_N_ELEMENTS(rows), name, word)];
    row.name = name;
    return row;
}

/* Whether an option can have this file, which is not one of the arguments: most are written. */
static bool command_file_apart(const char *option, const char *file, char **argument,
                               GError **error)
{
    GStatBuf of, other;
    if (!*file)
        return refuse(error, "--%s: expected a name, got ''", option);
    for (; g_stat(file, &of) == 0 && S_ISREG(of.st_mode) && *argument; argument++)
        if (g_stat(*argument, &other) == 0 && of.st_dev == other.st_dev &&
            of.st_ino == other.st_ino)
            return refuse(error, "--%s: expected another file than the argument %s",
                          option, *argument);
    return true;
}

bool command_parse(const char *tables, const GOptionEntry *own, int *argc, char **argv,
                   CommandOptions *options, GError **error)
{
    options->line = command_line(*argc, argv);
    CommandSyntax row = command_row(argv[0]);
    row.tables = tables;
    row.entries = own;
    const CommandSyntax *const syntax = &row;
    const GOptionEntry common[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, NULL, NULL},
        {"seed", 0, 0, G_OPTION_ARG_STRING, &options->seed_text, NULL, NULL},
        {"set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->set, NULL, NULL},
        {"memory-limit", 0, 0, G_OPTION_ARG_STRING, &options->memory_limit, NULL, NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &options->quiet, NULL, NULL},
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &options->verbose, NULL, NULL},
        {"color", 0, 0, G_OPTION_ARG_STRING, &options->color, NULL, NULL},
        G_OPTION_ENTRY_NULL};
    g_autofree char *program = g_strdup_printf("kilter %s", syntax->name);
    if (*argc == 2 && strcmp(argv[1], COMMAND_DESCRIBE) == 0)
        return command_describe(syntax, common, error);
    g_set_prgname(program);
    g_autoptr(GOptionContext) context = make_context(syntax, common);
    g_autoptr(GError) bad = NULL;
    const GOptionEntry *const list[] = {syntax->entries ? syntax->entries : common,
                                        common, NULL};
    bool help = false;
    g_auto(GStrv) all = split_options(*argc, argv, list, &help);
    if (help) {
        help_print(syntax, common);
        exit(EXIT_SUCCESS);
    }
    if (!parse_options(context, all, argc, argv, &bad)) {
        g_autofree char *hint =
            g_error_matches(bad, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)
                ? option_hint(bad->message, syntax, common)
                : g_strdup("");
        return refuse(error, "%s%s%s %s --help", bad->message, hint,
                      *hint ? " See" : "; see", program);
    }
    int n = *argc - 1;
    if (n < syntax->least || n > syntax->most) {
        const char *pair = n > syntax->most && strchr(argv[n], '=') ? argv[n] : NULL;
        return refuse(error, "expected %s%s%s; see %s --help",
                      *syntax->arguments ? syntax->arguments : "no arguments",
                      pair ? ", and options as --set " : "", pair ? pair : "", program);
    }
    for (const GOptionEntry *e = own; e && e->long_name; e++)
        if (e->arg == G_OPTION_ARG_FILENAME && *(char **)e->arg_data &&
            !command_file_apart(e->long_name, *(char **)e->arg_data, argv + 1, error))
            return false;
    return finish_options(options, error);
}

bool command_check_range(const char *option, int value, int least, int most,
                         GError **error)
{
    return (value >= least && value <= most) ||
           refuse(error, "%s: expected %d to %d, got %d", option, least, most, value);
}

GArray *command_ranks(const char *option, const char *list, uint32_t n, GError **error)
{
    g_autoptr(GArray) device = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_auto(GStrv) words = g_strsplit(*list ? list : " ", ",", -1);
    g_autofree bool *seen = g_new0(bool, n);
    for (char **word = words; *word; word++) {
        guint64 low, high;
        g_auto(GStrv) ends = g_strsplit(*word, "-", 2);
        const char *last = g_strv_length(ends) == 2 ? ends[1] : *word;
        if (!*ends || !g_ascii_string_to_unsigned(ends[0], 10, 0, n - 1, &low, NULL) ||
            !g_ascii_string_to_unsigned(last, 10, low, n - 1, &high, NULL))
            return refused(
                error,
                "%s: expected numbers from 0 to %u, such as 0,1 or 0-3, got '%.60s'",
                option, n - 1, *word);
        for (uint32_t d = (uint32_t)low; d <= high; d++) {
            if (seen[d])
                return refused(error, "%s: expected each number once, got %u again",
                               option, d);
            seen[d] = true;
            g_array_append_val(device, d);
        }
    }
    return g_steal_pointer(&device);
}

bool command_check_choice(const char *option, const char *value,
                          const char *const *choices, GError **error)
{
    g_autofree char *known = g_strjoinv(", ", (char **)choices);
    g_autofree char *hint = names_hint(value, choices);
    return g_strv_contains(choices, value) ||
           refuse(error, "%s: expected one of %s, got '%s'%s", option, known, value,
                  hint);
}

/* The first member of every object that is printed. */
static json_t *format_json(void)
{
    enum { VERSION = 1 };
    const char *program = g_get_prgname();
    return json_pack("{s:s, s:i}", "name", program ? program : "kilter", "version",
                     VERSION);
}

/* The value as an object; a list becomes a member with the command's name. Takes the value. */
static json_t *object_of(json_t *value)
{
    const char *program = g_get_prgname();
    const char *command = program ? strchr(program, ' ') : NULL;
    return json_is_object(value)
               ? value
               : json_pack("{s:o}", command ? command + 1 : "list", value);
}

void command_print_json(json_t *value)
{
    json_auto_t *members = object_of(value);
    g_assert(
        !json_object_get(members, "format")); /* a command's own member would hide it */
    json_auto_t *object = json_pack("{s:o}", "format", format_json());
    json_object_update(object, members);
    char *text = json_dumps(object, JSON_INDENT(2));
    g_assert(text); /* dumping fails only for NULL */
    puts(text);
    free(text);
}

bool command_is_silent(const CommandOptions *options)
{
    return options->quiet && !options->json;
}

void command_report(const CommandOptions *options, json_t *answer, ...)
{
    va_list templates;
    if (options->json) {
        command_print_json(answer);
        return;
    }
    json_auto_t *members = object_of(answer);
    json_object_set_new(members, "verbose", json_boolean(options->verbose));
    va_start(templates, answer);
    for (const char *next; !options->quiet && (next = va_arg(templates, const char *));) {
        g_autofree char *text = render(next, members);
        screen_put(text, stdout);
    }
    va_end(templates);
}

void command_print_error(const GError *error, int status)
{
    json_auto_t *object = json_pack("{s:o, s:{s:i, s:s}}", "format", format_json(),
                                    "error", "status", status, "message", error->message);
    char *text = json_dumps(object, JSON_COMPACT);
    fprintf(stderr, "%s\n", text);
    free(text);
}

bool command_stretch(Cluster *cluster, Granularity granularity, char **slowdown,
                     GError **error)
{
    for (; slowdown && *slowdown; slowdown++)
        if (!cluster_stretch(cluster, granularity, *slowdown, error))
            return false;
    return true;
}

void command_planning_clear(CommandPlanning *how)
{
    g_clear_pointer(&how->planner, g_free);
    g_clear_pointer(&how->granularity, g_free);
    g_clear_pointer(&how->slowdown, g_strfreev);
    for (ChangeKind kind = 0; kind < CHANGES; kind++)
        g_clear_pointer(&how->change[kind], g_strfreev);
}

bool command_changes(const CommandPlanning *how)
{
    bool any = false;
    for (ChangeKind kind = 0; kind < CHANGES; kind++)
        any |= how->change[kind] && *how->change[kind];
    return any;
}

bool command_change(Cluster *cluster, const CommandPlanning *how, GError **error)
{
    for (ChangeKind kind = 0; kind < CHANGES; kind++)
        for (char **text = how->change[kind]; text && *text; text++)
            if (!cluster_change(cluster, kind, *text, error))
                return false;
    return true;
}

bool command_for(CommandOptions *options, const char *target, GError **error)
{
    if (!target)
        return true;
    if (!planner_options_set(&options->planner, "for", target, error))
        return kilter_prefix(error, "--for: ");
    g_autoptr(GStrvBuilder) set = g_strv_builder_new();
    for (uint32_t i = 0; options->set && options->set[i]; i++)
        g_strv_builder_add(set, options->set[i]);
    g_autofree char *text = g_strdup_printf("for=%s", target);
    g_strv_builder_add(set, text);
    g_strfreev(options->set);
    options->set = g_strv_builder_end(set);
    return true;
}

bool command_sets_work(const CommandOptions *options)
{
    bool sets = false;
    for (uint32_t i = 0; options->set && options->set[i]; i++)
        sets |= g_str_has_prefix(options->set[i], "work=");
    return sets;
}

bool command_ask(CommandPlanning *how, int argc, const char *effort, bool only_hap,
                 CommandOptions *options, GError **error)
{
    static const struct {
        const char *word, *work;
    } efforts[] = {{"quick", "1"}, {"normal", "15"}, {"long", "400"}};
    only_hap |= options->pin || options->pins || how->granularity || how->slowdown;
    if (argc > 2 && !how->planner)
        how->planner = g_strdup(only_hap ? "hap" : "auto");
    const char *word = effort                                 ? effort
                       : g_strcmp0(how->planner, "auto") == 0 ? "normal"
                                                              : "long";
    if (command_sets_work(options))
        return !effort || refuse(error, "expected --effort or --set work, not both");
    const uint32_t i = NAME_PLACE(efforts, G_N_ELEMENTS(efforts), word, word);
    return i < G_N_ELEMENTS(efforts)
               ? planner_options_set(&options->planner, "work", efforts[i].work, error)
               : refuse(error, "--effort: expected quick, normal or long, got '%s'",
                        word);
}

bool command_setting(const CommandPlanning *how, const char *cluster,
                     CommandSetting *setting, GError **error)
{
    *setting = (CommandSetting){
        .planner = planner_find(how->planner ? how->planner : "hap", error)};
    if (!setting->planner ||
        (how->granularity &&
         !granularity_find(how->granularity, &setting->granularity, error)))
        return false;
    setting->cluster = cluster_load(cluster, error);
    if (!setting->cluster || !command_change(setting->cluster, how, error))
        return false;
    if (!how->granularity)
        setting->granularity = planner_can(setting->planner, PLANNER_GPUS)
                                   ? GRANULARITY_GPU
                                   : granularity_default(setting->cluster);
    return granularity_check(setting->cluster, setting->granularity, error) &&
           command_stretch(setting->cluster, setting->granularity, how->slowdown, error);
}

CLEAR_DEFINE(command_setting_clear, CommandSetting, setting,
             let_go(setting->cluster, cluster_free));

ExperimentChange command_experiment_change(const CommandOptions *options,
                                           const char *granularity)
{
    return (ExperimentChange){.granularity = granularity,
                              .seed = options->seed_given ? &options->planner.seed : NULL,
                              .set = options->set};
}
