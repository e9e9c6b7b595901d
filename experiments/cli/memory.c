#include <stdio.h>

#include "experiments/cli/command.h"
#include "experiments/cli/plan_words.h"

/* The table is the answer, whether the plan fits or not; the exit status says which. */
static bool report(const Evaluation *evaluation, const CommandOptions *options,
                   GError **error)
{
    if (options->json) {
        json_t *object = command_evaluation_json(evaluation);
        command_print_json(object);
    } else if (!options->quiet) {
        printf("%s on %s with %s\n", evaluation->plan->model, evaluation->plan->cluster,
               evaluation->plan->planner);
        plan_words_print_strategy(evaluation);
        plan_words_print_memory(evaluation);
    }
    return command_check_fits(evaluation, error);
}

static bool of_model(const CommandPlanning *how, char **argv,
                     const CommandOptions *options, GError **error)
{
    g_auto(CommandSetting) setting = {0};
    if (!command_setting(how, argv[2], &setting, error))
        return false;
    g_autoptr(Configuration) configuration =
        configuration_new(argv[1], argv[2], setting.cluster, setting.granularity,
                          setting.planner, NULL, &options->planner, error);
    g_auto(Evaluation) evaluation = {0};
    return configuration && configuration_evaluate(configuration, &evaluation, error) &&
           report(&evaluation, options, error);
}

static bool of_plan(const char *file, const CommandOptions *options, GError **error)
{
    Graph *graph;
    g_autoptr(Cluster) cluster = NULL;
    Plan *plan = evaluation_read(file, &graph, &cluster, error);
    g_auto(Evaluation) evaluation = {0};
    return plan &&
           evaluation_of_plan(plan, graph, cluster, NULL, &options->planner.sim,
                              &evaluation, error) &&
           report(&evaluation, options, error);
}

bool cmd_memory(int argc, char **argv, GError **error)
{
    g_auto(CommandOptions) options = {0};
    CommandPlanning how = {0};
    const GOptionEntry entries[] = {COMMAND_PLANNING_ENTRIES(how),
                                    COMMAND_PIN_ENTRIES(&options), G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "memory",
        .arguments = "MODEL CLUSTER | PLAN.json",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary = "Says what the memory of the fullest GPU of each type holds at its "
                   "peak, of a plan "
                   "that is made\nas by kilter plan, or read.\n\n"
                   "  weights      parameters as they lie between iterations\n"
                   "  gradients    of parameters\n"
                   "  optimizer    its states, with float32 copies of parameters\n"
                   "  activations  what the forward makes and keeps for the backward\n"
                   "  buffers      gradients of activations, gathered parameters and the "
                   "like, in "
                   "flight\n"
                   "  runtime      what the cluster's file says that driver and "
                   "libraries take\n\n"
                   "Nothing is offloaded to the host: that is not modelled. Exit status "
                   "3 if the plan "
                   "does not fit.",
        .example =
            "kilter memory gpt2:batch=8 hap-a100-4 --planner dp-ev --set recompute=full",
        .entries = entries,
    };
    const bool done = command_parse(&syntax, &argc, argv, &options, error) &&
                      (argc == 2 ? of_plan(argv[1], &options, error)
                                 : of_model(&how, argv, &options, error));
    command_planning_clear(&how);
    return done;
}
