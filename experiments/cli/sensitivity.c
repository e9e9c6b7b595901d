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

/* clang-format off */
#define SENSITIVITY_OPTIONS(X) \
    X(PLANNING, how)           \
    X(CHANGES, how)            \
    X(TEXT, fidelity, "fidelity", 'f')
/* clang-format on */
COMMAND_OPTIONS(Own, sensitivity_options, SENSITIVITY_OPTIONS)

COMMAND(sensitivity, Own, SENSITIVITY_OPTIONS, 0)
{
    g_auto(Evaluation) evaluation = {0};
    return command_ask(&own->how, argc, NULL, false, options, error) &&
           (argc == 3 ? of_model(&own->how, argv, own->fidelity, options, error)
                      : command_evaluate(&own->how, argc, argv, own->fidelity, options,
                                         &evaluation, error) &&
                            sensitivity_report(&evaluation, NULL, options, error));
}
