#include "experiments/command.h"

typedef struct {
    char *planner, *granularity, *fidelity;
} Own;

static void own_clear(Own *own)
{
    g_free(own->planner);
    g_free(own->granularity);
    g_free(own->fidelity);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, own_clear)

static bool report(const Evaluation *evaluation, const CommandOptions *options,
                   GError **error)
{
    if (!command_check_fits(evaluation, error))
        return false;
    if (options->json)
        command_print_json(command_evaluation_json(evaluation));
    else if (!options->quiet)
        command_print_evaluation(evaluation, options->verbose);
    return true;
}

static bool simulate_file(const char *file, const Own *own, const char *fidelity,
                          const CommandOptions *options, GError **error)
{
    if (own->planner || own->granularity || options->set || options->seed_given)
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "--planner, --granularity, --set and --seed are for MODEL CLUSTER; "
            "%s is a plan already",
            file);
    Graph *graph = NULL;
    g_autoptr(Plan) plan = plan_read(file, &graph, error);
    if (!plan)
        return false;
    g_autoptr(Cluster) cluster = cluster_load(plan->cluster, error);
    if (!cluster) {
        graph_free(graph);
        g_prefix_error(error, "%s: key 'cluster': ", file);
        return false;
    }
    g_auto(Evaluation) evaluation = {0};
    return evaluation_of_plan(g_steal_pointer(&plan), graph, cluster, fidelity,
                              &evaluation, error) &&
           report(&evaluation, options, error);
}

static bool simulate_model(const char *model, const char *cluster_name, const Own *own,
                           const char *fidelity, const CommandOptions *options,
                           GError **error)
{
    Granularity granularity = GRANULARITY_MACHINE;
    const Planner *planner = planner_find(own->planner ? own->planner : "hap", error);
    if (!planner ||
        (own->granularity && !granularity_find(own->granularity, &granularity, error)))
        return false;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, error);
    if (!cluster)
        return false;
    g_autoptr(Configuration) configuration =
        configuration_new(model, cluster_name, cluster, granularity, planner, fidelity,
                          &options->planner, error);
    g_auto(Evaluation) evaluation = {0};
    return configuration && configuration_evaluate(configuration, &evaluation, error) &&
           report(&evaluation, options, error);
}

bool cmd_simulate(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    const GOptionEntry entries[] = {
        {"planner", 'p', 0, G_OPTION_ARG_STRING, &own.planner,
         "How to plan (default hap; see kilter planners)", "NAME"},
        {"granularity", 0, 0, G_OPTION_ARG_STRING, &own.granularity,
         "What a device is: machine (default) or gpu", "LEVEL"},
        {"fidelity", 'f', 0, G_OPTION_ARG_STRING, &own.fidelity,
         "How to evaluate: stage (default) or analytic", "NAME"},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "simulate",
        .arguments = "PLAN.json | MODEL CLUSTER",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary =
            "Simulates one iteration of a plan, read from a file or made on the spot.",
        .example = "kilter simulate plan.json --fidelity stage --json",
        .entries = entries,
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    const char *fidelity = fidelity_find(own.fidelity ? own.fidelity : "stage", error);
    if (!fidelity)
        return false;
    return argc == 2 ? simulate_file(argv[1], &own, fidelity, &options, error)
                     : simulate_model(argv[1], argv[2], &own, fidelity, &options, error);
}
