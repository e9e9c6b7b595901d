/* kilter compare: plans side by side. */
#include "experiments/answers/compare.h"
#include "data/plan/fidelity.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

#define COMPARE_OPTIONS(X) X(TEXT, fidelity, "fidelity", 'f')
COMMAND_OPTIONS(Own, compare_options, COMPARE_OPTIONS)

COMMAND(compare, Own, COMPARE_OPTIONS, 0)
{
    const CommandPlanning how = {0};
    Evaluation all[COMMAND_COMPARES] = {0};
    bool good = true;
    for (int i = 1; good && i < argc; i++) {
        char *argument[] = {NULL, argv[i], NULL};
        good = command_evaluate(&how, 2, argument,
                                own->fidelity ? own->fidelity
                                              : fidelity_name(FIDELITY_DEFAULT),
                                options, &all[i - 1], error);
    }
    json_t *answer = good ? compare_json(argv + 1, all, (uint32_t)argc - 1) : NULL;
    for (int i = 0; i < COMMAND_COMPARES; i++)
        evaluation_clear(&all[i]);
    if (!good)
        return false;
    command_report(options, answer, ANSWER_COMPARE, NULL);
    return true;
}
