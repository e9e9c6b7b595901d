/* Every planner on every choice of machines, for `advise`, which prints them, and `auto`, which
 * takes the fastest.
 *
 * A choice is some of the device types of a cluster with all of their machines, or a single machine
 * of a type, or (option `some`) any number of machines of each kind. The training stays the same:
 * each choice plans the model of the whole cluster, with its global batch and its experts. */
#pragma once

#include "synth/planners/planner.h"

/* One way to plan on a choice of machines. */
typedef struct {
    const Planner *planner;
    Granularity granularity;
    /* techniques that the planner does not choose by itself, as for --set, with spaces between
     * them: "zero=1 sequence_parallel=on"; "": none */
    const char *set;
    double iteration_s; /* INFINITY: no plan */
    char *reason;       /* why there is no plan, or why the try was left out; else NULL */
    bool left_out;      /* it was not tried */
    bool misfit;        /* no plan was found that fits, */
    bool beaten;        /* since a bound shows that none is fast enough */
} PortfolioTry;

typedef struct {
    char *machines; /* "16 p100, 8 v100": GPUs by device type */
    char *only;     /* the argument of --only for them; NULL: the whole cluster */
    uint32_t gpus;
    Cluster *cluster;
    double bound_s; /* no plan on these machines is faster; 0: not known */
    bool skipped;   /* left out: a faster plan than its bound was found elsewhere */
    GArray *tries;  /* PortfolioTry */
    /* The fastest plan that fits; NULL: none does. */
    const PortfolioTry *best;
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimReport *report;
    PlannerOptions options; /* of the plan's try */
    double flow_s;          /* of the plan, by the fidelity flow; 0: not asked */
    /* The fastest strategy that a planner found, whose neighbours are tried last; INFINITY: none */
    Strategy start;
    double start_s;
} PortfolioChoice;

typedef struct {
    char *model;    /* canonical, for the whole cluster */
    double bound_s; /* no plan on any of its machines is faster; 0: not known */
    /* PortfolioChoice, the fastest first, those without a plan last */
    GPtrArray *choices;
    /* char *: sentences on what was searched, and on what techniques bring */
    GPtrArray *notes;
    double elapsed_s;
} Portfolio;

/* Changes to the defaults. */
typedef struct {
    /* leave out tries that a bound proves no faster than the best plan so far */
    bool prune;
    bool all;  /* leave out no try: every planner gets a time */
    bool some; /* also choose some machines of a kind, where there are few kinds */
    /* also choose some machines of a single kind, by halving their number */
    bool numbers;
    bool flow; /* the fastest choices are compared again by the fidelity flow */
    /* planners that search long are left out where they can gain at most this part on the
     * machines */
    double spare;
    double known_s;   /* of a plan that is known: others are of no use; 0: none */
    uint32_t threads; /* tries at once; 0: one per processor. They change no answer */
    /* Called before each try, from any thread but never by two at once; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t total, const char *what);
    void *context;
} PortfolioOptions;

/* KILTER_ERROR_INPUT for a model or options that no planner can plan. If no try has a plan, the
 * error of the first try (KILTER_ERROR_INFEASIBLE where plans do not fit, or none is faster than
 * one that is known). */
Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error);
/* Takes the fastest plan out, with its report and its view, which owns the machines. May be called
 * once. */
Plan *portfolio_take(Portfolio *portfolio, ClusterView **view, SimReport **report);
AUTOPTR(portfolio_free, Portfolio)
