/* Trying planners on the choices of machines (private to synth). */
#pragma once

#include "synth/auto/portfolio.h"

typedef struct {
    Portfolio *portfolio;
    const PortfolioOptions *how;
    const PlannerOptions *options;
    Graph *graph;
    bool attends; /* the graph has attention */
    SimMemoryFloor floor;
    gint64 deadline_us; /* 0: none */
    double best_s;      /* least time of all choices; INFINITY at first */
    GError *failure;    /* the failure that says most, NULL: none */
    uint32_t telling;   /* how much it says */
} PortfolioRun;

/* Runs the tries of all choices, on all processors. Quick planners whose plans are seldom beaten
 * come first, so that later tries can be left out by their bounds. A choice keeps its fastest plan.
 * The plans are the same however many processors there are. */
void portfolio_run(PortfolioRun *run);
