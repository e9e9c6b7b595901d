/* The parts of `kilter simulate` that write a plan as execution traces and simulate traces on a
 * cluster. */
#pragma once

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* The files to write a plan's execution to; NULL: not written. PREFIX: PREFIX.0.et, PREFIX.1.et,
 * ... and the groups in PREFIX.groups.json. */
/* clang-format off */
#define EXECUTION_OPTIONS(X)         \
    X(FILE, chakra, "chakra", 0)     \
    X(FLAG, messages, "messages", 0) \
    X(FILE, goal, "goal", 0)
COMMAND_OPTIONS(CommandExecution, command_execution, EXECUTION_OPTIONS)
/* As a kind of COMMAND_OPTIONS, of the member `execution`. */
#define EXECUTION_ENTRY(kind, ...) COMMAND_PICK(3, COMMAND_KIND_##kind(own.execution, __VA_ARGS__))
#define COMMAND_KIND_EXECUTION(at, member) \
    COMMAND_PART(CommandExecution, member, command_execution_clear, EXECUTION_OPTIONS(EXECUTION_ENTRY))
/* clang-format on */

bool command_execution_check(const CommandExecution *to, GError **error);
bool command_execution_write(const CommandExecution *to, const Evaluation *evaluation,
                             const SimOptions *sim, GError **error);

/* Simulates NAME.0.et, NAME.1.et, ..., of which `file` is one, on the first GPUs of a cluster. */
bool command_simulate_execution(const char *file, const char *cluster,
                                const CommandPlanning *how, const CommandOptions *options,
                                GError **error);
