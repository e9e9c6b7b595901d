/* Days of training with a plan, for `kilter days`, and for --days of `kilter simulate` and `kilter
 * report`. */
#pragma once

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* The options from the command line; NULL: the default. */
typedef struct {
    char *days; /* NULL: no campaign */
    char *mtbf, *weibull, *failures, *checkpoint, *save, *write, *restart, *repair,
        *spares, *stragglers, *parts, *plot;
    int runs, replan;
    int jobs; /* threads; 0: all cores */
} CommandCampaign;

void command_campaign_clear(CommandCampaign *campaign);

/* clang-format off */
#define COMMAND_DAYS_ENTRY(c) \
    {"days", 0, 0, G_OPTION_ARG_STRING, &(c).days, NULL, NULL}
#define COMMAND_CAMPAIGN_ENTRIES(c)                                         \
    {"mtbf", 0, 0, G_OPTION_ARG_STRING, &(c).mtbf, NULL, NULL},             \
    {"weibull", 0, 0, G_OPTION_ARG_STRING, &(c).weibull, NULL, NULL},       \
    {"failures", 0, 0, G_OPTION_ARG_FILENAME, &(c).failures, NULL, NULL},   \
    {"parts", 0, 0, G_OPTION_ARG_STRING, &(c).parts, NULL, NULL},           \
    {"checkpoint", 0, 0, G_OPTION_ARG_STRING, &(c).checkpoint, NULL, NULL}, \
    {"save", 0, 0, G_OPTION_ARG_STRING, &(c).save, NULL, NULL},             \
    {"write", 0, 0, G_OPTION_ARG_STRING, &(c).write, NULL, NULL},           \
    {"restart", 0, 0, G_OPTION_ARG_STRING, &(c).restart, NULL, NULL},       \
    {"repair", 0, 0, G_OPTION_ARG_STRING, &(c).repair, NULL, NULL},         \
    {"spares", 0, 0, G_OPTION_ARG_STRING, &(c).spares, NULL, NULL},         \
    {"stragglers", 0, 0, G_OPTION_ARG_STRING, &(c).stragglers, NULL, NULL}, \
    {"replan", 0, 0, G_OPTION_ARG_INT, &(c).replan, NULL, NULL},            \
    {"runs", 0, 0, G_OPTION_ARG_INT, &(c).runs, NULL, NULL}
#define COMMAND_CAMPAIGN_PLOT_ENTRY(c) \
    {"plot", 0, 0, G_OPTION_ARG_FILENAME, &(c).plot, NULL, NULL}
/* As kinds of COMMAND_OPTIONS. */
#define COMMAND_MEMBER_CAMPAIGN(member) CommandCampaign member;
#define COMMAND_CLEAR_CAMPAIGN(member) command_campaign_clear(&own->member);
#define COMMAND_ENTRY_CAMPAIGN(member) COMMAND_CAMPAIGN_ENTRIES(own.member),
#define COMMAND_RANGE_CAMPAIGN(member)
#define COMMAND_MEMBER_DAYS(member) 
#define COMMAND_CLEAR_DAYS(member) 
#define COMMAND_ENTRY_DAYS(member) COMMAND_DAYS_ENTRY(own.member),
#define COMMAND_RANGE_DAYS(member)
#define COMMAND_MEMBER_CAMPAIGN_PLOT(member) 
#define COMMAND_CLEAR_CAMPAIGN_PLOT(member) 
#define COMMAND_ENTRY_CAMPAIGN_PLOT(member) COMMAND_CAMPAIGN_PLOT_ENTRY(own.member),
#define COMMAND_RANGE_CAMPAIGN_PLOT(member)
/* clang-format on */

/* Whether no option is given that says nothing without --days. */
bool command_campaign_check(const CommandCampaign *campaign, GError **error);

/* Adds "campaign" to the answer, if it was asked for. argv: the command's name and arguments, then
 * NULL, for --replan. */
bool command_campaign_add(const CommandCampaign *campaign, const CommandPlanning *how,
                          char **argv, const CommandOptions *options,
                          const Evaluation *evaluation, json_t *answer, GError **error);
