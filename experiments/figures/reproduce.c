/* Reproducing a figure from its experiment file. */
#include "experiments/figures/reproduce.h"

#include <errno.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/path.h"
#include "data/store/store.h"
#include "experiments/figures/figure.h"

/* Refuses a name without a paper, "fig2", that several papers have. */
static bool is_one_paper(const char *asked, const GPtrArray *names, GError **error)
{
    g_autofree char *end = g_strdup_printf("-%s", asked);
    g_autoptr(GString) list = g_string_new("");
    for (guint i = 0; i < names->len && g_str_has_suffix(names->pdata[i], end); i++)
        g_string_append_printf(list, "%s%s", i ? ", " : "", (char *)names->pdata[i]);
    return names->len < 2 || !*list->str ||
           refuse(error, "'%s' may be any of %s", asked, list->str);
}

char **reproduce_names(const char *asked, GError **error)
{
    g_auto(GStrv) known = path_list("experiments", ".yaml");
    g_autofree char *what = g_ascii_strdown(asked, -1);
    g_autofree char *paper = g_strdup_printf("%s-", what),
                    *figure = g_strdup_printf("-%s", what);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (char **name = known; *name; name++)
        if (strcmp(what, "all") == 0 || strcmp(what, *name) == 0 ||
            g_str_has_prefix(*name, paper) || g_str_has_suffix(*name, figure))
            g_ptr_array_add(names, g_strdup(*name));
    if (!is_one_paper(what, names, error)) {
        g_ptr_array_free(names, TRUE);
        return NULL;
    }
    g_ptr_array_set_free_func(names, NULL);
    if (names->len == 0) {
        g_autoptr(GStrvBuilder) all = g_strv_builder_new();
        for (char **name = known; *name; name++) {
            g_autofree char *of = g_strndup(*name, strcspn(*name, "-"));
            if (name == known || !g_str_has_prefix(name[-1], of))
                g_strv_builder_add(all, of);
            g_strv_builder_add(all, *name);
        }
        g_auto(GStrv) names_known = g_strv_builder_end(all);
        g_autofree char *expected =
            names_expected(what, (const char *const *)names_known);
        refuse(error, "no experiment or paper is named '%s'; %s", what, expected);
        g_ptr_array_free(names, TRUE);
        return NULL;
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* --- the whole --- */

static void add_progress(SweepProgress *all, const SweepProgress *more)
{
    all->total += more->total;
    all->present += more->present;
    all->done += more->done;
    all->oom += more->oom;
    all->impossible += more->impossible;
    all->failed += more->failed;
    all->elapsed_s += more->elapsed_s;
}

/* The claims by the results of a column, beside those of the experiment itself. */
static bool reproduce_add_column(const Experiment *experiment, uint32_t index,
                                 const ReproduceOptions *options, Store *store,
                                 Reproduction *reproduction, GError **error)
{
    const char *name = experiment_name(experiment);
    ExperimentChange change = options->change;
    SweepProgress progress = {0};
    change.column = experiment_column(experiment, index);
    g_autoptr(Experiment) column = experiment_load(name, &change, error);
    const bool good =
        column && sweep_run(column, store, &options->sweep, &progress, error);
    add_progress(&reproduction->progress, &progress);
    if (!good || !experiment_select(column, store, error))
        return false;
    g_autoptr(Claims) judged = claims_judge(name, store, error);
    return judged &&
           claims_add_column(reproduction->claims, experiment, index, judged, error);
}

static bool sweep_and_judge(const Experiment *experiment, const ReproduceOptions *options,
                            Reproduction *reproduction, GError **error)
{
    const char *name = experiment_name(experiment);
    uint32_t added;
    bool tried;
    g_autoptr(Store) store =
        !options->known || store_merge_check(options->known, &tried, error)
            ? store_open(reproduction->database, error)
            : NULL;
    if (!store || !store_begin_run(store, options->command, options->revision, error) ||
        (options->known && !store_merge(store, options->known, &added, error)) ||
        !sweep_run(experiment, store, &options->sweep, &reproduction->progress, error) ||
        !experiment_select(experiment, store, error))
        return false;
    reproduction->claims = claims_judge(name, store, error);
    if (!reproduction->claims ||
        !figure_draw(name, store, reproduction->claims, false, options->folder, error))
        return false;
    for (uint32_t i = 0; i < experiment_n_columns(experiment); i++)
        if (!reproduce_add_column(experiment, i, options, store, reproduction, error))
            return false;
    return true;
}

static bool prepare(const char *name, const char *folder, GError **error)
{
    /* A missing figure is found before any work is done for it. */
    g_autofree char *sql = figure_query(name, ".sql", error);
    if (!sql)
        return false;
    return g_mkdir_with_parents(folder, 0777) == 0 ||
           refuse(error, "cannot make the folder %s: %s", folder, g_strerror(errno));
}

bool reproduce_run(const Experiment *experiment, const ReproduceOptions *options,
                   Reproduction *reproduction, GError **error)
{
    const char *name = experiment_name(experiment);
    const char *folder = options->folder;
    *reproduction = (Reproduction){
        .database = options->database ? g_strdup(options->database)
                                      : g_strdup_printf("%s/%s.db", folder, name),
        .png = g_strdup_printf("%s/%s.png", folder, name),
        .svg = g_strdup_printf("%s/%s.svg", folder, name),
    };
    if (prepare(name, folder, error) &&
        sweep_and_judge(experiment, options, reproduction, error))
        return true;
    SweepProgress progress = reproduction->progress;
    reproduction_clear(reproduction);
    reproduction->progress = progress;
    return false;
}

CLEAR_DEFINE(reproduction_clear, Reproduction, reproduction,
             let_go(reproduction->database, g_free), let_go(reproduction->png, g_free),
             let_go(reproduction->svg, g_free),
             let_go(reproduction->claims, claims_free));
