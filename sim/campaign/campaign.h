/* Training for days: what failures, checkpoints, restarts and stragglers leave of a plan's pace. Part of sim's public
 * interface, included by sim/sim.h.
 *
 * A run alternates between work and saving a checkpoint: after `interval_s` of work at full pace training stops for `save_s`,
 * and `write_s` after that the checkpoint can be restarted from (asynchronous writing; 0: at once). A failure of any of the GPUs
 * throws away the work since the last such checkpoint; training goes on after `restart_s`. A failure during a restart begins it
 * again. The machine of the failed GPU is replaced by a spare, and comes back as one after `repair_s`. Without a spare the run
 * waits for the first machine to come back or, where `fewer` is given, goes on with a plan for the machines that are left, and restarts
 * once more when one is back.
 *
 * Each GPU fails by a renewal process of its own: gaps have mean `mtbf_s` and are exponential, or Weibull's with `shape`. Stragglers
 * come at random at a mean rate of one GPU in `straggler_every_s`, stay for an exponential time, and slow down the whole by their
 * factor; several count once.
 *
 * Iterations between events are not simulated one by one: the state after a time follows from the length of a cycle. */
#ifndef KILTER_SIM_CAMPAIGN_CAMPAIGN_H
#define KILTER_SIM_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

enum { CAMPAIGN_MAX_FEWER = 64, CAMPAIGN_MAX_RUNS = 100000 };

typedef struct {
    double iteration_s, days_s; /* of the plan; length of a run */
    uint32_t gpus, spares;      /* spares: machines */
    double mtbf_s;              /* of one GPU; INFINITY: none fails */
    double shape;               /* 1: exponential */
    const double *failure_s;    /* in place of both: times of failures, sorted; NULL */
    uint32_t n_failures;
    double
        interval_s; /* work between checkpoints; 0: the best one for exponential failures */
    double save_s, write_s, restart_s, repair_s;
    double straggler_every_s, straggler_stays_s, straggler_factor; /* every: 0: none */
    const double *
        fewer; /* [k]: iteration time with k + 1 machines fewer, rising; NULL: a run waits */
    uint32_t n_fewer;
    uint32_t runs;
    uint64_t seed;
} SimCampaign;

/* Where the time of a run goes; the parts sum to its length. */
typedef struct {
    double work_s; /* kept, at full pace: iterations x the plan's time, */
    double slow_s; /* and how much longer they took, by stragglers and missing machines */
    double lost_s; /* work that failures threw away */
    double save_s, restart_s, wait_s;
    uint32_t failures, checkpoints;
} SimCampaignRun;

typedef struct {
    double interval_s; /* that was used */
    double system_mtbf_s;
    uint32_t n;
    SimCampaignRun *run; /* by goodput, lowest first */
    SimCampaignRun mean; /* of all; counts rounded down */
    double goodput, low, median,
        high; /* work / length: mean, 5 %, 50 % and 95 % of the runs */
    double failures, checkpoints; /* means */
} SimCampaignReport;

/* The interval that loses least where failures of the whole come at random every mtbf_s: the root of
 * exp((t + save) / mtbf) (1 - t / mtbf) = 1 (Daly 2006, Eq. 12 on; Young 1974: about sqrt(2 save mtbf)). 0 where saving is free:
 * INFINITY where nothing fails. */
double sim_campaign_best_interval_s(double mtbf_s, double save_s);

/* Deterministic: a run depends on the seed and on its number. KILTER_ERROR_INPUT says what is out of range. */
SimCampaignReport *sim_campaign(const SimCampaign *campaign, GError **error);
void sim_campaign_report_free(SimCampaignReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimCampaignReport, sim_campaign_report_free)

#endif
