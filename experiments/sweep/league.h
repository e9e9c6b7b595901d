/* A league: the planners of an experiment, ranked by how far their plans are from a bound and from
 * the fastest plan.
 *
 * Plans of one model on one cluster by one fidelity meet. The regret of a plan is its time over the
 * time of the fastest plan in its meeting. The gap is its time over the time that computation alone
 * takes on all devices of the cluster (sim_compute_bound_s), which is a bound on every plan. */
#pragma once

#include "experiments/sweep/experiment.h"

typedef struct Store Store; /* data/store/store.h */

/* Why a planner has no plan of some configurations. */
typedef struct {
    char *reason;
    uint32_t results;
} LeagueRefusal;

typedef struct {
    /* the planner as the experiment writes it; borrowed from the experiment */
    const char *entry;
    uint32_t asked, plans,
        firsts; /* numbers of configurations, of plans that fit, and of meetings won */
    double regret, worst_regret; /* geometric mean, less 1; NaN without plans */
    double gap, worst_gap;       /* NaN where no bound is known */
    double planning_s;           /* mean */
    GArray *refusal;             /* LeagueRefusal, the most frequent first */
} LeagueRow;

/* LeagueRows: planners with the most plans first, then by the gap, or by the regret where there are
 * no bounds. *missing: number of configurations without a result. Free with g_array_unref.
 * KILTER_ERROR_INPUT for an experiment without planners, KILTER_ERROR_FAILED if the store has none
 * of its results. */
GArray *league_of(const Experiment *experiment, Store *store, uint32_t *missing,
                  GError **error);
