/* The part of `kilter simulate` that says what days of training with a plan come to. */
#ifndef KILTER_EXPERIMENTS_CLI_CAMPAIGN_H
#define KILTER_EXPERIMENTS_CLI_CAMPAIGN_H

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* The options as the command line gives them; NULL: the default. */
typedef struct {
    char *days; /* NULL: no campaign */
    char *mtbf, *weibull, *failures, *checkpoint, *save, *write, *restart, *repair,
        *spares, *stragglers;
    int runs, replan;
} CommandCampaign;

void command_campaign_clear(CommandCampaign *campaign);

/* clang-format off */
#define COMMAND_CAMPAIGN_ENTRIES(c)                                                                  \
    {"days", 0, 0, G_OPTION_ARG_STRING, &(c).days,                                                   \
     "Train for so many days: goodput under failures, checkpoints and restarts", "DAYS"},            \
    {"mtbf", 0, 0, G_OPTION_ARG_STRING, &(c).mtbf,                                                   \
     "Time of one GPU between failures, as 40000h, or a name of data/failures.csv "                  \
     "(default llama3-405b)", "TIME"},                                                               \
    {"weibull", 0, 0, G_OPTION_ARG_STRING, &(c).weibull,                                             \
     "Shape of these times (default 1: exponential)", "SHAPE"},                                      \
    {"failures", 0, 0, G_OPTION_ARG_FILENAME, &(c).failures,                                         \
     "Failures at the times of a CSV file with the column time_s, in place of both", "FILE"},        \
    {"checkpoint", 0, 0, G_OPTION_ARG_STRING, &(c).checkpoint,                                       \
     "Work between checkpoints, or auto (default): what loses least", "TIME"},                       \
    {"save", 0, 0, G_OPTION_ARG_STRING, &(c).save,                                                   \
     "For which training stops at a checkpoint (default: parameters and optimizer states "           \
     "through the machines' network ports)", "TIME"},                                                \
    {"write", 0, 0, G_OPTION_ARG_STRING, &(c).write,                                                 \
     "After which it can be restarted from (asynchronous writing; default 0s)", "TIME"},             \
    {"restart", 0, 0, G_OPTION_ARG_STRING, &(c).restart,                                             \
     "From a failure to the next iteration (default 5min)", "TIME"},                                 \
    {"repair", 0, 0, G_OPTION_ARG_STRING, &(c).repair,                                               \
     "Until a machine that failed is back (default 24h)", "TIME"},                                   \
    {"spares", 0, 0, G_OPTION_ARG_STRING, &(c).spares,                                               \
     "Spare machines, a number or a part of those that train, as 2% (default 0)", "N"},              \
    {"stragglers", 0, 0, G_OPTION_ARG_STRING, &(c).stragglers,                                       \
     "EVERY,STAYS,FACTOR: a GPU slows down the whole by FACTOR once in EVERY, for STAYS", "LIST"},   \
    {"replan", 0, 0, G_OPTION_ARG_INT, &(c).replan,                                                  \
     "Without a spare go on with a new plan, with up to N machines fewer (default: wait)", "N"},     \
    {"runs", 0, 0, G_OPTION_ARG_INT, &(c).runs, "Runs that are drawn (default 100)", "N"}
/* clang-format on */

/* Adds "campaign" to the answer, if one is asked for. argv: the command's name and arguments, then NULL, for --replan. */
bool command_campaign_add(const CommandCampaign *campaign, const CommandPlanning *how,
                          char **argv, const CommandOptions *options,
                          const Evaluation *evaluation, json_t *answer, GError **error);

/* How it reads (experiments/render.h). */
extern const char COMMAND_CAMPAIGN_TEXT[];

#endif
