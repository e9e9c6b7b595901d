/* kilter sensitivity: how much each number of a cluster matters. */
#include "experiments/answers/sensitivity.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

static bool sensitivity_report(const Evaluation *evaluation,
                               const Configuration *configuration,
                               const CommandOptions *options, GError **error)
{
    json_t *answer = sensitivity_json(evaluation, configuration, error);
    if (answer)
        command_report(options, answer, ANSWER_SENSITIVITY, NULL);
    return answer != NULL;
}

static bool of_model(const CommandPlanning *how, char **argv, const char *fidelity,
                     const CommandOptions *options, GError **error)
{
    g_auto(CommandSetting) setting = {0};
    g_autoptr(Configuration) configuration =
        command_configuration(how, argv, fidelity, &options->planner, &setting, error);
    g_auto(Evaluation) evaluation = {0};
    return configuration && configuration_evaluate(configuration, &evaluation, error) &&
           sensitivity_report(&evaluation, configuration, options, error);
}

bool cmd_sensitivity(int argc, char **argv, GError **error)
{
    g_auto(CommandOptions) options = {0};
    g_auto(CommandPlanning) how = {0};
    g_autofree char *fidelity = NULL;
    const GOptionEntry entries[] = {
        COMMAND_PLANNING_ENTRIES(how),
        COMMAND_CHANGE_ENTRIES(how),
        {"fidelity", 'f', 0, G_OPTION_ARG_STRING, &fidelity, NULL, NULL},
        G_OPTION_ENTRY_NULL};
    if (!command_parse(entries, &argc, argv, &options, error))
        return false;
    if (argc == 3)
        return of_model(&how, argv, fidelity, &options, error);
    g_auto(Evaluation) evaluation = {0};
    return command_evaluate(&how, argc, argv, fidelity, &options, &evaluation, error) &&
           sensitivity_report(&evaluation, NULL, &options, error);
}
