/* Days of training: all runs, and what they are together. */
#include <math.h>
#include <stdlib.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/order.h"
#include "data/base/parallel.h"
#include "sim/campaign/run.h"

static ORDER_DEFINE(by_goodput, SimCampaignRun, ASCENDING(work_s));

static void campaign_summarize(SimCampaignReport *report, double days_s)
{
    SimCampaignRun *mean = &report->mean;
    qsort(report->run, report->n, sizeof *report->run, by_goodput);
    items_each (const SimCampaignRun, run, report->run, report->n) {
        mean->work_s += run->work_s / report->n;
        mean->slow_s += run->slow_s / report->n;
        mean->lost_s += run->lost_s / report->n;
        mean->save_s += run->save_s / report->n;
        mean->restart_s += run->restart_s / report->n;
        mean->wait_s += run->wait_s / report->n;
        report->failures += run->failures; /* sums of whole numbers are exact */
        report->checkpoints += run->checkpoints;
    }
    report->failures /= report->n;
    report->checkpoints /= report->n;
    mean->failures = (uint32_t)report->failures;
    mean->checkpoints = (uint32_t)report->checkpoints;
    report->goodput = mean->work_s / days_s;
    report->low = report->run[(report->n - 1) * 5 / 100].work_s / days_s;
    report->median = report->run[(report->n - 1) / 2].work_s / days_s;
    report->high = report->run[(report->n - 1) * 95 / 100].work_s / days_s;
}

/* Failures per second that are drawn. */
static double failure_rate(const SimCampaign *of)
{
    double rate = of->failure_s ? 0 : of->gpus / of->mtbf_s;
    for (uint32_t p = 0; p < of->n_parts; p++)
        rate += of->part[p].n / of->part[p].mtbf_s;
    return rate;
}

static bool campaign_check(const SimCampaign *of, GError **error)
{
    if (!(of->iteration_s > 0) || !(of->days_s > 0) || of->gpus == 0 || of->runs == 0 ||
        of->runs > CAMPAIGN_MAX_RUNS || of->n_fewer > CAMPAIGN_MAX_FEWER ||
        of->n_parts > CAMPAIGN_MAX_PARTS)
        return refuse(
            error, "a run of days needs an iteration, a length above 0 and 1 to %d runs",
            CAMPAIGN_MAX_RUNS);
    const double expected =
        (of->failure_s ? of->n_failures : 0) + of->days_s * failure_rate(of);
    const double slow =
        of->straggler_every_s > 0 ? of->days_s / of->straggler_every_s * of->gpus : 0;
    enum { MOST = 10000000 };
    if (expected + slow > MOST)
        return refuse(error, "%.3g failures and stragglers in a run, expected at most %d",
                      expected + slow, MOST);
    return (of->mtbf_s > 0 && of->shape > 0) ||
           refuse(error, "the time between failures and the shape must be above 0");
}

/* The number of given failures before the end of a run. */
static uint32_t failures_within(const SimCampaign *of)
{
    uint32_t n = 0;
    while (n < of->n_failures && of->failure_s[n] < of->days_s)
        n++;
    return n;
}

/* A whole number of iterations, at least one; a checkpoint has been written before the next one
 * begins. */
static double usable_interval_s(const SimCampaign *of, double interval_s)
{
    if (!isfinite(interval_s))
        return 2 * of->days_s;
    const double whole = fmax(round(interval_s / of->iteration_s), 1);
    return fmax(whole * of->iteration_s, of->write_s);
}

typedef struct {
    const SimCampaign *of;
    SimCampaignReport *report;
} Work;

static bool run_number(void *context, uint32_t i, GError **error)
{
    (void)error;
    const Work *work = context;
    g_autoptr(GArray) events = sim_campaign_draw(work->of, i, SIM_CAMPAIGN_AS_GIVEN);
    work->report->run[i] = sim_campaign_run(work->of, work->report->interval_s, events);
    return true;
}

SimCampaignReport *sim_campaign(const SimCampaign *campaign, GError **error)
{
    if (!campaign_check(campaign, error))
        return NULL;
    g_autoptr(SimCampaignReport) report = g_new0(SimCampaignReport, 1);
    const uint32_t given = failures_within(campaign);
    const double rate = given / campaign->days_s + failure_rate(campaign);
    report->system_mtbf_s = rate > 0 ? 1 / rate : INFINITY;
    report->interval_s = campaign->interval_s;
    if (campaign->interval_s == 0 && !sim_campaign_choose(campaign, report, error))
        return NULL;
    report->interval_s = usable_interval_s(campaign, report->interval_s);
    report->n = campaign->runs;
    report->run = g_new(SimCampaignRun, campaign->runs);
    Work work = {campaign, report};
    if (!parallel_each(campaign->runs, campaign->threads, run_number, &work, error))
        return NULL;
    campaign_summarize(report, campaign->days_s);
    return g_steal_pointer(&report);
}

FREE_DEFINE(sim_campaign_report_free, SimCampaignReport, report, g_free(report->run));
