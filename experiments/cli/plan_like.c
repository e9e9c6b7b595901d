/* Plans like a launch (experiments/cli/plan_like.h). */
#include "data/formats/launch/launch.h"
#include "data/models/model.h"
#include "experiments/cli/plan_like.h"

#include <string.h>

/* Whether the spec's list "a=1,b=2" has the key of a pair "b=3". */
static bool has_key(const char *list, const char *pair)
{
    const size_t n = (size_t)(strchr(pair, '=') - pair) + 1;
    for (const char *at = list; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, pair, n) == 0)
            return true;
    }
    return false;
}

/* The spec with the keys of the launch that it has not. */
static char *spec_with(const char *spec, const Launch *launch)
{
    g_autofree char *keys = launch_model_keys(launch);
    g_auto(GStrv) pair = g_strsplit(keys, ",", -1);
    GString *text = g_string_new(spec);
    const char *list = model_spec_list(spec);
    bool any = *list;
    for (uint32_t i = 0; pair[i]; i++)
        if (*pair[i] && !has_key(list, pair[i])) {
            g_string_append_printf(text, "%s%s", any ? "," : ":", pair[i]);
            any = true;
        }
    return g_string_free(text, FALSE);
}

static json_t *like_json(const char *file, const Launch *launch, const char *spec)
{
    json_t *unknown = json_array();
    for (uint32_t i = 0; i < launch->unknown->len; i++)
        json_array_append_new(unknown, json_string(launch->unknown->pdata[i]));
    return json_pack("{s:s, s:s, s:s, s:o}", "file", file, "framework", launch->framework,
                     "model", spec, "unknown", unknown);
}

bool plan_like(const char *file, char **spec, const char *cluster, CommandPlanning *how,
               CommandOptions *options, json_t **like, GError **error)
{
    g_auto(CommandSetting) setting = {0};
    if (options->strategy || (how->planner && strcmp(how->planner, "manual") != 0))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--like with %s: expected one of them, since a launch is a "
                           "strategy of its own",
                           options->strategy ? "--strategy" : "--planner");
    g_autoptr(Launch) launch = launch_read(file, error);
    if (!launch)
        return false;
    g_free(how->planner);
    how->planner = g_strdup("manual");
    g_autofree char *full = spec_with(*spec, launch);
    if (!command_setting(how, cluster, &setting, error))
        return false;
    const uint32_t gpus = cluster_gpus(setting.cluster);
    g_autoptr(Graph) graph = model_build(full, gpus, NULL, error);
    Strategy strategy;
    if (!graph)
        return false;
    if (!launch_strategy(launch, graph, gpus, &strategy, error)) {
        g_prefix_error(error, "%s: ", file);
        return false;
    }
    options->planner.strategy = strategy;
    *spec = (char *)g_intern_string(full);
    *like = like_json(file, launch, full);
    return true;
}
