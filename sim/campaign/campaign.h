/* Training for days: how much of a plan's pace remains after failures, checkpoints, restarts and
 * stragglers. Part of sim's public interface, included by sim/sim.h.
 *
 * A run alternates between work and saving a checkpoint: after `interval_s` of work at full pace
 * training stops for `save_s`, and `write_s` later the checkpoint is usable (asynchronous writing;
 * 0: at once). A failure of any of the GPUs throws away the work since the last usable checkpoint;
 * training goes on after `restart_s`. A failure during a restart begins it again. The machine of
 * the failed GPU is replaced by a spare, and comes back as a spare after `repair_s`. Without a
 * spare the run waits for the first machine to come back or, where `fewer` is given, goes on with a
 * plan for the remaining machines, and restarts once more when a machine is back.
 *
 * Each GPU fails by a renewal process of its own: gaps have mean `mtbf_s` and are exponential, or
 * Weibull's with `shape`. Other parts, such as switches, fail with exponential gaps, and take a
 * number of machines with them, which are replaced one by one in the same way; where it is 0,
 * training only restarts. Stragglers come at random, one GPU per `straggler_every_s` on average,
 * stay for an exponential time, and slow the whole iteration by their factor; several stragglers
 * slow it as much as one.
 *
 * Iterations between events are not simulated one by one: the state after a time follows from the
 * length of a cycle. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

enum { CAMPAIGN_MAX_FEWER = 64, CAMPAIGN_MAX_RUNS = 100000, CAMPAIGN_MAX_PARTS = 16 };

/* `n` equal parts of the machine room, of which one fails every mtbf_s / n on average. */
typedef struct {
    uint32_t n;
    double mtbf_s;     /* of one of them */
    uint32_t machines; /* that a failure takes out, until it is repaired */
} SimCampaignPart;

typedef struct {
    double iteration_s, days_s; /* the plan's time; length of a run in seconds */
    uint32_t gpus, spares;      /* spares: machines */
    double mtbf_s;              /* of one GPU; INFINITY: none fails */
    double shape;               /* 1: exponential */
    /* times of failures, sorted, in place of mtbf_s and shape; or NULL */
    const double *failure_s;
    const uint32_t *failure_machines; /* [failure]: that it takes out; NULL: 1 */
    uint32_t n_failures;
    const SimCampaignPart *part; /* besides GPUs and given failures */
    uint32_t n_parts;
    /* work between checkpoints; 0: the one that loses least. It is known in closed form where
     * failures are exponential and checkpoints usable at once; else it is searched for by
     * simulation, with other draws than those of the runs, and with the gaps of given failures in a
     * new order. */
    double interval_s;
    double save_s, write_s, restart_s, repair_s;
    double straggler_every_s, straggler_stays_s, straggler_factor; /* every: 0: none */
    /* [k]: iteration time in s with k + 1 machines fewer, rising; NULL: a run waits */
    const double *fewer;
    uint32_t n_fewer;
    uint32_t runs;
    uint64_t seed;
    uint32_t threads; /* 0: the number of processors; changes no result */
} SimCampaign;

/* Where the time of a run goes; the parts sum to its length. */
typedef struct {
    /* work that was kept, at full pace: iterations times the plan's time */
    double work_s;
    double slow_s; /* extra time of that work by stragglers and missing machines */
    double lost_s; /* work that failures threw away */
    double save_s, restart_s, wait_s;
    uint32_t failures, checkpoints;
} SimCampaignRun;

typedef struct {
    double interval_s; /* the interval that was used */
    /* where the best one lies with 95 % confidence; 0: it was not searched for, or not found */
    double interval_low_s, interval_high_s;
    double system_mtbf_s;
    uint32_t n;
    SimCampaignRun *run; /* by goodput, lowest first */
    SimCampaignRun mean; /* mean of all runs; counts rounded down */
    double goodput, low, median,
        high; /* work / length: mean, 5 %, 50 % and 95 % of the runs */
    double failures, checkpoints; /* means */
} SimCampaignReport;

/* The interval in seconds that loses least if the whole fails at random every mtbf_s on average:
 * the root of exp((t + save) / mtbf) (1 - t / mtbf) = 1 (Daly 2006, Eq. 12 on; Young 1974: about
 * sqrt(2 save mtbf)). 0 where saving is free: INFINITY where nothing fails. */
double sim_campaign_best_interval_s(double mtbf_s, double save_s);

/* Simulates the runs, on all processors. Deterministic: a run depends only on the seed and on its
 * number.
 * KILTER_ERROR_INPUT says what is out of range. */
SimCampaignReport *sim_campaign(const SimCampaign *campaign, GError **error);
AUTOPTR(sim_campaign_report_free, SimCampaignReport)
