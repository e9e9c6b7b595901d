/* Planners: methods that make a plan, behind one interface (AMP, HiDup, TAG join as further rows). */
#ifndef KILTER_EXPERIMENTS_PLANNER_H
#define KILTER_EXPERIMENTS_PLANNER_H

#include "data/data.h"
#include "experiments/planners/amp_options.h"
#include "sim/sim.h"
#include "synth/synth.h"

/* Which ratios the plan has: the planner's own, or ones that replace them. */
#define RATIOS_TABLE(X)                                           \
    X(OWN, "own")                   /* what the planner is for */ \
    X(EVEN, "even")                 /* by number of GPUs */       \
    X(PROPORTIONAL, "proportional") /* by speed */                \
    X(BEST,                                                       \
      "best") /* hap, hidup: best together with the program; others: for their program */

/* How uneven shards are gathered and reduce-scattered (HAP Sec. 2.5.1). */
#define EXCHANGES_TABLE(X) \
    X(BOTH, "both")        \
    X(PADDED, "padded")    \
    X(GROUPED, "grouped")

/* How hap searches for a program. */
#define SEARCH_TABLE(X) \
    X(EXACT, "exact")   \
    X(REFERENCE, "reference") /* HAP's Fig. 10: without memory and baselines */

/* Whether the plan's batch is cut in two microbatches that take turns (HiDup Sec. 3). */
#define DUPLEX_TABLE(X)                             \
    X(OWN, "own") /* hidup's is, others' are not */ \
    X(OFF, "off")                                   \
    X(ON, "on")

/* Whether hidup's search believes that the backward overlaps (HiDup Eq. 5), or does not, as in
 * HiDup's artifact. */
#define BACKWARD_TABLE(X)       \
    X(OVERLAPPED, "overlapped") \
    X(SERIAL, "serial")

typedef enum {
#define X(id, name) BACKWARD_##id,
    BACKWARD_TABLE(X)
#undef X
} BackwardOption;

typedef enum {
#define X(id, name) DUPLEX_##id,
    DUPLEX_TABLE(X)
#undef X
} DuplexOption;

typedef enum {
#define X(id, name) RATIOS_##id,
    RATIOS_TABLE(X)
#undef X
} RatiosOption;

typedef enum {
#define X(id, name) EXCHANGES_##id,
    EXCHANGES_TABLE(X)
#undef X
} ExchangesOption;

typedef enum {
#define X(id, name) SEARCH_##id,
    SEARCH_TABLE(X)
#undef X
} SearchOption;

/* What every planner may be told; `--set key=value` and the `set:` of an experiment file fill it. */
typedef struct {
    uint64_t seed;
    uint64_t bucket_bytes; /* fuse gradient all-reduces up to this size; 0: one each */
    uint32_t beam;         /* of the search; 0: exact */
    /* gap at which the certificate is good enough; 0: one box, hap only */
    double certify;
    double budget_s; /* of search and certificate together, wall clock; 0: none */
    gint64
        deadline_us; /* set by planner_plan(): when the budget ends (g_get_monotonic_time); 0: never */
    uint32_t max_rounds;  /* of hap's alternation */
    uint32_t ratios;      /* RatiosOption */
    uint32_t collectives; /* ExchangesOption: those that a plan may use */
    uint32_t search;      /* SearchOption, of hap */
    uint32_t duplex;      /* DuplexOption */
    uint32_t backward;    /* BackwardOption, of hidup */
    double noise; /* of hidup: part by which estimates are off, at random by the seed */
    /* of hidup: part by which communication is believed longer (-1: free) */
    double communication;
    const char *pins; /* of hap: as synth_pins_text() makes them, interned; NULL: none */
    /* of hap: none, layers, ops, metis:K or a file, interned; NULL: none */
    const char *segments;
    const SynthPins *held; /* set by planner_plan(): those pins, for its graph, */
    SynthSpace *space;     /* and the programs that keep them */
    AmpPlanOptions amp;    /* of the planners of pipelines */
    SimOptions sim;        /* of the simulation of the plan; plans do not depend on it */
} PlannerOptions;

typedef struct Planner Planner;
struct Planner {
    const char *name;
    const char *description;
    const char *source; /* paper and section */
    bool single;        /* plans single GPUs: granularity gpu only */
    /* Fills program, ratios, search/balance times, bound; planner_plan() rounds, evaluates and
     * completes the plan. */
    bool (*make)(const Graph *graph, const ClusterView *view,
                 const PlannerOptions *options, Plan *plan, GError **error);
};

uint32_t planner_count(void);
const Planner *planner_at(uint32_t index);
/* Whether it takes the best of many programs: if its plan does not fit, another one may. */
bool planner_searches(const Planner *planner);
const Planner *planner_find(const char *name,
                            GError **error); /* KILTER_ERROR_INPUT lists the known ones */

void planner_options_init(PlannerOptions *options);
/* One `key=value`; KILTER_ERROR_INPUT names the key and what was expected. */
bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error);
/* Whether the planner can do what the options ask for, for this graph; KILTER_ERROR_INPUT names the
 * option, or the pin. */
bool planner_check(const Planner *planner, const PlannerOptions *options,
                   const Graph *graph, GError **error);

/* The options as `key`, `value` pairs for the effective configuration, those of the simulation
 * where they are not at their defaults. Free with g_strfreev. */
char **planner_options_list(const PlannerOptions *options);

/* How plan_complete() evaluates: by the formula, or, what it does not know (groups, microbatches),
 * by `stage`. */
const char *plan_fidelity(const Plan *plan);

/* Builds the graph, runs the planner, rounds, evaluates (analytic) and checks memory. A plan that
 * does not fit has feasible == false; it is not an error here. *graph, if not NULL, gets the graph. */
Plan *planner_plan(const Planner *planner, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error);

#endif
