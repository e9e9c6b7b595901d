/* kilter days: days of training with a plan. */
#include <string.h>

#include "experiments/cli/campaign.h"

typedef struct {
    CommandPlanning how;
    CommandCampaign campaign;
    char *fidelity;
} Own;

static void days_options_clear(Own *own)
{
    command_planning_clear(&own->how);
    command_campaign_clear(&own->campaign);
    g_free(own->fidelity);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Own, days_options_clear)

static bool days_report(const Evaluation *evaluation, const Own *own, char **argv,
                        const CommandOptions *options, GError **error)
{
    if (!command_check_fits(evaluation, error))
        return false;
    json_t *object = command_simulation_json(evaluation, options->verbose, false);
    if (!command_campaign_add(&own->campaign, &own->how, argv, options, evaluation,
                              object, error)) {
        json_decref(object);
        return false;
    }
    command_report(options, object, COMMAND_EVALUATION_TEXT, COMMAND_CAMPAIGN_TEXT, NULL);
    return true;
}

bool cmd_days(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {0};
    g_auto(CommandOptions) options = {0};
    const GOptionEntry entries[] = {
        COMMAND_CAMPAIGN_ENTRIES(own.campaign),
        {"plot", 0, 0, G_OPTION_ARG_FILENAME, &own.campaign.plot,
         "Draw goodput by the time between checkpoints into this folder", "DIR"},
        {"fidelity", 'f', 0, G_OPTION_ARG_STRING, &own.fidelity,
         "Fidelity of the iteration: stage (default), flow or analytic", "NAME"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &own.campaign.jobs,
         "Threads for the runs (default all cores)", "N"},
        COMMAND_PLANNING_ENTRIES(own.how),
        COMMAND_SLOWDOWN_ENTRY(own.how),
        COMMAND_CHANGE_ENTRIES(own.how),
        COMMAND_PIN_ENTRIES(&options),
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "days",
        .arguments = "DAYS MODEL CLUSTER | DAYS PLAN.json",
        .min_arguments = 2,
        .max_arguments = 3,
        .summary =
            "Simulates days of training with a plan: the part of the time that is left "
            "for training\n(goodput), and where the rest goes: failures, checkpoints, "
            "restarts, waiting for machines.",
        .example = "kilter days 30 vgg19 hap-16 --mtbf 2000h --spares 1 --repair 12h",
        .entries = entries,
    };
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    if (argv[1][strspn(argv[1], "0123456789.eE+-")])
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected a number of days first, got '%s'; see kilter days "
                           "--help",
                           argv[1]);
    own.campaign.days = g_strdup(argv[1]);
    argv[1] = argv[0];
    const char *fidelity = fidelity_find(own.fidelity ? own.fidelity : "stage", error);
    g_auto(Evaluation) evaluation = {0};
    return fidelity &&
           command_check_range("--jobs", own.campaign.jobs, 0, G_MAXINT, error) &&
           command_campaign_check(&own.campaign, error) &&
           (argc > 3 || command_check_plan_file(argv[2], &own.how, &options, error)) &&
           command_evaluate(&own.how, argc - 1, argv + 1, fidelity, &options, &evaluation,
                            error) &&
           days_report(&evaluation, &own, argv + 1, &options, error);
}
