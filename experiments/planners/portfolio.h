/* Every planner on every choice of machines: what `advise` prints and what `auto` chooses from.
 *
 * A choice is some of the device types of a cluster with all of their machines, or a single machine
 * of a type; or any number of machines of each kind. The training stays the same: the model that the whole cluster trains, its global batch
 * and its experts, is planned on each choice. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PORTFOLIO_H
#define KILTER_EXPERIMENTS_PLANNERS_PORTFOLIO_H

#include "experiments/planners/planner.h"

/* One way to plan on a choice of machines. */
typedef struct {
    const Planner *planner;
    Granularity granularity;
    double iteration_s; /* INFINITY: no plan */
    char *reason;       /* why there is none, or why it was left out; NULL otherwise */
} PortfolioTry;

typedef struct {
    char *machines; /* "16 p100, 8 v100": GPUs by device type */
    char *only;     /* what --only takes for them; NULL: the whole cluster */
    uint32_t gpus;
    Cluster *cluster;
    double bound_s; /* no plan on these machines is faster; 0: not known */
    bool skipped;   /* by its bound, after a faster plan was found elsewhere */
    GArray *tries;  /* PortfolioTry */
    /* The fastest plan that fits; NULL: none does. */
    const PortfolioTry *best;
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimReport *report;
} PortfolioChoice;

typedef struct {
    char *model;    /* canonical, of the whole cluster */
    double bound_s; /* no plan on any of its machines is faster; 0: not known */
    GPtrArray
        *choices; /* PortfolioChoice, the fastest first, those without a plan last */
    double elapsed_s;
} Portfolio;

/* Choices that differ from the defaults. */
typedef struct {
    bool prune; /* leave out what a bound says is not faster than the best plan so far */
    bool all;   /* leave out no try: say what each planner takes */
    bool
        some; /* some machines of a kind are choices, too: as many as there are, of few kinds */
    double
        limit_s; /* of each try; 0: none. The budget of the options is that of all of them */
    /* Called before each try, from any thread, one at a time; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t total, const char *what);
    void *context;
} PortfolioOptions;

/* KILTER_ERROR_INPUT for a model or options that nothing can be planned with, and the reason of the
 * first try if no try has a plan (KILTER_ERROR_INFEASIBLE). */
Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error);
/* Takes the fastest plan out, with its report, and its view, which owns the machines. Once. */
Plan *portfolio_take(Portfolio *portfolio, ClusterView **view, SimReport **report);
void portfolio_free(Portfolio *portfolio);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Portfolio, portfolio_free)

#endif
