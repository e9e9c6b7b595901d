/* The calls of kilter.h: from a request, of which every member is checked, to a configuration or a
 * plan from a file, and from its evaluation to JSON. */
#include <stdlib.h>

#include <jansson.h>

#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/version.h"
#include "data/models/model.h"
#include "data/plan/fidelity.h"
#include "exec/exec.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/library/kilter.h"
#include "experiments/sweep/configuration.h"

/* Adds the format to an answer; takes the body. */
static char *answer_text(const char *call, json_t *body)
{
    enum { VERSION = 1 };
    json_auto_t *object =
        json_pack("{s:{s:s, s:i}}", "format", "name", call, "version", VERSION);
    json_object_update(object, body);
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(body);
    return text;
}

static KilterStatus finish(const char *call, json_t *body, const GError *error,
                           char **json)
{
    const int status = !error                          ? KILTER_DONE
                       : error->domain == KILTER_ERROR ? error->code
                                                       : KILTER_FAILED;
    if (error)
        body = json_pack("{s:{s:i, s:s}}", "error", "status", status, "message",
                         error->message);
    if (json)
        *json = answer_text(call, body);
    else
        json_decref(body);
    return (KilterStatus)status;
}

const char *kilter_version(void)
{
    return KILTER_VERSION;
}

void kilter_free(char *json)
{
    free(json);
}

void kilter_hear(KilterHear hear)
{
    planner_tell(hear);
}

/* --- lists --- */

KilterStatus kilter_models(char **json)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < model_count(); i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", model_info(i)->name,
                                              "source", model_info(i)->source));
    g_auto(GStrv) configs = model_configs();
    for (char **name = configs; *name; name++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", *name, "source", "config.json"));
    return finish("kilter_models", json_pack("{s:o}", "models", list), NULL, json);
}

KilterStatus kilter_clusters(char **json)
{
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    json_t *list = json_array();
    for (char **name = names; *name; name++)
        json_array_append_new(list, json_pack("{s:s}", "name", *name));
    return finish("kilter_clusters", json_pack("{s:o}", "clusters", list), NULL, json);
}

KilterStatus kilter_planners(char **json)
{
    return finish("kilter_planners", json_pack("{s:o}", "planners", planners_json()),
                  NULL, json);
}

/* --- requests --- */

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
    uint32_t index;
    if (!json_is_object(root)) {
        refuse(error, "request: expected an object%s%s", root ? "" : ": ",
               root ? "" : wrong.text);
        json_decref(root);
        return NULL;
    }
    keys_each (key, root) {
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
    planner_options_init(options);
    if (seed && (!json_is_integer(seed) || json_integer_value(seed) < 0))
        return refuse(error, "request: seed: expected an integer from 0");
    if (seed)
        options->seed = (uint64_t)json_integer_value(seed);
    if (set && !json_is_object(set))
        return refuse(error, "request: set: expected an object");
    members_each (key, value, set) {
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

/* Makes the plan that the request asks for. Unless the request names a fidelity, it is the one that
 * plans of the kind are made by. */
static bool request_plan(const char *request, Evaluation *evaluation, GError **error)
{
    json_auto_t *root = parse(request, error);
    const char *fidelity;
    bool good = root && read_fidelity(root, NULL, &fidelity, error);
    if (good && json_object_get(root, "plan"))
        good = refuse(error, "request: plan: expected a model and a cluster to plan");
    good = good && request_evaluate_model(root, fidelity, evaluation, error);
    return good;
}

/* The same, also for a plan's file, by the fidelity `stage` unless the request names one. */
static bool request_evaluate(const char *request, Evaluation *evaluation, GError **error)
{
    json_auto_t *root = parse(request, error);
    const char *fidelity;
    return root &&
           read_fidelity(root, fidelity_name(FIDELITY_DEFAULT), &fidelity, error) &&
           (json_object_get(root, "plan") ? evaluate_plan : request_evaluate_model)(
               root, fidelity, evaluation, error);
}

/* --- work --- */

static json_t *plan_json(const Evaluation *evaluation, GError **error)
{
    if (!evaluation_check_fits(evaluation, error))
        return NULL;
    g_autofree char *text = evaluation_plan_text(evaluation);
    return json_loads(text, 0, NULL);
}

KilterStatus kilter_plan(const char *request, char **json)
{
    g_autoptr(GError) error = NULL;
    g_auto(Evaluation) evaluation = {0};
    json_t *body = request_plan(request, &evaluation, &error)
                       ? plan_json(&evaluation, &error)
                       : NULL;
    return finish("kilter_plan", body, error, json);
}

KilterStatus kilter_simulate(const char *request, char **json)
{
    g_autoptr(GError) error = NULL;
    g_auto(Evaluation) evaluation = {0};
    json_t *body = NULL;
    if (request_evaluate(request, &evaluation, &error) &&
        evaluation_check_fits(&evaluation, &error))
        body = evaluation_simulation_json(&evaluation, false, false);
    return finish("kilter_simulate", body, error, json);
}

static bool verify(const Evaluation *evaluation, ExecVerdict *verdict, GError **error)
{
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan =
        exec_shrink_plan(evaluation->plan, evaluation->graph, NULL, &small, error);
    if (!plan)
        return false;
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    return exec_verify(backend, plan, small, evaluation->plan->seed, EXEC_TOLERANCE,
                       verdict, error);
}

KilterStatus kilter_verify(const char *request, char **json)
{
    g_autoptr(GError) error = NULL;
    g_auto(Evaluation) evaluation = {0};
    g_auto(ExecVerdict) verdict = {0};
    if (!request_evaluate(request, &evaluation, &error) ||
        !verify(&evaluation, &verdict, &error))
        return finish("kilter_verify", NULL, error, json);
    json_t *body =
        json_pack("{s:b, s:f, s:f, s:i, s:s?}", "right", verdict.right, "error",
                  MIN(verdict.error, G_MAXDOUBLE), "tolerance", EXEC_TOLERANCE, "tensors",
                  (int)verdict.n_tensors, "wrong_tensor", verdict.wrong_tensor);
    const KilterStatus done = finish("kilter_verify", body, NULL, json);
    return verdict.right ? done : KILTER_FAILED;
}
