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
#define COMMAND_DAYS_ENTRY(c)                                                                        \
    {"days", 0, 0, G_OPTION_ARG_STRING, &(c).days,                                                   \
     "Simulate this many days: goodput under failures, checkpoints and restarts", "DAYS"}
#define COMMAND_CAMPAIGN_ENTRIES(c)                                                                  \
    {"mtbf", 0, 0, G_OPTION_ARG_STRING, &(c).mtbf,                                                   \
     "Mean time between failures of one GPU: 40000h, or a name in data/failures.csv "                \
     "(default llama3-405b)", "TIME"},                                                               \
    {"weibull", 0, 0, G_OPTION_ARG_STRING, &(c).weibull,                                             \
     "Weibull shape of the times between failures (default 1: exponential)", "SHAPE"},               \
    {"failures", 0, 0, G_OPTION_ARG_FILENAME, &(c).failures,                                         \
     "Failures at the times in the column time_s of a CSV file, in place of --mtbf and "             \
     "--weibull; column machines: how many each takes out (default 1)", "FILE"},                     \
    {"parts", 0, 0, G_OPTION_ARG_STRING, &(c).parts,                                                 \
     "What fails besides GPUs, such as 'leaf:64,100000h,16;spine:8,200000h,0': number, mean "        \
     "time between failures of one, machines that it takes out", "LIST"},                            \
    {"checkpoint", 0, 0, G_OPTION_ARG_STRING, &(c).checkpoint,                                       \
     "Work between checkpoints, or auto (default): the interval that loses least", "TIME"},          \
    {"save", 0, 0, G_OPTION_ARG_STRING, &(c).save,                                                   \
     "Time that training stops for a checkpoint (default: to send parameters and optimizer "         \
     "states through the machines' network ports)", "TIME"},                                         \
    {"write", 0, 0, G_OPTION_ARG_STRING, &(c).write,                                                 \
     "Time after which a checkpoint can be used (asynchronous writing; default 0s)", "TIME"},        \
    {"restart", 0, 0, G_OPTION_ARG_STRING, &(c).restart,                                             \
     "Time from a failure to the next iteration (default 5min)", "TIME"},                            \
    {"repair", 0, 0, G_OPTION_ARG_STRING, &(c).repair,                                               \
     "Time until a failed machine is back (default 24h)", "TIME"},                                   \
    {"spares", 0, 0, G_OPTION_ARG_STRING, &(c).spares,                                               \
     "Spare machines: a number, or a part of the training ones, such as 2% (default 0)", "N"},       \
    {"stragglers", 0, 0, G_OPTION_ARG_STRING, &(c).stragglers,                                       \
     "EVERY,STAYS,FACTOR: once in EVERY a GPU slows everything down by FACTOR, for STAYS", "LIST"},  \
    {"replan", 0, 0, G_OPTION_ARG_INT, &(c).replan,                                                  \
     "Without a spare, go on with a new plan on up to N machines fewer (default: wait)", "N"},       \
    {"runs", 0, 0, G_OPTION_ARG_INT, &(c).runs, "Number of random runs (default 100)", "N"}
#define COMMAND_CAMPAIGN_PLOT_ENTRY(c)                                                               \
    {"plot", 0, 0, G_OPTION_ARG_FILENAME, &(c).plot,                                                 \
     "With --days, draw goodput by the time between checkpoints into this folder", "DIR"}
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
