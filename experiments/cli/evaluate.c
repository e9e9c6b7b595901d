/* Evaluating MODEL CLUSTER or PLAN.json, for all commands that take them. */
#include "experiments/cli/command.h"

#include <string.h>

Configuration *command_configuration(const CommandPlanning *how, char **argv,
                                     const char *fidelity, const PlannerOptions *options,
                                     CommandSetting *setting, GError **error)
{
    if (!command_setting(how, argv[2], setting, error))
        return NULL;
    const ConfigurationAsk ask = {.model = argv[1],
                                  .cluster_name = argv[2],
                                  .cluster = setting->cluster,
                                  .granularity = setting->granularity,
                                  .planner = setting->planner,
                                  .fidelity = fidelity,
                                  .options = options};
    return configuration_new(&ask, error);
}

static bool evaluate_model(const CommandPlanning *how, char **argv, const char *fidelity,
                           const PlannerOptions *options, Evaluation *evaluation,
                           GError **error)
{
    g_auto(CommandSetting) setting = {0};
    g_autoptr(Configuration) configuration =
        command_configuration(how, argv, fidelity, options, &setting, error);
    if (!configuration || !configuration_evaluate(configuration, evaluation, error))
        return false;
    evaluation->cluster = g_steal_pointer(&setting.cluster);
    return true;
}

static bool evaluate_file(const CommandPlanning *how, const char *file,
                          const char *fidelity, const PlannerOptions *options,
                          Evaluation *evaluation, GError **error)
{
    Graph *graph = NULL;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(Plan) plan = evaluation_read(file, &graph, &cluster, error);
    SimOptions sim = options->sim;
    sim.seed = options->seed;
    if (plan && (!command_change(cluster, how, error) ||
                 !command_stretch(cluster, plan->granularity, how->slowdown, error))) {
        graph_free(graph);
        return false;
    }
    if (plan && command_changes(how)) { /* the plan is evaluated on a changed cluster */
        put_block(plan->cluster, g_strdup(cluster->name));
        g_clear_pointer(&plan->cluster_text, g_free);
    }
    if (!plan || !evaluation_of_plan(g_steal_pointer(&plan), graph, cluster, fidelity,
                                     &sim, evaluation, error))
        return false;
    evaluation->cluster = g_steal_pointer(&cluster);
    return true;
}

bool command_evaluate(const CommandPlanning *how, int argc, char **argv,
                      const char *fidelity, const CommandOptions *options,
                      Evaluation *evaluation, GError **error)
{
    g_autoptr(Pace) pace =
        pace_begin(argc == 2 ? "simulating" : "planning", options->quiet);
    return argc == 2 ? evaluate_file(how, argv[1], fidelity, &options->planner,
                                     evaluation, error)
                     : evaluate_model(how, argv, fidelity, &options->planner, evaluation,
                                      error);
}

bool command_check_plan_file(const char *file, const CommandPlanning *how,
                             const CommandOptions *options, GError **error)
{
    bool plans = how->planner || how->granularity || options->pin || options->pins ||
                 options->strategy;
    for (char **pair = options->set; pair && *pair; pair++) {
        g_autofree char *key = g_strndup(*pair, strcspn(*pair, "="));
        plans = plans || !options_find(&sim_option_table, key);
    }
    return !plans ||
           refuse(error,
                  "--planner, --granularity, --pin, --pins and --set of a planner's "
                  "option are for MODEL CLUSTER; %s is a plan already",
                  file);
}
