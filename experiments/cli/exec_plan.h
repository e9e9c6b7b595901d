/* Where verify and exec get their plan: a file, or MODEL CLUSTER planned on the spot. */
#ifndef KILTER_EXPERIMENTS_CLI_EXEC_PLAN_H
#define KILTER_EXPERIMENTS_CLI_EXEC_PLAN_H

#include "experiments/cli/command.h"

typedef struct {
    CommandPlanning how; /* as given; for MODEL CLUSTER only */
    Plan *plan;
    Graph *graph;
} ExecPlan;

void exec_plan_clear(ExecPlan *source);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecPlan, exec_plan_clear)

/* Fills plan and graph from the command's one argument (a plan file) or two (MODEL CLUSTER). */
bool exec_plan_obtain(ExecPlan *source, int argc, char **argv,
                      const CommandOptions *options, GError **error);

/* Refuses to time a model in half precision, which no backend computes in. */
bool exec_plan_check_precision(const Graph *graph, GError **error);

#endif
