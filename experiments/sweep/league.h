/* A league: the planners of an experiment by how far their plans are from the best and from what is possible.
 *
 * Plans of one model on one cluster by one fidelity meet. Regret is a plan's time over the fastest one's there, its gap that over
 * what computation alone takes all of the cluster's devices (sim_compute_bound_s), a bound on every plan. */
#ifndef KILTER_EXPERIMENTS_SWEEP_LEAGUE_H
#define KILTER_EXPERIMENTS_SWEEP_LEAGUE_H

#include "experiments/sweep/experiment.h"

typedef struct {
    const char *entry; /* the planner as the experiment has it; the experiment's */
    uint32_t asked, plans,
        firsts; /* configurations; those that have a plan that fits; fastest of their meeting */
    double regret, worst_regret; /* geometric mean, less 1; NaN without plans */
    double gap, worst_gap;       /* NaN where no bound is known */
    double planning_s;           /* mean */
} LeagueRow;

/* LeagueRow: those with the most plans first, then by the gap, or the regret where there are no bounds. *missing:
 * configurations without a result. Free with g_array_unref. KILTER_ERROR_INPUT for an experiment without planners,
 * KILTER_ERROR_FAILED if the store has none of its results. */
GArray *league_of(const Experiment *experiment, Store *store, uint32_t *missing,
                  GError **error);

#endif
