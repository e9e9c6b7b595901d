/* An evaluation: a plan that was made (experiments/sweep/configuration.h) or read from a file, and
 * its costs. */
#pragma once

#include "sim/sim.h"

/* A plan with its graph, its cluster and its report. */
typedef struct {
    Graph *graph;
    ClusterView *view; /* the machines that were given, or those that the planner chose */
    Cluster *cluster;  /* owned; NULL: the view is of a cluster of the caller's */
    Plan *plan;
    SimReport *report;
    SimOptions sim; /* by which the report was made */
    /* the plan is the best that a search found; false for a fixed strategy or a plan from a file */
    bool searched;
    bool stopped;     /* a budget of seconds ended the search */
    GPtrArray *notes; /* char *: sentences on the search; NULL: none */
} Evaluation;

/* The text of the plan's file, with its cluster. Caller frees. */
char *evaluation_plan_text(const Evaluation *evaluation);
/* The cluster that the plan carries, or the cluster of that name if the plan has only the name.
 * Messages call the plan `file`. */
Cluster *evaluation_cluster(const Plan *plan, const char *file, GError **error);
/* Reads a plan's file, its graph and its cluster. NULL, and nothing to free, on failure. */
Plan *evaluation_read(const char *file, Graph **graph, Cluster **cluster, GError **error);
/* Opens a plan that exists, without a report: as below. */
bool evaluation_open(Plan *plan, Graph *graph, const Cluster *cluster,
                     Evaluation *evaluation, GError **error);
/* Simulates a plan that exists. Takes plan and graph over, also on failure; the cluster stays
 * the caller's. */
bool evaluation_of_plan(Plan *plan, Graph *graph, const Cluster *cluster,
                        const char *fidelity, const SimOptions *options,
                        Evaluation *evaluation, GError **error);
AUTOCLEAR(evaluation_clear, Evaluation)
/* Gives the report of a long pipeline, which is made without one, its timeline. */
void evaluation_record(Evaluation *evaluation);

/* Why a plan does not fit: device, bytes missing, instruction at the peak. Caller frees. */
char *evaluation_misfit(const Evaluation *evaluation);
/* Settings that this plan does not have and that may make a plan fit, such as "--planner auto,
 * --granularity gpu"; never empty. Caller frees. */
char *evaluation_ways_to_fit(const Evaluation *evaluation);
