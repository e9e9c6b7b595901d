/* The plan of verify and exec: from a file, or made for MODEL CLUSTER. */
#pragma once

#include "exec/exec.h"
#include "experiments/cli/command.h"

typedef struct {
    CommandPlanning how; /* from the command line; for MODEL CLUSTER only */
    Plan *plan;
    Graph *graph;
} ExecPlan;

void exec_plan_clear(ExecPlan *source);

/* clang-format off */
#define COMMAND_KIND_PLAN_SOURCE(at, member)                \
    COMMAND_PART(ExecPlan, member, exec_plan_clear,         \
                 COMMAND_PLANNING_ENTRIES(at.member.how), COMMAND_CHANGE_ENTRIES(at.member.how),)
/* clang-format on */

/* Fills plan and graph from the command's one argument (a plan file) or two (MODEL CLUSTER). */
bool exec_plan_obtain(ExecPlan *source, int argc, char **argv,
                      const CommandOptions *options, GError **error);

/* How a backend that runs the model stores its tensors in half precision. Only the cuda backend
 * can: on the others, and for fp8, KILTER_ERROR_INPUT. */
bool exec_plan_half(const Graph *graph, bool cuda, ExecNumbers *half, GError **error);
