/* Reading experiment files. */
#include "experiments/sweep/experiment_parts.h"

#include <cyaml/cyaml.h>
#include <string.h>

#include "experiments/sweep/result.h"

/* --- the file --- */

static const cyaml_schema_value_t text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED)};

#define TEXT_LIST(owner, key)                                                         \
    CYAML_FIELD_SEQUENCE_COUNT(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, owner, \
                               key, n_##key, &text_entry, 0, CYAML_UNLIMITED)

static const cyaml_schema_field_t grid_fields[] = {TEXT_LIST(Grid, model),
                                                   TEXT_LIST(Grid, cluster),
                                                   TEXT_LIST(Grid, planner),
                                                   TEXT_LIST(Grid, granularity),
                                                   TEXT_LIST(Grid, fidelity),
                                                   TEXT_LIST(Grid, seed),
                                                   CYAML_FIELD_END};

static const cyaml_schema_field_t exchange_fields[] = {
    TEXT_LIST(Exchanges, kind),        TEXT_LIST(Exchanges, bytes),
    TEXT_LIST(Exchanges, share),       TEXT_LIST(Exchanges, cluster),
    TEXT_LIST(Exchanges, granularity), CYAML_FIELD_END};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, File, name, 1, CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("description", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, File,
                           description, 0, CYAML_UNLIMITED),
    CYAML_FIELD_MAPPING("grid", CYAML_FLAG_OPTIONAL, File, grid, grid_fields),
    CYAML_FIELD_MAPPING("exchange", CYAML_FLAG_OPTIONAL, File, exchange, exchange_fields),
    TEXT_LIST(File, set),
    CYAML_FIELD_END};

static const cyaml_schema_value_t file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, File, file_fields)};

/* --- the experiment --- */

void experiment_free(Experiment *experiment)
{
    if (!experiment)
        return;
    g_free(experiment->name);
    g_free(experiment->description);
    g_ptr_array_unref(experiment->configurations);
    g_hash_table_unref(experiment->subjects);
    g_ptr_array_unref(experiment->clusters);
    g_ptr_array_unref(experiment->parts);
    g_free(experiment);
}

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

bool experiment_fail_entry(const Source *source, const char *list, uint32_t index,
                           GError *cause, GError **error)
{
    g_autofree char *key = g_strdup_printf("%s[%u]", list, index);
    yaml_fail(source->yaml, error, key, "%s", cause->message);
    g_error_free(cause);
    return false;
}

/* --- from the file to configurations --- */

/* The name becomes part of file names. */
#define NAME_LETTERS G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "._-"

/* The axes of the grid, resolved; one entry an axis value. */
typedef struct {
    const Planner **planner;
    Granularity *granularity;
    const char **fidelity;
    uint64_t *seed;
    uint32_t n_granularity, n_fidelity, n_seed;
    PlannerOptions options;  /* of all */
    PlannerOptions *planned; /* of each planner: those of all, and its own */
    StorePart **method;      /* [planner][granularity][fidelity]; NULL: not made yet */
    uint32_t n_method;
} Axes;

static void axes_clear(Axes *axes)
{
    g_free(axes->planner);
    g_free(axes->granularity);
    g_free(axes->fidelity);
    g_free(axes->seed);
    g_free(axes->planned);
    for (uint32_t i = 0; i < axes->n_method; i++)
        store_part_unref(axes->method[i]);
    g_free(axes->method);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Axes, axes_clear)

static bool check_filled(const Source *source, GError **error)
{
    const Grid *grid = &source->file->grid;
    const struct {
        const char *key, *what;
        uint32_t n;
    } needed[] = {{"grid.model", "model", grid->n_model},
                  {"grid.cluster", "cluster", grid->n_cluster},
                  {"grid.planner", "planner", grid->n_planner}};
    for (guint i = 0; i < G_N_ELEMENTS(needed); i++)
        if (needed[i].n == 0)
            return yaml_fail(source->yaml, error, needed[i].key,
                             "the grid is empty; expected at least one %s",
                             needed[i].what);
    return true;
}

static bool resolve_options(const Source *source, PlannerOptions *options, GError **error)
{
    planner_options_init(options);
    for (uint32_t i = 0; i < source->file->n_set; i++) {
        GError *cause = NULL;
        if (!option_assign(options, source->file->set[i], &cause))
            return experiment_fail_entry(source, "set", i, cause, error);
    }
    for (char **pair = source->change->set; pair && *pair; pair++)
        if (!option_assign(options, *pair, error))
            return false;
    return true;
}

static bool resolve_granularity(const Source *source, Axes *axes, GError **error)
{
    const Grid *grid = &source->file->grid;
    const char *changed = source->change->granularity;
    uint32_t n = changed ? 0 : grid->n_granularity;
    axes->n_granularity = MAX(n, 1);
    axes->granularity = g_new0(Granularity, axes->n_granularity);
    if (changed)
        return granularity_find(changed, axes->granularity, error);
    axes->granularity[0] = GRANULARITY_MACHINE;
    for (uint32_t i = 0; i < n; i++) {
        GError *cause = NULL;
        if (!granularity_find(grid->granularity[i], &axes->granularity[i], &cause))
            return experiment_fail_entry(source, "grid.granularity", i, cause, error);
    }
    return true;
}

static bool resolve_fidelity(const Source *source, Axes *axes, GError **error)
{
    const Grid *grid = &source->file->grid;
    axes->n_fidelity = MAX(grid->n_fidelity, 1);
    axes->fidelity = g_new0(const char *, axes->n_fidelity);
    axes->fidelity[0] = "stage";
    for (uint32_t i = 0; i < grid->n_fidelity; i++) {
        GError *cause = NULL;
        axes->fidelity[i] = fidelity_find(grid->fidelity[i], &cause);
        if (!axes->fidelity[i])
            return experiment_fail_entry(source, "grid.fidelity", i, cause, error);
    }
    return true;
}

static bool resolve_seed(const Source *source, Axes *axes, GError **error)
{
    const Grid *grid = &source->file->grid;
    const uint64_t *changed = source->change->seed;
    uint32_t n = changed ? 0 : grid->n_seed;
    axes->n_seed = MAX(n, 1);
    axes->seed = g_new0(uint64_t, axes->n_seed);
    axes->seed[0] = changed ? *changed : axes->options.seed;
    for (uint32_t i = 0; i < n; i++) {
        GError *cause = NULL;
        if (!seed_parse(grid->seed[i], &axes->seed[i], &cause))
            return experiment_fail_entry(source, "grid.seed", i, cause, error);
    }
    return true;
}

/* NAME or NAME:key=value,...; *options start as those of all. */
static const Planner *parse_planner(const char *text, PlannerOptions *options,
                                    GError **error)
{
    g_autoptr(Spec) spec = spec_read(text);
    const Planner *planner = planner_find(spec->word, error);
    return planner && options_assign(options, spec, error) ? planner : NULL;
}

static bool resolve_planners(const Source *source, Axes *axes, GError **error)
{
    const Grid *grid = &source->file->grid;
    axes->planner = g_new0(const Planner *, grid->n_planner);
    axes->planned = g_new0(PlannerOptions, grid->n_planner);
    for (uint32_t i = 0; i < grid->n_planner; i++) {
        GError *cause = NULL;
        axes->planned[i] = axes->options;
        axes->planner[i] = parse_planner(grid->planner[i], &axes->planned[i], &cause);
        if (!axes->planner[i])
            return experiment_fail_entry(source, "grid.planner", i, cause, error);
    }
    return true;
}

static bool check_models(const Source *source, GError **error)
{
    const Grid *grid = &source->file->grid;
    for (uint32_t i = 0; i < grid->n_model; i++) {
        GError *cause = NULL;
        if (!model_check(grid->model[i], &cause))
            return experiment_fail_entry(source, "grid.model", i, cause, error);
    }
    return true;
}

bool experiment_add_part(Experiment *experiment, const Cluster *cluster, GError **error)
{
    StorePart *part = question_cluster(cluster, error);
    if (part)
        g_ptr_array_add(experiment->parts, part);
    return part != NULL;
}

static bool resolve_clusters(const Source *source, GError **error)
{
    const Grid *grid = &source->file->grid;
    for (uint32_t i = 0; i < grid->n_cluster; i++) {
        GError *cause = NULL;
        Cluster *cluster = cluster_load(grid->cluster[i], &cause);
        if (!cluster)
            return experiment_fail_entry(source, "grid.cluster", i, cause, error);
        g_ptr_array_add(source->experiment->clusters, cluster);
        if (!experiment_add_part(source->experiment, cluster, error))
            return false;
    }
    return true;
}

/* Takes it over. */
void experiment_add_configuration(Experiment *experiment, Configuration *configuration)
{
    configuration->ordinal = experiment->configurations->len + 1;
    g_ptr_array_add(experiment->configurations, configuration);
}

/* The model for the cluster's number of GPUs. */
static Subject *subject_of(Experiment *experiment, const char *model,
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

/* Its method is that of all with the same planner, granularity and fidelity: made for the first. */
static bool identify(const Source *source, Configuration *c, StorePart *cluster,
                     StorePart **method, uint32_t planner, GError **error)
{
    GError *cause = NULL;
    if (!*method)
        *method = question_of_method(c, &cause);
    if (!*method)
        return experiment_fail_entry(source, "grid.planner", planner, cause, error);
    result_identify_by(c, subject_part(c->subject), cluster, *method);
    return true;
}

/* All configurations of one model on one cluster. */
static bool add_cell(const Source *source, const Axes *axes, uint32_t model,
                     uint32_t cluster, GHashTable *seen, GError **error)
{
    const Grid *grid = &source->file->grid;
    Experiment *experiment = source->experiment;
    const Cluster *on = experiment->clusters->pdata[cluster];
    Subject *subject = subject_of(experiment, grid->model[model], on);
    const uint32_t n_inner = axes->n_granularity * axes->n_fidelity;
    for (uint32_t i = 0; i < grid->n_planner * n_inner * axes->n_seed; i++) {
        const uint32_t way = i / axes->n_seed, planner = way / n_inner;
        PlannerOptions options = axes->planned[planner];
        options.seed = axes->seed[i % axes->n_seed];
        g_autoptr(Configuration) c = configuration_of_subject(
            grid->model[model], subject, grid->cluster[cluster], on,
            axes->granularity[way / axes->n_fidelity % axes->n_granularity],
            axes->planner[planner], &options);
        c->fidelity = axes->fidelity[way % axes->n_fidelity];
        c->entry = g_strdup(grid->planner[planner]);
        if (!identify(source, c, experiment->parts->pdata[cluster], &axes->method[way],
                      planner, error))
            return false;
        if (g_hash_table_add(seen, c->hash))
            experiment_add_configuration(experiment, g_steal_pointer(&c));
    }
    return true;
}

static bool fill(const Source *source, GError **error)
{
    const File *file = source->file;
    Experiment *experiment = source->experiment;
    if (strspn(file->name, NAME_LETTERS) != strlen(file->name))
        return yaml_fail(source->yaml, error, "name",
                         "expected letters, digits and . _ -, got '%s'", file->name);
    experiment->name = g_strdup(file->name);
    experiment->description = g_strdup(file->description ? file->description : "");
    if (file->exchange.n_kind && !file->grid.n_model && !file->grid.n_planner)
        return experiment_fill_exchanges(source, error);
    g_auto(Axes) axes = {0};
    if (!check_filled(source, error) || !resolve_options(source, &axes.options, error) ||
        !resolve_granularity(source, &axes, error) ||
        !resolve_fidelity(source, &axes, error) || !resolve_seed(source, &axes, error) ||
        !resolve_planners(source, &axes, error) || !check_models(source, error) ||
        !resolve_clusters(source, error))
        return false;
    axes.n_method = file->grid.n_planner * axes.n_granularity * axes.n_fidelity;
    axes.method = g_new0(StorePart *, axes.n_method);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t m = 0; m < file->grid.n_model; m++)
        for (uint32_t c = 0; c < file->grid.n_cluster; c++)
            if (!add_cell(source, &axes, m, c, seen, error))
                return false;
    return true;
}

static char *find_file(const char *name, GError **error)
{
    if (g_file_test(name, G_FILE_TEST_IS_REGULAR))
        return g_strdup(name);
    g_autofree char *relative = g_strdup_printf("experiments/%s.yaml", name);
    char *path = strchr(name, '/') ? NULL : path_find(relative);
    if (!path)
        kilter_fail(
            error, KILTER_ERROR_INPUT,
            "no experiment '%s', expected a file or the name of one in experiments/",
            name);
    return path;
}

Experiment *experiment_load(const char *name, const ExperimentChange *change,
                            GError **error)
{
    g_autoptr(Experiment) experiment = g_new0(Experiment, 1);
    experiment->clusters = g_ptr_array_new_with_free_func((GDestroyNotify)cluster_free);
    experiment->parts = g_ptr_array_new_with_free_func((GDestroyNotify)store_part_unref);
    experiment->subjects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                 (GDestroyNotify)subject_free);
    experiment->configurations =
        g_ptr_array_new_with_free_func((GDestroyNotify)configuration_free);
    g_autofree char *path = find_file(name, error);
    g_autoptr(Yaml) yaml = path ? yaml_read(path, &file_schema, error) : NULL;
    if (!yaml)
        return NULL;
    const ExperimentChange none = {0};
    Source source = {.yaml = yaml,
                     .file = yaml_data(yaml),
                     .change = change ? change : &none,
                     .experiment = experiment};
    return fill(&source, error) ? g_steal_pointer(&experiment) : NULL;
}

StoreAsked *experiment_asked(const Experiment *experiment)
{
    StoreAsked *asked = g_new(StoreAsked, experiment_count(experiment));
    for (uint32_t i = 0; i < experiment_count(experiment); i++)
        asked[i] = configuration_asked(experiment_at(experiment, i), experiment->name);
    return asked;
}

bool experiment_select(const Experiment *experiment, Store *store, GError **error)
{
    g_autofree StoreAsked *asked = experiment_asked(experiment);
    return store_select(store, asked, experiment_count(experiment), error);
}
