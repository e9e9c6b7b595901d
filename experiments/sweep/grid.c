/* Looking up the axes of a grid. */
#include "experiments/sweep/grid.h"

#include <string.h>

#include "data/base/free.h"
#include "data/cluster/change.h"
#include "data/models/model.h"
#include "data/plan/fidelity.h"
#include "experiments/sweep/result.h"
#include <jansson.h>

static CLEAR_DEFINE(variant_clear, Variant, variant, cluster_free(variant->cluster),
                    store_part_unref(variant->part),
                    free_each(variant->text, variant->role, variant->impossible));

CLEAR_DEFINE(grid_clear, Grid, grid,
             unref_arrays(grid->model, grid->cluster, grid->planner),
             free_each(grid->granularity, grid->fidelity, grid->seed));

static bool fail_at(const ExperimentFile *file, uint32_t axis, uint32_t index,
                    GError *cause, GError **error)
{
    g_autofree char *list = g_strconcat("grid.", file->key[axis], NULL);
    if (axis <= GRID_FIDELITY)
        index = file->plain[axis].from[index];
    return experiment_file_fail(file, list, index, cause, error);
}

/* Whether the named axis belongs to the plain one. */
static bool belongs(const ExperimentFile *file, uint32_t named, GridAxis plain)
{
    return experiment_file_key(file, named, file->key[plain]) ||
           (plain == GRID_PLANNER && experiment_file_key(file, named, "simulation"));
}

/* A model or cluster of an experiment, where it is a file with a path relative to the experiment's
 * own folder: "lab.yaml", "profile:net.json", "model/config.json:seq=4096". Where there is no such
 * file, the text stays as it is. Caller frees. */
static char *place_path(const ExperimentFile *file, const char *text)
{
    const gsize prefix = g_str_has_prefix(text, "profile:") ? strlen("profile:") : 0;
    const gsize n = strcspn(text + prefix, ":");
    g_autofree char *name = g_strndup(text + prefix, n);
    g_autofree char *folder = g_path_get_dirname(yaml_file(file->yaml));
    g_autofree char *path = g_build_filename(folder, name, NULL);
    if (strcmp(folder, ".") == 0 || g_path_is_absolute(name) || !strpbrk(name, "/.") ||
        !g_file_test(path, G_FILE_TEST_EXISTS))
        return g_strdup(text);
    return g_strdup_printf("%.*s%s%s", (int)prefix, text, path, text + prefix + n);
}

/* Entries of a plain axis with the values of the axes that belong to it. */
static double entries_of(const ExperimentFile *file, GridAxis plain)
{
    double n = experiment_file_list(file, plain)->n;
    for (uint32_t i = GRID_PLAIN; i < file->n_axes; i++)
        n *= belongs(file, i, plain) ? experiment_file_list(file, i)->n : 1;
    return n;
}

/* Every entry of the plain axis with every value of the axes that belong to it, the last one
 * fastest. */
static GArray *expand(const ExperimentFile *file, GridAxis plain)
{
    GArray *variants = array_owning(Variant, variant_clear);
    const uint32_t n = (uint32_t)entries_of(file, plain);
    for (uint32_t k = 0; k < n; k++) {
        Variant variant = {0};
        uint32_t rest = k;
        for (uint32_t i = file->n_axes; i-- > GRID_PLAIN;) {
            const bool own = belongs(file, i, plain);
            variant.value[i] = own ? rest % experiment_file_list(file, i)->n : GRID_NONE;
            rest /= own ? experiment_file_list(file, i)->n : 1;
        }
        variant.entry = rest;
        variant.text = place_path(file, experiment_file_list(file, plain)->value[rest]);
        variant.role = g_strdup(file->plain[plain].role[rest]);
        g_array_append_val(variants, variant);
    }
    return variants;
}

/* Adds "key=value" to a spec. */
static void extend(char **spec, const char *key, const char *value)
{
    char *longer =
        g_strdup_printf("%s%c%s=%s", *spec, strchr(*spec, ':') ? ',' : ':', key, value);
    put_block(*spec, longer);
}

static void extend_both(Variant *variant, const char *key, const char *value)
{
    extend(&variant->text, key, value);
    extend(&variant->role, key, value);
}

/* --- models --- */

/* A value that no model takes is an error. */
static bool check_model_value(const ExperimentFile *file, uint32_t axis, uint32_t index,
                              GError **error)
{
    const TextList *models = experiment_file_list(file, GRID_MODEL);
    const char *key = experiment_file_key(file, axis, "model");
    GError *first = NULL;
    for (uint32_t i = 0; i < models->n; i++) {
        g_autofree char *spec = place_path(file, models->value[i]);
        extend(&spec, key, experiment_file_list(file, axis)->value[index]);
        if (model_check(spec, first ? NULL : &first)) {
            g_clear_error(&first);
            return true;
        }
    }
    return fail_at(file, axis, index, first, error);
}

static bool open_models(Grid *grid, GError **error)
{
    const ExperimentFile *file = grid->file;
    const TextList *models = experiment_file_list(file, GRID_MODEL);
    for (uint32_t i = 0; i < models->n; i++) {
        GError *cause = NULL;
        g_autofree char *spec = place_path(file, models->value[i]);
        if (!model_check(spec, &cause))
            return fail_at(file, GRID_MODEL, i, cause, error);
    }
    for (uint32_t axis = GRID_PLAIN; axis < file->n_axes; axis++)
        for (uint32_t i = 0;
             belongs(file, axis, GRID_MODEL) && i < experiment_file_list(file, axis)->n;
             i++)
            if (!check_model_value(file, axis, i, error))
                return false;
    grid->model = expand(file, GRID_MODEL);
    array_each (Variant, variant, grid->model) {
        for (uint32_t axis = GRID_PLAIN; axis < file->n_axes; axis++)
            if (variant->value[axis] != GRID_NONE)
                extend_both(
                    variant, experiment_file_key(file, axis, "model"),
                    experiment_file_list(file, axis)->value[variant->value[axis]]);
    }
    return true;
}

/* --- clusters --- */

/* A change of the cluster that an axis asks for. */
typedef struct {
    ChangeKind kind;
    char *text; /* NULL: none */
} Change;

/* `only`, `without`, `add` and `scale.WHAT` are changes; other keys belong to a network's text. */
static Change grid_change_of(const char *key, const char *value)
{
    const bool scales = g_str_has_prefix(key, "scale.");
    for (ChangeKind kind = 0; kind < CHANGE_SCALE; kind++)
        if (strcmp(key, change_name(kind)) == 0)
            return (Change){kind, *value && strcmp(value, "none") != 0 ? g_strdup(value)
                                                                       : NULL};
    if (!scales)
        return (Change){CHANGES, NULL};
    return (Change){CHANGE_SCALE,
                    strcmp(value, "1") == 0
                        ? NULL
                        : g_strdup_printf("%s=%s", key + strlen("scale."), value)};
}

/* Adds the keys of a network to its text. */
static void extend_network(const ExperimentFile *file, Variant *variant)
{
    for (uint32_t axis = GRID_PLAIN; axis < file->n_axes; axis++) {
        if (variant->value[axis] == GRID_NONE)
            continue;
        const char *key = experiment_file_key(file, axis, "cluster");
        const char *value = experiment_file_list(file, axis)->value[variant->value[axis]];
        const Change change = grid_change_of(key, value);
        if (change.kind == CHANGES)
            extend_both(variant, key, value);
        g_free(change.text);
    }
}

static void add_words(char **text, ChangeKind kind, const char *change)
{
    char *longer = g_strdup_printf("%s %s %s", *text, change_name(kind), change);
    put_block(*text, longer);
}

/* Applies the changes; a change that the cluster cannot have makes its configurations
 * impossible. */
static void apply_changes(const ExperimentFile *file, Variant *variant)
{
    for (uint32_t axis = GRID_PLAIN; axis < file->n_axes && !variant->impossible;
         axis++) {
        if (variant->value[axis] == GRID_NONE)
            continue;
        Change change =
            grid_change_of(experiment_file_key(file, axis, "cluster"),
                           experiment_file_list(file, axis)->value[variant->value[axis]]);
        g_autofree char *text = change.text;
        g_autoptr(GError) wrong = NULL;
        if (!text)
            continue;
        add_words(&variant->text, change.kind, text);
        add_words(&variant->role, change.kind, text);
        if (!cluster_change(variant->cluster, change.kind, text, &wrong)) {
            variant->impossible = g_strdup(wrong->message);
            variant->failed = axis;
        }
    }
}

/* A value that no cluster takes is an error. */
static bool check_changes(const Grid *grid, uint32_t axis, GError **error)
{
    const uint32_t n = grid->cluster->len;
    g_autofree bool *taken = g_new0(bool, experiment_file_list(grid->file, axis)->n);
    for (uint32_t k = 0; k < n; k++) {
        const Variant *variant = &g_array_index(grid->cluster, Variant, k);
        taken[variant->value[axis]] |= !variant->impossible || variant->failed != axis;
    }
    for (uint32_t k = 0; k < n; k++) {
        const Variant *variant = &g_array_index(grid->cluster, Variant, k);
        if (!taken[variant->value[axis]])
            return fail_at(
                grid->file, axis, variant->value[axis],
                g_error_new(KILTER_ERROR, KILTER_ERROR_INPUT, "%s", variant->impossible),
                error);
    }
    return true;
}

/* The numbers of all clusters that a column changes. */
static bool scale_column(const ExperimentFile *file, Variant *variant, GError **error)
{
    const ColumnText *column = file->column;
    for (uint32_t i = 0; column && i < column->n_scale && !variant->impossible; i++) {
        GError *cause = NULL;
        g_autofree char *list = g_strdup_printf("columns[%u].scale",
                                                (uint32_t)(column - file->text->columns));
        add_words(&variant->text, CHANGE_SCALE, column->scale[i]);
        if (!cluster_change(variant->cluster, CHANGE_SCALE, column->scale[i], &cause))
            return experiment_file_fail(file, list, i, cause, error);
    }
    return true;
}

/* The cluster's part of a question; an impossible cluster is identified by its name. */
static StorePart *part_of(const Variant *variant, GError **error)
{
    return variant->impossible ? question_part(json_pack("{s:s}", "name", variant->text))
                               : question_cluster(variant->cluster, error);
}

static bool open_clusters(Grid *grid, GError **error)
{
    const ExperimentFile *file = grid->file;
    grid->cluster = expand(file, GRID_CLUSTER);
    array_each (Variant, variant, grid->cluster) {
        GError *cause = NULL;
        extend_network(file, variant);
        variant->cluster = cluster_load(variant->text, &cause);
        if (!variant->cluster)
            return fail_at(file, GRID_CLUSTER, variant->entry, cause, error);
        g_autofree char *unchanged = g_strdup(variant->text);
        apply_changes(file, variant);
        if (variant->impossible) { /* half changed, it is no longer a cluster */
            cluster_free(variant->cluster);
            variant->cluster = cluster_load(unchanged, NULL);
        }
        variant->part =
            scale_column(file, variant, error) ? part_of(variant, error) : NULL;
        if (!variant->part)
            return false;
    }
    for (uint32_t axis = GRID_PLAIN; axis < file->n_axes; axis++)
        if (belongs(file, axis, GRID_CLUSTER) && !check_changes(grid, axis, error))
            return false;
    return true;
}

/* --- planners --- */

static bool grid_read_options(const ExperimentFile *file, const ExperimentChange *change,
                              PlannerOptions *options, GError **error)
{
    planner_options_init(options);
    for (uint32_t i = 0; i < file->text->n_set; i++) {
        GError *cause = NULL;
        if (!option_assign(options, file->text->set[i], &cause))
            return experiment_file_fail(file, "set", i, cause, error);
    }
    for (uint32_t i = 0; file->column && i < file->column->n_set; i++) {
        GError *cause = NULL;
        g_autofree char *list = g_strdup_printf(
            "columns[%u].set", (uint32_t)(file->column - file->text->columns));
        if (!option_assign(options, file->column->set[i], &cause))
            return experiment_file_fail(file, list, i, cause, error);
    }
    for (char **pair = change->set; pair && *pair; pair++)
        if (!option_assign(options, *pair, error))
            return false;
    return true;
}

/* NAME or NAME:key=value,...; *options starts as the options for all planners. */
static const Planner *parse_planner(const char *text, PlannerOptions *options,
                                    GError **error)
{
    g_autoptr(Spec) spec = spec_read(text);
    const Planner *planner = planner_find(spec->word, error);
    return planner && options_assign(options, spec, error) ? planner : NULL;
}

/* Sets the options of the named axes, those of the simulation like those of the planner. */
static bool assign_axes(const ExperimentFile *file, Variant *variant, GError **error)
{
    for (uint32_t axis = GRID_PLAIN; axis < file->n_axes; axis++) {
        const uint32_t index = variant->value[axis];
        if (index == GRID_NONE)
            continue;
        const char *key = experiment_file_key(file, axis, "planner");
        const char *value = experiment_file_list(file, axis)->value[index];
        GError *cause = NULL;
        if (!key)
            key = experiment_file_key(file, axis, "simulation");
        if (!planner_options_set(&variant->options, key, value, &cause))
            return fail_at(file, axis, index, cause, error);
        extend_both(variant, key, value);
    }
    return true;
}

static bool open_planners(Grid *grid, const ExperimentChange *change, GError **error)
{
    PlannerOptions all;
    if (!grid_read_options(grid->file, change, &all, error))
        return false;
    grid->planner = expand(grid->file, GRID_PLANNER);
    array_each (Variant, variant, grid->planner) {
        GError *cause = NULL;
        variant->options = all;
        variant->planner = parse_planner(variant->text, &variant->options, &cause);
        if (!variant->planner)
            return fail_at(grid->file, GRID_PLANNER, variant->entry, cause, error);
        if (!assign_axes(grid->file, variant, error))
            return false;
    }
    return true;
}

/* --- the others --- */

static bool open_granularity(Grid *grid, const char *changed, GError **error)
{
    const TextList *list = experiment_file_list(grid->file, GRID_GRANULARITY);
    const uint32_t n = changed ? 0 : list->n;
    grid->n_granularity = MAX(n, 1);
    grid->granularity = g_new0(Granularity, grid->n_granularity);
    grid->granularity[0] = GRANULARITY_MACHINE;
    grid->by_planner = n == 0 && !changed;
    if (changed)
        return granularity_find(changed, grid->granularity, error);
    for (uint32_t i = 0; i < n; i++) {
        GError *cause = NULL;
        if (!granularity_find(list->value[i], &grid->granularity[i], &cause))
            return fail_at(grid->file, GRID_GRANULARITY, i, cause, error);
    }
    return true;
}

static bool open_fidelity(Grid *grid, GError **error)
{
    const TextList *list = experiment_file_list(grid->file, GRID_FIDELITY);
    grid->n_fidelity = MAX(list->n, 1);
    grid->fidelity = g_new0(const char *, grid->n_fidelity);
    grid->fidelity[0] = fidelity_name(FIDELITY_DEFAULT);
    for (uint32_t i = 0; i < list->n; i++) {
        GError *cause = NULL;
        grid->fidelity[i] = fidelity_find(list->value[i], &cause);
        if (!grid->fidelity[i])
            return fail_at(grid->file, GRID_FIDELITY, i, cause, error);
    }
    return true;
}

static bool open_seed(Grid *grid, const uint64_t *changed, GError **error)
{
    const TextList *list = experiment_file_list(grid->file, GRID_SEED);
    const uint32_t n = changed ? 0 : list->n;
    grid->n_seed = MAX(n, 1);
    grid->seed = g_new0(uint64_t, grid->n_seed);
    grid->seed[0] =
        changed ? *changed : g_array_index(grid->planner, Variant, 0).options.seed;
    for (uint32_t i = 0; i < n; i++) {
        GError *cause = NULL;
        if (!seed_parse(list->value[i], &grid->seed[i], &cause))
            return fail_at(grid->file, GRID_SEED, i, cause, error);
    }
    return true;
}

/* Sizes are bounded before anything is made of them: no grid takes more than 20 s or 2 GiB. */
static bool check_filled(const ExperimentFile *file, GError **error)
{
    static const uint32_t MOST[] = {[GRID_MODEL] = EXPERIMENT_MOST / 5,
                                    [GRID_CLUSTER] = EXPERIMENT_MOST / 50,
                                    [GRID_PLANNER] = EXPERIMENT_MOST / 5};
    double n = 1;
    for (uint32_t i = 0; i < file->n_axes; i++) {
        const TextList *list = experiment_file_list(file, i);
        g_autofree char *key = g_strconcat("grid.", file->key[i], NULL);
        n *= MAX(list->n, 1);
        if (i <= GRID_PLANNER && list->n == 0)
            return yaml_fail(file->yaml, error, key,
                             "the grid is empty; expected at least one %s", file->key[i]);
        if (i <= GRID_PLANNER && entries_of(file, (GridAxis)i) > MOST[i])
            return yaml_fail(
                file->yaml, error, key,
                "expected at most %u with the axes that change them, got %.4g", MOST[i],
                entries_of(file, (GridAxis)i));
    }
    return n <= EXPERIMENT_MOST ||
           yaml_fail(file->yaml, error, "grid",
                     "expected at most %d configurations, got %.4g", EXPERIMENT_MOST, n);
}

bool grid_open(Grid *grid, const ExperimentFile *file, const ExperimentChange *change,
               GError **error)
{
    grid->file = file;
    return check_filled(file, error) && open_planners(grid, change, error) &&
           open_granularity(grid, change->granularity, error) &&
           open_fidelity(grid, error) && open_seed(grid, change->seed, error) &&
           open_models(grid, error) && open_clusters(grid, error);
}
