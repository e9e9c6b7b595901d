/* kilter days: days of training with a plan. */
#include <string.h>

#include "data/plan/fidelity.h"
#include "experiments/answers.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/cli/campaign.h"

/* clang-format off */
#define DAYS_OPTIONS(X)                      \
    X(CAMPAIGN, campaign)                    \
    X(FILE, plot, "plot", 0)                 \
    X(TEXT, fidelity, "fidelity", 'f')       \
    X(COUNT, jobs, "jobs", 'j', 0, G_MAXINT) \
    X(PLANNING, how)                         \
    X(SLOWDOWN, how)                         \
    X(CHANGES, how)                          \
    X(PINS, options)
/* clang-format on */
COMMAND_OPTIONS(Own, days_own, DAYS_OPTIONS)

static bool days_report(const Evaluation *evaluation, const Own *own, char **argv,
                        const CommandOptions *options, GError **error)
{
    if (!evaluation_check_fits(evaluation, error))
        return false;
    json_t *object = evaluation_simulation_json(evaluation, options->verbose, false);
    if (!command_campaign_add(&own->campaign, &own->how, argv, options, evaluation,
                              object, error)) {
        json_decref(object);
        return false;
    }
    command_report(options, object, ANSWER_EVALUATION, ANSWER_CAMPAIGN, NULL);
    return true;
}

COMMAND(days, Own, DAYS_OPTIONS, 0)
{
    if (argv[1][strspn(argv[1], "0123456789.eE+-")])
        return refuse(error,
                      "expected a number of days first, got '%s'; see kilter days --help",
                      argv[1]);
    own->campaign.days = g_strdup(argv[1]);
    own->campaign.plot = g_steal_pointer(&own->plot);
    own->campaign.jobs = own->jobs;
    argv[1] = argv[0];
    const char *fidelity = fidelity_find(
        own->fidelity ? own->fidelity : fidelity_name(FIDELITY_DEFAULT), error);
    g_auto(Evaluation) evaluation = {0};
    return fidelity && command_campaign_check(&own->campaign, error) &&
           (argc > 3 || command_check_plan_file(argv[2], &own->how, options, error)) &&
           command_ask(&own->how, argc - 1, NULL, false, options, error) &&
           command_evaluate(&own->how, argc - 1, argv + 1, fidelity, options, &evaluation,
                            error) &&
           days_report(&evaluation, own, argv + 1, options, error);
}
