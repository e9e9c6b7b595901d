/* Reading requests: every member is checked, and an unknown one is refused. */
#include "experiments/library/request.h"

#include <jansson.h>

#include "data/plan/fidelity.h"

static const char *const MEMBER[] = {"model",       "cluster",  "planner",
                                     "granularity", "fidelity", "seed",
                                     "set",         "plan",     NULL};

/* A member's text, or `usual` where it is absent. NULL with an error if it is not text. */
static const char *request_text_of(const json_t *root, const char *key, const char *usual,
                                   GError **error)
{
    const json_t *value = json_object_get(root, key);
    if (value && !json_is_string(value))
        return refused(error, "request: %s: expected a text", key);
    if (!value && !usual)
        refuse(error, "request: %s: missing; expected this member", key);
    return value ? json_string_value(value) : usual;
}

static json_t *parse(const char *request, GError **error)
{
    json_error_t wrong;
    json_t *root = json_loads(request ? request : "", JSON_REJECT_DUPLICATES, &wrong);
    const char *key;
    json_t *value;
    uint32_t index;
    if (!json_is_object(root)) {
        refuse(error, "request: expected an object%s%s", root ? "" : ": ",
               root ? "" : wrong.text);
        json_decref(root);
        return NULL;
    }
    json_object_foreach (root, key, value) {
        if (!names_find("member", key, MEMBER, &index, error)) {
            g_prefix_error(error, "request: ");
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

static bool read_options(const json_t *root, PlannerOptions *options, GError **error)
{
    const json_t *seed = json_object_get(root, "seed");
    json_t *set = json_object_get(root, "set");
    const char *key;
    json_t *value;
    planner_options_init(options);
    if (seed && (!json_is_integer(seed) || json_integer_value(seed) < 0))
        return refuse(error, "request: seed: expected an integer from 0");
    if (seed)
        options->seed = (uint64_t)json_integer_value(seed);
    if (set && !json_is_object(set))
        return refuse(error, "request: set: expected an object");
    json_object_foreach (set, key, value) {
        if (!json_is_string(value))
            return refuse(error, "request: set: %s: expected a text, as \"25MiB\"", key);
        if (!planner_options_set(options, key, json_string_value(value), error))
            return false;
    }
    return true;
}

/* fidelity: NULL for the planner's default. */
static bool request_evaluate_model(const json_t *root, const char *fidelity,
                                   Evaluation *evaluation, GError **error)
{
    PlannerOptions options;
    Granularity granularity;
    const char *model = request_text_of(root, "model", NULL, error);
    const char *name = model ? request_text_of(root, "cluster", NULL, error) : NULL;
    const char *planner_name =
        name ? request_text_of(root, "planner", "hap", error) : NULL;
    const char *level =
        planner_name ? request_text_of(root, "granularity", "machine", error) : NULL;
    if (!level || !granularity_find(level, &granularity, error) ||
        !read_options(root, &options, error))
        return false;
    const Planner *planner = planner_find(planner_name, error);
    g_autoptr(Cluster) cluster = planner ? cluster_load(name, error) : NULL;
    if (!cluster)
        return false;
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = name,
                                  .cluster = cluster,
                                  .granularity = granularity,
                                  .planner = planner,
                                  .fidelity = fidelity,
                                  .options = &options};
    g_autoptr(Configuration) configuration = configuration_new(&ask, error);
    if (!configuration || !configuration_evaluate(configuration, evaluation, error))
        return false;
    evaluation->cluster = g_steal_pointer(&cluster);
    return true;
}

static bool evaluate_plan(const json_t *root, const char *fidelity,
                          Evaluation *evaluation, GError **error)
{
    PlannerOptions options;
    Graph *graph;
    g_autoptr(Cluster) cluster = NULL;
    const char *file = request_text_of(root, "plan", NULL, error);
    if (!file || !read_options(root, &options, error))
        return false;
    if (json_object_get(root, "model") || json_object_get(root, "cluster") ||
        json_object_get(root, "planner") || json_object_get(root, "granularity"))
        return refuse(error, "request: plan: expected no model, cluster, planner or "
                             "granularity with it");
    Plan *plan = evaluation_read(file, &graph, &cluster, error);
    options.sim.seed = options.seed;
    if (!plan || !evaluation_of_plan(plan, graph, cluster, fidelity, &options.sim,
                                     evaluation, error))
        return false;
    evaluation->cluster = g_steal_pointer(&cluster);
    return true;
}

static bool read_fidelity(const json_t *root, const char *usual, const char **fidelity,
                          GError **error)
{
    *fidelity = usual;
    if (!json_object_get(root, "fidelity"))
        return true;
    const char *name = request_text_of(root, "fidelity", NULL, error);
    *fidelity = name ? fidelity_find(name, error) : NULL;
    return *fidelity != NULL;
}

bool request_plan(const char *request, Evaluation *evaluation, GError **error)
{
    json_auto_t *root = parse(request, error);
    const char *fidelity;
    bool good = root && read_fidelity(root, NULL, &fidelity, error);
    if (good && json_object_get(root, "plan"))
        good = refuse(error, "request: plan: expected a model and a cluster to plan");
    good = good && request_evaluate_model(root, fidelity, evaluation, error);
    return good;
}

bool request_evaluate(const char *request, Evaluation *evaluation, GError **error)
{
    json_auto_t *root = parse(request, error);
    const char *fidelity;
    return root &&
           read_fidelity(root, fidelity_name(FIDELITY_DEFAULT), &fidelity, error) &&
           (json_object_get(root, "plan") ? evaluate_plan : request_evaluate_model)(
               root, fidelity, evaluation, error);
}
