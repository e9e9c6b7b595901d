/* Planners: methods that make a plan, behind one interface.
 *
 *     model, cluster, options  --planning_open-->  Planning  graph, pins and segments, checked
 *                              --planning_plan-->  Plan      program and ratios, rounded, evaluated, bounded
 *
 * A planner is a row of the table in experiments/planners/planner.c: name, description, paper, what
 * it can do, and a function make() that gets what it plans with (experiments/planners/planning.h)
 * and fills the plan's program and ratios (experiments/planners/complete.h has the tools). Options
 * are rows of tables as well (experiments/planners/planner_options.h). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PLANNER_H
#define KILTER_EXPERIMENTS_PLANNERS_PLANNER_H

#include "data/data.h"
#include "experiments/planners/planner_options.h"
#include "sim/sim.h"

/* A question to a planner, opened once: the graph is built, the options are checked. */
typedef struct Planning Planning; /* experiments/planners/planning.h */

/* What a planner can do. Other code asks for abilities, never for a planner's name. */
typedef enum {
    PLANNER_PINS = 1u << 0,     /* keeps the forms that pins ask for */
    PLANNER_SEGMENTS = 1u << 1, /* gives segments ratios of their own */
    PLANNER_RATIOS =
        1u << 2, /* can be given ratios by speed, or asked for the best ones */
    PLANNER_STRATEGY =
        1u << 3, /* takes the options of pipelines: degrees, schedule, ... */
    PLANNER_GROUPS =
        1u << 4, /* its programs run on groups of devices, microbatch by microbatch */
    PLANNER_GPUS = 1u << 5,  /* plans for single GPUs only */
    PLANNER_TURNS = 1u << 6, /* its own search knows two microbatches that take turns */
    PLANNER_BALANCES =
        1u << 7, /* the ratios it chooses are the best ones for its program */
    PLANNER_SEARCHES =
        1u << 8, /* takes the best of all programs: where its plan does not fit,
                                   another one may, or it can be proved that none does */
    PLANNER_CERTIFIES =
        1u << 9,               /* its plans can be held against a bound on all programs */
    PLANNER_BOUNDS = 1u << 10, /* they always are, by the bound that is had at once */
    PLANNER_PLACES =
        1u << 12, /* takes the options of op groups: groups, evaluations, ... */
    PLANNER_TREES = 1u << 13, /* takes search=best, mcts or exact */
    PLANNER_TRIED = 1u << 11, /* one that `advise` tries: needs nothing but its options */
    PLANNER_CHOOSES = 1u << 14, /* chooses machines, and what a device is */
    PLANNER_EVEN = 1u << 15,    /* its own ratios are equal shares per GPU */
    PLANNER_FIRST = 1u << 16,   /* quick, and seldom beaten: tried before the others, */
    PLANNER_ZERO = 1u << 18,    /* its replicas can divide what they all hold (zero) */
    PLANNER_LAST = 1u << 17,    /* or, a long search that seldom wins, after them */
} PlannerAbility;

typedef struct Planner Planner;
struct Planner {
    const char *name;
    const char *description;
    const char *source; /* paper and section */
    uint32_t ability;   /* PlannerAbility, or-ed */
    /* Fills program, ratios, search and balance times; planning_plan() rounds, evaluates and
     * bounds. One that can PLANNER_CHOOSES makes the whole plan, and sets the planning's chosen view and
     * its report. */
    bool (*make)(const Planning *planning, Plan *plan, GError **error);
};

uint32_t planner_count(void);
const Planner *planner_at(uint32_t index);
/* Whether it can do all of that. */
static inline bool planner_can(const Planner *planner, uint32_t ability)
{
    return (planner->ability & ability) == ability;
}

/* The planners with an ability, as text: "planner hap", "one of the planners amp, megatron". Caller
 * frees. */
char *planners_that(uint32_t ability);
const Planner *planner_find(const char *name,
                            GError **error); /* KILTER_ERROR_INPUT lists the known ones */

/* Builds the graph and checks that the planner can do what the options ask for; KILTER_ERROR_INPUT
 * names the option, the pin, or what is wrong with the model. The view is not taken over, the
 * options are copied. */
Planning *planning_open(const Planner *planner, const char *model,
                        const ClusterView *view, const PlannerOptions *options,
                        GError **error);
/* The same on a graph that is there, of the canonical spec `model`; the planning takes a reference of its own. */
Planning *planning_open_on(const Planner *planner, const char *model, Graph *graph,
                           const ClusterView *view, const PlannerOptions *options,
                           GError **error);
/* The checks that need no graph: whether the planner works at this granularity, and can do what the
 * options ask for. */
bool planner_check(const Planner *planner, Granularity granularity,
                   const PlannerOptions *options, GError **error);
void planning_free(Planning *planning);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Planning, planning_free)

/* The model with every parameter. */
const char *planning_model(const Planning *planning);
/* Whether it has made its plan. */
bool planning_is_used(const Planning *planning);
/* The graph, the caller's from now on: for after the plan. */
Graph *planning_take_graph(Planning *planning);

/* Runs the planner: once a planning. A plan that does not fit has feasible == false; it is not an
 * error here. cluster: the name that the plan gets. *report: of the plan, by the fidelity
 * plan_fidelity() and with the default options of the simulation; the caller's. */
Plan *planning_plan(Planning *planning, const char *cluster, SimReport **report,
                    GError **error);
/* The view that the plan is on where the planner chose the machines; NULL: the planning's. The
 * caller's, with its cluster. */
ClusterView *planning_take_view(Planning *planning);
/* Before the plan is made: one that takes as long is of no use, and need not be searched for to the
 * end. */
void planning_set_upper(Planning *planning, double seconds);

/* All of it, for planners that do not choose the machines (KILTER_ERROR_INPUT). *graph, if not NULL, gets the graph. */
Plan *planner_plan(const Planner *planner, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error);

#endif
