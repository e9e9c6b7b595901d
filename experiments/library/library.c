/* The calls of kilter.h: from a request to a configuration or a plan from a file, and from its
 * evaluation to JSON. */
#include "data/base/path.h"
#include "data/models/model.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/library/kilter.h"

#include <stdlib.h>

#include "data/base/version.h"
#include "exec/exec.h"
#include "experiments/library/request.h"

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
