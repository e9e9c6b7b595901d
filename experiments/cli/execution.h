/* The parts of `kilter simulate` that write a plan as execution traces and simulate traces on a
 * cluster. */
#pragma once

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* The files to write a plan's execution to; NULL: not written. */
typedef struct {
    /* PREFIX: PREFIX.0.et, PREFIX.1.et, ... and the groups in PREFIX.groups.json */
    char *chakra;
    char *goal;
    gboolean messages;
} CommandExecution;

void command_execution_clear(CommandExecution *to);

/* clang-format off */
#define COMMAND_EXECUTION_ENTRIES(to)                                  \
    {"chakra", 0, 0, G_OPTION_ARG_FILENAME, &(to).chakra, NULL, NULL}, \
    {"messages", 0, 0, G_OPTION_ARG_NONE, &(to).messages, NULL, NULL}, \
    {"goal", 0, 0, G_OPTION_ARG_FILENAME, &(to).goal, NULL, NULL}
#define COMMAND_MEMBER_EXECUTION(member) CommandExecution member;
#define COMMAND_CLEAR_EXECUTION(member) command_execution_clear(&own->member);
#define COMMAND_ENTRY_EXECUTION(member) COMMAND_EXECUTION_ENTRIES(own.member),
#define COMMAND_RANGE_EXECUTION(member)
/* clang-format on */

bool command_execution_check(const CommandExecution *to, GError **error);
bool command_execution_write(const CommandExecution *to, const Evaluation *evaluation,
                             const SimOptions *sim, GError **error);

/* Simulates NAME.0.et, NAME.1.et, ..., of which `file` is one, on the first GPUs of a cluster. */
bool command_simulate_execution(const char *file, const char *cluster,
                                const CommandPlanning *how, const CommandOptions *options,
                                GError **error);

/* kilter run-trace TRACE.0.et CLUSTER | TASKS.json, which kilter simulate also takes for one more
 * release. */
bool command_run_trace(int argc, char **argv, const CommandPlanning *how,
                       const CommandOptions *options, GError **error);
