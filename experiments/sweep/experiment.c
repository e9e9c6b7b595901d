/* From experiment files to configurations. */
#include "experiments/sweep/experiment.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/path.h"
#include "experiments/sweep/grid.h"
#include "experiments/sweep/result.h"

struct Experiment {
    char *name, *description;
    char *figure; /* the name without a column's */
    ExperimentFile *file;
    Grid grid;
    GPtrArray *clusters;       /* Cluster of collectives alone */
    GHashTable *subjects;      /* "GPUs MODEL" -> Subject */
    GPtrArray *configurations; /* Configuration */
    GHashTable *asked; /* a question's hash -> the last Configuration that asks it */
    GHashTable *words; /* of those that ask what another asks */
};

FREE_DEFINE(experiment_free, Experiment, experiment,
            free_each(experiment->name, experiment->description, experiment->figure),
            g_hash_table_unref(experiment->asked), g_hash_table_unref(experiment->words),
            g_ptr_array_unref(experiment->configurations),
            g_hash_table_unref(experiment->subjects),
            g_ptr_array_unref(experiment->clusters), grid_clear(&experiment->grid),
            experiment_file_free(experiment->file));

const char *experiment_name(const Experiment *experiment)
{
    return experiment->name;
}

const char *experiment_description(const Experiment *experiment)
{
    return experiment->description;
}

uint32_t experiment_count(const Experiment *experiment)
{
    return experiment->configurations->len;
}

const Configuration *experiment_at(const Experiment *experiment, uint32_t index)
{
    return experiment->configurations->pdata[index];
}

/* --- from the grid to configurations --- */

/* The words by which a question is asked; caller frees. */
static char *words_of(const Configuration *c)
{
    const StoreAsked asked = configuration_asked(c, "");
    return g_strjoin("\n", c->hash, asked.model, asked.cluster, asked.entry, asked.axes,
                     NULL);
}

/* Whether a point asks what `last`, the one before it of its question, or one before that asks in
 * the same words. */
static bool is_repeated(Experiment *experiment, const Configuration *last,
                        const Configuration *c)
{
    if (!last->is_twin)
        g_hash_table_add(experiment->words, words_of(last));
    return !g_hash_table_add(experiment->words, words_of(c));
}

/* Adds an identified configuration, unless it repeats another, and takes it over. */
static void add_configuration(Experiment *experiment, Configuration *c)
{
    Configuration *last = g_hash_table_lookup(experiment->asked, c->hash);
    if (last && is_repeated(experiment, last, c)) {
        configuration_free(c);
        return;
    }
    if (last) {
        last->twin = c;
        c->is_twin = true;
    }
    c->ordinal = experiment->configurations->len + 1;
    g_ptr_array_add(experiment->configurations, c);
    g_hash_table_replace(experiment->asked, c->hash, c);
}

/* The model for the cluster's number of GPUs. */
static Subject *experiment_subject_of(Experiment *experiment, const char *model,
                                      const Cluster *cluster)
{
    const uint32_t gpus = cluster_gpus(cluster);
    g_autofree char *key = g_strdup_printf("%u %s", gpus, model);
    Subject *subject = g_hash_table_lookup(experiment->subjects, key);
    if (!subject) {
        subject = subject_new(model, gpus);
        g_hash_table_insert(experiment->subjects, g_steal_pointer(&key), subject);
    }
    return subject;
}

static Configuration *configuration_at(Experiment *experiment, const GridPlace *place)
{
    const Grid *grid = &experiment->grid;
    const Variant *model = &g_array_index(grid->model, Variant, place->at[GRID_MODEL]);
    const Variant *on = &g_array_index(grid->cluster, Variant, place->at[GRID_CLUSTER]);
    const Variant *by = &g_array_index(grid->planner, Variant, place->at[GRID_PLANNER]);
    const Granularity granularity =
        grid->by_planner && planner_can(by->planner, PLANNER_GPUS)
            ? GRANULARITY_GPU
            : grid->granularity[place->at[GRID_GRANULARITY]];
    Configuration *c = configuration_of_subject(
        model->text, experiment_subject_of(experiment, model->text, on->cluster),
        on->text, on->cluster, granularity, by->planner, &by->options);
    c->seed = grid->seed[place->at[GRID_SEED]];
    c->fidelity = grid->fidelity[place->at[GRID_FIDELITY]];
    c->impossible = on->impossible;
    c->entry = by->text;
    c->role = (ConfigurationRole){model->role, on->role, by->role};
    c->axes = grid_axes(grid, place);
    return c;
}

/* Identifies a configuration. Its method is shared by all with the same cluster, planner,
 * granularity and fidelity, and made for the first of them. */
static bool identify(Experiment *experiment, Configuration *c, const GridPlace *place,
                     StorePart **method, GError **error)
{
    const Grid *grid = &experiment->grid;
    const Variant *by = &g_array_index(grid->planner, Variant, place->at[GRID_PLANNER]);
    GError *cause = NULL;
    if (!*method)
        *method = question_of_method(c, &cause);
    if (!*method)
        return experiment_file_fail(experiment->file, "grid.planner", by->entry, cause,
                                    error);
    result_identify_by(
        c, subject_part(c->subject),
        g_array_index(grid->cluster, Variant, place->at[GRID_CLUSTER]).part, *method);
    return true;
}

/* Moves to the next place, seeds changing fastest; false after the last. */
static bool advance(const Grid *grid, GridPlace *place)
{
    const uint32_t n[GRID_PLAIN] = {grid->model->len,   grid->cluster->len,
                                    grid->planner->len, grid->n_granularity,
                                    grid->n_fidelity,   grid->n_seed};
    for (uint32_t axis = GRID_PLAIN; axis-- > 0;) {
        if (++place->at[axis] < n[axis])
            return true;
        place->at[axis] = 0;
    }
    return false;
}

static uint32_t way_of(const Grid *grid, const GridPlace *place)
{
    return ((place->at[GRID_CLUSTER] * grid->planner->len + place->at[GRID_PLANNER]) *
                grid->n_granularity +
            place->at[GRID_GRANULARITY]) *
               grid->n_fidelity +
           place->at[GRID_FIDELITY];
}

static bool fill_grid(Experiment *experiment, GError **error)
{
    const Grid *grid = &experiment->grid;
    const uint32_t n_ways =
        grid->cluster->len * grid->planner->len * grid->n_granularity * grid->n_fidelity;
    g_autoptr(GPtrArray) methods =
        g_ptr_array_new_with_free_func((GDestroyNotify)store_part_unref);
    g_ptr_array_set_size(methods, (gint)n_ways);
    GridPlace place = {0};
    do {
        if (grid_excludes(grid, &place))
            continue;
        g_autoptr(Configuration) c = configuration_at(experiment, &place);
        if (!identify(experiment, c, &place,
                      (StorePart **)&methods->pdata[way_of(grid, &place)], error))
            return false;
        add_configuration(experiment, g_steal_pointer(&c));
    } while (advance(grid, &place));
    return experiment->configurations->len > 0 ||
           yaml_fail(experiment->file->yaml, error, "exclude",
                     "everything is excluded; expected at least one configuration");
}

/* --- collectives alone --- */

static bool add_exchange(Experiment *experiment, const Cluster *cluster, uint32_t index,
                         Granularity granularity, GError **error)
{
    const Exchanges *e = &experiment->file->text->exchange;
    g_autoptr(StorePart) part = question_cluster(cluster, error);
    if (!part)
        return false;
    for (uint32_t i = 0; i < e->n_kind * e->n_bytes * e->n_share; i++) {
        GError *cause = NULL;
        g_autoptr(Configuration) configuration = configuration_of_exchange(
            e->kind[i / e->n_share / e->n_bytes], e->bytes[i / e->n_share % e->n_bytes],
            e->share[i % e->n_share], e->cluster[index], cluster, granularity, &cause);
        if (!configuration)
            return experiment_file_fail(experiment->file, "exchange.kind",
                                        i / e->n_share / e->n_bytes, cause, error);
        if (!result_identify(configuration, part, error))
            return false;
        add_configuration(experiment, g_steal_pointer(&configuration));
    }
    return true;
}

static bool fill_exchanges(Experiment *experiment, const ExperimentChange *change,
                           GError **error)
{
    const ExperimentFile *file = experiment->file;
    const Exchanges *e = &file->text->exchange;
    if (!e->n_kind || !e->n_bytes || !e->n_share || !e->n_cluster)
        return yaml_fail(file->yaml, error, "exchange",
                         "expected at least one kind, bytes, share and cluster");
    Granularity granularity = GRANULARITY_GPU;
    const char *wanted = change->granularity ? change->granularity
                         : e->n_granularity  ? e->granularity[0]
                                             : "gpu";
    if (e->n_granularity > 1)
        return yaml_fail(file->yaml, error, "exchange.granularity",
                         "expected one granularity");
    if (!granularity_find(wanted, &granularity, error))
        return false;
    for (uint32_t i = 0; i < e->n_cluster; i++) {
        GError *cause = NULL;
        Cluster *cluster = cluster_load(e->cluster[i], &cause);
        if (!cluster)
            return experiment_file_fail(file, "exchange.cluster", i, cause, error);
        g_ptr_array_add(experiment->clusters, cluster);
        if (!add_exchange(experiment, cluster, i, granularity, error))
            return false;
    }
    return true;
}

static bool fill(Experiment *experiment, const ExperimentChange *change, GError **error)
{
    const ExperimentText *text = experiment->file->text;
    experiment->figure = g_strdup(text->name);
    experiment->name =
        experiment->file->column
            ? g_strdup_printf("%s@%s", text->name, experiment->file->column->name)
            : g_strdup(text->name);
    experiment->description = g_strdup(text->description ? text->description : "");
    const Exchanges *e = &text->exchange;
    const bool exchanges = e->n_kind || e->n_bytes || e->n_share || e->n_cluster;
    for (uint32_t axis = 0; exchanges && axis < experiment->file->n_axes; axis++)
        if (text->axis[axis].n)
            return yaml_fail(experiment->file->yaml, error, "exchange",
                             "expected no grid beside it");
    if (exchanges)
        return fill_exchanges(experiment, change, error);
    return grid_open(&experiment->grid, experiment->file, change, error) &&
           fill_grid(experiment, error);
}

uint32_t experiment_n_columns(const Experiment *experiment)
{
    return experiment->file->text->n_columns;
}

const char *experiment_column(const Experiment *experiment, uint32_t index)
{
    g_assert(index < experiment_n_columns(experiment));
    return experiment->file->text->columns[index].name;
}

const char *experiment_column_about(const Experiment *experiment, uint32_t index)
{
    g_assert(index < experiment_n_columns(experiment));
    const char *about = experiment->file->text->columns[index].about;
    return about ? about : "";
}

char *const *experiment_column_tests(const Experiment *experiment, uint32_t index,
                                     uint32_t *n)
{
    g_assert(index < experiment_n_columns(experiment));
    *n = experiment->file->text->columns[index].n_tests;
    return experiment->file->text->columns[index].tests;
}

static char *find_file(const char *name, GError **error)
{
    if (g_file_test(name, G_FILE_TEST_IS_REGULAR))
        return g_strdup(name);
    g_autofree char *relative = g_strdup_printf("experiments/%s.yaml", name);
    char *path = strchr(name, '/') ? NULL : path_find(relative);
    if (path)
        return path;
    g_auto(GStrv) known = path_list("experiments", ".yaml");
    g_autofree char *hint = names_hint(name, (const char *const *)known);
    return refused(
        error, "no experiment '%s', expected a file or the name of one in experiments/%s",
        name, hint);
}

Experiment *experiment_load(const char *name, const ExperimentChange *change,
                            GError **error)
{
    const ExperimentChange none = {0};
    g_autoptr(Experiment) experiment = g_new0(Experiment, 1);
    experiment->clusters = g_ptr_array_new_with_free_func((GDestroyNotify)cluster_free);
    experiment->subjects = text_table((GDestroyNotify)subject_free);
    experiment->configurations =
        g_ptr_array_new_with_free_func((GDestroyNotify)configuration_free);
    experiment->asked = g_hash_table_new(g_str_hash, g_str_equal);
    experiment->words = text_table(NULL);
    if (!change)
        change = &none;
    const char *at = g_file_test(name, G_FILE_TEST_EXISTS) ? NULL : strrchr(name, '@');
    g_autofree char *whole = at ? g_strndup(name, (gsize)(at - name)) : g_strdup(name);
    g_autofree char *path = find_file(whole, error);
    experiment->file =
        path ? experiment_file_read(path, at ? at + 1 : change->column, error) : NULL;
    return experiment->file && fill(experiment, change, error)
               ? g_steal_pointer(&experiment)
               : NULL;
}

StoreAsked *experiment_asked(const Experiment *experiment)
{
    StoreAsked *asked = g_new(StoreAsked, experiment_count(experiment));
    for (uint32_t i = 0; i < experiment_count(experiment); i++)
        asked[i] = configuration_asked(experiment_at(experiment, i), experiment->name);
    return asked;
}

/* In the roles of the grid's entries. */
static StoreAsked asked_in_role(const Experiment *experiment, const Configuration *c)
{
    StoreAsked asked = configuration_asked(c, experiment->figure);
    if (!c->role.planner)
        return asked;
    asked.model = c->role.model;
    asked.cluster = c->role.cluster;
    asked.entry = c->role.planner;
    return asked;
}

bool experiment_select(const Experiment *experiment, Store *store, GError **error)
{
    g_autofree StoreAsked *asked = g_new(StoreAsked, experiment_count(experiment));
    for (uint32_t i = 0; i < experiment_count(experiment); i++)
        asked[i] = asked_in_role(experiment, experiment_at(experiment, i));
    return store_select(store, asked, experiment_count(experiment), error);
}
