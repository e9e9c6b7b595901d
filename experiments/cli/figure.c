/* kilter figure. */
#include <stdio.h>
#include <string.h>

#include "data/base/path.h"
#include "data/plan/fidelity.h"
#include "data/store/store.h"
#include "experiments/cli/command.h"
#include "experiments/figures/figure.h"
#include "experiments/figures/plan_figure.h"
#include "experiments/figures/timeline_figure.h"
#include "experiments/sweep/experiment.h"

/* clang-format off */
#define FIGURE_OPTIONS(X)          \
    X(FILE, database, "db", 0)     \
    X(FILE, folder, "output", 'o') \
    X(FLAG, bare, "bare", 0)       \
    X(FILE, trace, "trace", 't')
/* clang-format on */
COMMAND_OPTIONS(Own, figure_options, FIGURE_OPTIONS)

/* The figure timeline, which is not drawn from the store. */
static bool draw_timeline(const Own *own, GError **error)
{
    if (!own->trace)
        return refuse(
            error,
            "timeline needs --trace FILE, as kilter simulate --trace FILE writes it");
    return timeline_figure_draw(own->trace, own->folder ? own->folder : "out", error);
}

/* Draws the plan in a file, simulated by `flow`. */
static bool draw_plan(const char *file, const Own *own, const CommandOptions *options,
                      GError **error)
{
    const CommandPlanning how = {0};
    char *argument[] = {NULL, (char *)file, NULL};
    g_auto(Evaluation) e = {0};
    return command_evaluate(&how, 2, argument, fidelity_name(FIDELITY_DRAWN), options, &e,
                            error) &&
           plan_figure_draw(e.plan, e.graph, e.view, e.report,
                            own->folder ? own->folder : "out", error);
}

static void note_row(uint32_t n_columns, char **value, char **column, void *any)
{
    (void)n_columns, (void)value, (void)column;
    *(bool *)any = true;
}

/* Selects the configurations that the experiment of that name asks for now. Selects the whole store
 * if there is no such experiment, or if the store has none of its configurations but, for example,
 * rows on other clusters. */
static bool select_asked(const char *name, Store **store, const char *database,
                         const CommandOptions *options, GError **error)
{
    g_autofree char *relative = g_strdup_printf("experiments/%s.yaml", name);
    g_autofree char *path = path_find(relative);
    if (!path)
        return true;
    const ExperimentChange change = command_experiment_change(options, NULL);
    g_autoptr(Experiment) experiment = experiment_load(path, &change, error);
    bool any = false;
    if (!experiment || !experiment_select(experiment, *store, error) ||
        !store_query(*store, "SELECT 1 FROM result LIMIT 1", note_row, &any, error))
        return false;
    if (any)
        return true;
    store_close(*store);
    *store = store_open_read(database, error);
    return *store != NULL;
}

static bool figure_command_draw(const char *name, const char *plan, const Own *own,
                                const CommandOptions *options, GError **error)
{
    if (strcmp(name, "plan") == 0)
        return plan ? draw_plan(plan, own, options, error)
                    : refuse(error,
                             "plan needs the plan's file: kilter figure plan PLAN.json");
    if (plan)
        return refuse(error, "expected no more than %s, got '%s'", name, plan);
    if (strcmp(name, "timeline") == 0)
        return draw_timeline(own, error);
    if (own->trace)
        return refuse(error, "--trace is for the figure timeline, not for %s", name);
    g_autofree char *database =
        own->database ? g_strdup(own->database) : g_strdup_printf("out/%s.db", name);
    /* Checked before the store, since an unknown figure is the more likely mistake. */
    g_autofree char *sql = figure_query(name, ".sql", error);
    g_autoptr(Store) store = sql ? store_open_read(database, error) : NULL;
    if (!store || !select_asked(name, &store, database, options, error))
        return false;
    g_autoptr(Claims) claims = claims_judge(name, store, error);
    return claims && figure_draw(name, store, claims, own->bare,
                                 own->folder ? own->folder : "out", error);
}

COMMAND(figure, Own, FIGURE_OPTIONS, 0)
{
    const char *folder = own->folder ? own->folder : "out";
    g_autofree char *more = figure_path("", folder, 1);
    if (!more && strcmp(argv[1], "all") == 0)
        return refuse(error, "--output: expected a folder for all figures, got %s",
                      folder);
    char *one[] = {argv[1], NULL};
    g_auto(GStrv) names = strcmp(argv[1], "all") == 0 ? figure_list() : g_strdupv(one);
    json_t *files = json_array();
    bool good = true;
    for (char **name = names; good && *name; name++) {
        good = figure_command_draw(*name, argc > 2 ? argv[2] : NULL, own, options, error);
        char *path;
        for (int i = 0; (path = figure_path(*name, folder, i)); i++) {
            json_array_append_new(files, json_string(path));
            if (good && !options->json && !options->quiet)
                printf("%s%s", i ? " " : "", path);
            g_free(path);
        }
        if (good && !options->json && !options->quiet)
            printf("\n");
    }
    json_t *object = json_pack("{s:o}", "files", files);
    if (good && options->json)
        command_print_json(object);
    else
        json_decref(object);
    return good;
}
