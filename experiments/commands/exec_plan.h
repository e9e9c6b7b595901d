/* Where verify and exec get their plan: a file, or MODEL CLUSTER planned on the spot. */
#ifndef KILTER_EXPERIMENTS_COMMANDS_EXEC_PLAN_H
#define KILTER_EXPERIMENTS_COMMANDS_EXEC_PLAN_H

#include "experiments/commands/command.h"

typedef struct {
    char *planner, *granularity; /* as given; for MODEL CLUSTER only */
    Plan *plan;
    Graph *graph;
} ExecPlan;

void exec_plan_clear(ExecPlan *source);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecPlan, exec_plan_clear)

/* The options --planner and --granularity of a command that calls exec_plan_obtain. */
#define EXEC_PLAN_OPTIONS(source)                                        \
    {"planner",                                                          \
     'p',                                                                \
     0,                                                                  \
     G_OPTION_ARG_STRING,                                                \
     &(source).planner,                                                  \
     "How to plan MODEL (default hap; see kilter planners)",             \
     "NAME"},                                                            \
    {                                                                    \
        "granularity", 0, 0, G_OPTION_ARG_STRING, &(source).granularity, \
            "What a device is: machine (default) or gpu", "LEVEL"        \
    }

/* Fills plan and graph from the command's one argument (a plan file) or two (MODEL CLUSTER).
 * slowdown: what a plan made here is told ("1=2", ...), may be NULL. */
bool exec_plan_obtain(ExecPlan *source, int argc, char **argv, char **slowdown,
                      const CommandOptions *options, GError **error);

/* Refuses to time a model in half precision, which no backend computes in. */
bool exec_plan_check_precision(const Graph *graph, GError **error);

#endif
