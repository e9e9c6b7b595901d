/* Trying planners on the choices of machines (private to experiments/planners). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PORTFOLIO_TRY_H
#define KILTER_EXPERIMENTS_PLANNERS_PORTFOLIO_TRY_H

#include "experiments/planners/portfolio.h"

typedef struct {
    Portfolio *portfolio;
    const PortfolioOptions *how;
    const PlannerOptions *options;
    Graph *graph;
    SimMemoryFloor floor;
    gint64 deadline_us; /* 0: none */
    double best_s;      /* of all choices; INFINITY */
    GError *first;      /* why the first try failed */
} PortfolioRun;

/* Runs the tries of all choices, on all processors: quick planners and those whose plans are seldom beaten come first, so
 * that the bounds of later tries can leave these out. A choice keeps its fastest plan. The plans are the same however many
 * processors there are. */
void portfolio_run(PortfolioRun *run);

#endif
