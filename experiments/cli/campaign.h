/* Days of training with a plan, for `kilter days`, and for --days of `kilter report`. */
#pragma once

#include "experiments/cli/command.h"
#include "sim/campaign/campaign.h"

/* The options from the command line; NULL: the default. */
/* clang-format off */
#define CAMPAIGN_OPTIONS(X)                              \
    X(TEXT, mtbf, "mtbf", 0)                             \
    X(TEXT, weibull, "weibull", 0)                       \
    X(FILE, failures, "failures", 0)                     \
    X(TEXT, parts, "parts", 0)                           \
    X(TEXT, checkpoint, "checkpoint", 0)                 \
    X(TEXT, save, "save", 0)                             \
    X(TEXT, write, "write", 0)                           \
    X(TEXT, restart, "restart", 0)                       \
    X(TEXT, repair, "repair", 0)                         \
    X(TEXT, spares, "spares", 0)                         \
    X(TEXT, stragglers, "stragglers", 0)                 \
    X(COUNT, replan, "replan", 0, 0, CAMPAIGN_MAX_FEWER) \
    X(COUNT, runs, "runs", 0, 0, CAMPAIGN_MAX_RUNS)
/* `days` NULL: no campaign; jobs: threads, 0: all cores. */
#define CAMPAIGN_STRUCT(X)         \
    CAMPAIGN_OPTIONS(X)            \
    X(OWNED, days, char *, g_free) \
    X(OWNED, plot, char *, g_free) \
    X(VALUE, jobs, int)
COMMAND_OPTIONS(CommandCampaign, command_campaign, CAMPAIGN_STRUCT)
COMMAND_RANGES(CommandCampaign, command_campaign, CAMPAIGN_STRUCT)

#define CAMPAIGN_ENTRY(kind, ...) COMMAND_PICK(3, COMMAND_KIND_##kind(own.campaign, __VA_ARGS__))
/* As kinds of COMMAND_OPTIONS, of the member `campaign`. */
#define COMMAND_KIND_CAMPAIGN(at, member) \
    COMMAND_PART(CommandCampaign, member, command_campaign_clear, CAMPAIGN_OPTIONS(CAMPAIGN_ENTRY))
#define COMMAND_KIND_DAYS(at, member) (), (), (COMMAND_ENTRY_OF(at.member.days, STRING, 0, "days", 0)), ()
/* clang-format on */

/* Whether no option is given that says nothing without --days. */
bool command_campaign_check(const CommandCampaign *campaign, GError **error);

/* Adds "campaign" to the answer, if it was asked for. argv: the command's name and arguments, then
 * NULL, for --replan. */
bool command_campaign_add(const CommandCampaign *campaign, const CommandPlanning *how,
                          char **argv, const CommandOptions *options,
                          const Evaluation *evaluation, json_t *answer, GError **error);
