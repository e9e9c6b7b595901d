/* The parts of `kilter simulate` that write a plan as execution traces, and run traces on a cluster. */
#ifndef KILTER_EXPERIMENTS_CLI_EXECUTION_H
#define KILTER_EXPERIMENTS_CLI_EXECUTION_H

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* Files that a plan's execution is written to; NULL: not. */
typedef struct {
    char *chakra; /* PREFIX: PREFIX.0.et, PREFIX.1.et, ... and the groups in PREFIX.groups.json */
    char *goal;
    gboolean messages;
} CommandExecution;

void command_execution_clear(CommandExecution *to);

/* clang-format off */
#define COMMAND_EXECUTION_ENTRIES(to)                                                       \
    {"chakra", 0, 0, G_OPTION_ARG_FILENAME, &(to).chakra,                                   \
     "Write execution traces of Chakra, PREFIX.0.et, PREFIX.1.et, ..., and "                \
     "PREFIX.groups.json", "PREFIX"},                                                       \
    {"messages", 0, 0, G_OPTION_ARG_NONE, &(to).messages,                                   \
     "In these, collectives as the sends and receives of their algorithm: exact "           \
     "where shares are uneven", NULL},                                                      \
    {"goal", 0, 0, G_OPTION_ARG_FILENAME, &(to).goal,                                       \
     "Write all ranks' sends, receives and calculations in GOAL", "FILE"}
/* clang-format on */

bool command_execution_check(const CommandExecution *to, GError **error);
bool command_execution_write(const CommandExecution *to, const Evaluation *evaluation,
                             const SimOptions *sim, GError **error);

/* Runs NAME.0.et, NAME.1.et, ..., of which `file` is one, on the first GPUs of a cluster. */
bool command_simulate_execution(const char *file, const char *cluster,
                                const CommandPlanning *how, const CommandOptions *options,
                                GError **error);

#endif
