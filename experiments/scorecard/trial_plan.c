#include "experiments/scorecard/trial_plan.h"

/* "key=value,key=value"; "" for none. */
static bool set_options(PlannerOptions *options, const char *text, GError **error)
{
    g_auto(GStrv) pairs = g_strsplit(text, ",", -1);
    planner_options_init(options);
    for (char **pair = pairs; *pair; pair++) {
        g_auto(GStrv) part = g_strsplit(*pair, "=", 2);
        if (!part[0] || !part[1])
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "options '%s': expected key=value, got '%s'", text, *pair);
        if (!planner_options_set(options, part[0], part[1], error))
            return false;
    }
    return true;
}

Plan *trial_plan(const Trial *trial, const ClusterView *view, Graph **graph,
                 SimOptions *sim, GError **error)
{
    const Planner *planner = planner_find(trial->planner, error);
    PlannerOptions options;
    if (!planner || !set_options(&options, trial->options, error))
        return NULL;
    *sim = options.sim;
    return planner_plan(planner, trial->model, view->cluster->name, view, &options, graph,
                        error);
}
