/* Runs of days, from event to event. */
#include "sim/campaign/campaign.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

#include "data/data.h"
#include "sim/event/random.h"

/* An event of the whole run, known before the run begins. */
typedef struct {
    double time_s;
    bool slow; /* true: a straggler comes or goes; false: something fails */
    int more; /* change of the number of stragglers, 1 or -1; number of machines that a failure takes out */
} Event;

typedef struct {
    const SimCampaign *of;
    double interval_s;
    GArray *event;  /* Event, sorted */
    GArray *back_s; /* when machines come back, sorted */
    uint32_t spares, missing, stragglers;
    double now_s;
    double since_s;        /* work done since the last checkpoint was begun */
    double saving_s;       /* time left of a save in progress; 0: none */
    double kept_s, work_s; /* work in the last usable checkpoint; work in all */
    double pending_s,
        /* work in the checkpoint being written, and when it is usable; INFINITY: none */
        usable_s;
    SimCampaignRun run;
} Run;

/* --- the best interval --- */

static double slope(double interval_s, double mtbf_s, double save_s)
{
    return exp((interval_s + save_s) / mtbf_s) * (1 - interval_s / mtbf_s) - 1;
}

double sim_campaign_best_interval_s(double mtbf_s, double save_s)
{
    enum { HALVINGS = 200 };
    if (!isfinite(mtbf_s))
        return INFINITY;
    if (save_s <= 0)
        return 0;
    double low = 0, high = mtbf_s; /* the slope falls from above 0 to -1 */
    for (uint32_t i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        *(slope(middle, mtbf_s, save_s) > 0 ? &low : &high) = middle;
    }
    return low;
}

/* --- events --- */

static int by_time(gconstpointer a, gconstpointer b)
{
    const Event *x = a, *y = b;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static void add_event(GArray *list, double time_s, bool slow, int more)
{
    const Event event = {time_s, slow, more};
    g_array_append_val(list, event);
}

static void draw_failures(const SimCampaign *of, GArray *list, const gsl_rng *rng)
{
    if (of->failure_s) {
        for (uint32_t i = 0; i < of->n_failures; i++)
            add_event(list, of->failure_s[i], false,
                      of->failure_machines ? (int)of->failure_machines[i] : 1);
        return;
    }
    if (!isfinite(of->mtbf_s))
        return;
    const double scale = of->mtbf_s / tgamma(1 + 1 / of->shape);
    for (uint32_t g = 0; g < of->gpus; g++)
        for (double at = gsl_ran_weibull(rng, scale, of->shape); at < of->days_s;
             at += gsl_ran_weibull(rng, scale, of->shape))
            add_event(list, at, false, 1);
}

static void draw_parts(const SimCampaign *of, GArray *list, const gsl_rng *rng)
{
    for (uint32_t p = 0; p < of->n_parts; p++) {
        const double every_s = of->part[p].mtbf_s / of->part[p].n;
        for (double at = gsl_ran_exponential(rng, every_s); at < of->days_s;
             at += gsl_ran_exponential(rng, every_s))
            add_event(list, at, false, (int)of->part[p].machines);
    }
}

static void draw_stragglers(const SimCampaign *of, GArray *list, const gsl_rng *rng)
{
    if (of->straggler_every_s <= 0)
        return;
    const double every_s = of->straggler_every_s / of->gpus;
    for (double at = gsl_ran_exponential(rng, every_s); at < of->days_s;
         at += gsl_ran_exponential(rng, every_s)) {
        add_event(list, at, true, 1);
        add_event(list, at + gsl_ran_exponential(rng, of->straggler_stays_s), true, -1);
    }
}

/* --- work --- */

/* The factor by which an iteration takes longer now than at full pace. */
static double pace(const Run *run)
{
    const double fewer =
        run->missing ? run->of->fewer[run->missing - 1] / run->of->iteration_s : 1;
    return run->stragglers ? fewer * run->of->straggler_factor : fewer;
}

/* From now on a restart begins from the checkpoint that has been written meanwhile, if any. */
static void settle(Run *run)
{
    if (run->usable_s <= run->now_s) {
        run->kept_s = run->pending_s;
        run->usable_s = INFINITY;
    }
}

static void saved(Run *run, double at_s)
{
    run->run.checkpoints++;
    run->since_s = 0;
    settle(run);
    run->pending_s = run->work_s;
    run->usable_s = at_s + run->of->write_s;
    settle(run);
}

/* Skips whole cycles of work and saving at once; the last cycle goes step by step, so that the
 * state of its checkpoint is known. */
static double skip_cycles(Run *run, double left_s, double slower)
{
    const double cycle_s = run->interval_s * slower + run->of->save_s;
    const double whole = floor(left_s / cycle_s) - 1 - ceil(run->of->write_s / cycle_s);
    if (run->since_s > 0 || run->saving_s > 0 || whole < 1)
        return left_s;
    run->work_s += whole * run->interval_s;
    run->run.slow_s += whole * run->interval_s * (slower - 1);
    run->run.save_s += whole * run->of->save_s;
    run->run.checkpoints += (uint32_t)whole;
    run->now_s += whole * cycle_s;
    run->kept_s = run->work_s;
    run->usable_s = INFINITY;
    return left_s - whole * cycle_s;
}

static void advance(Run *run, double until_s)
{
    double left_s = until_s - run->now_s;
    const double slower = pace(run);
    while (left_s > 0) {
        left_s = skip_cycles(run, left_s, slower);
        if (run->saving_s > 0) {
            const double step_s = MIN(left_s, run->saving_s);
            run->saving_s -= step_s;
            run->run.save_s += step_s;
            run->now_s += step_s;
            left_s -= step_s;
            if (run->saving_s <= 0)
                saved(run, run->now_s);
            continue;
        }
        const double to_save_s = (run->interval_s - run->since_s) * slower;
        const double step_s = MIN(left_s, to_save_s);
        run->now_s += step_s;
        left_s -= step_s;
        run->work_s += step_s / slower;
        run->run.slow_s += step_s - step_s / slower;
        run->since_s += step_s / slower;
        if (step_s == to_save_s) {
            run->saving_s = run->of->save_s;
            if (run->saving_s <= 0)
                saved(run, run->now_s);
        }
    }
    run->now_s = until_s;
    settle(run);
}

/* --- failures --- */

static double next_back_s(const Run *run)
{
    return run->back_s->len ? g_array_index(run->back_s, double, 0) : INFINITY;
}

/* Stands still until until_s, at most to the end of the run; adds the time to *part_s. */
static void stand(Run *run, double until_s, double *part_s)
{
    const double end_s = MIN(until_s, run->of->days_s);
    if (end_s > run->now_s) {
        *part_s += end_s - run->now_s;
        run->now_s = end_s;
    }
}

/* Training begins again restart_s after from_s. */
static void restart(Run *run, double from_s)
{
    stand(run, from_s + run->of->restart_s, &run->run.restart_s);
}

/* Machines that have come back become spares, or fill an empty place. */
static void take_back(Run *run)
{
    while (next_back_s(run) <= run->now_s) {
        g_array_remove_index(run->back_s, 0);
        if (run->missing > 0) {
            run->missing--;
            restart(run, run->now_s);
        } else {
            run->spares++;
        }
    }
}

/* A spare takes the place of a machine that failed, or training goes on without it, or waits until a machine is back. Returns when. */
static double replace(Run *run, double at_s)
{
    if (run->spares > 0) {
        run->spares--;
    } else if (run->missing < run->of->n_fewer) {
        run->missing++;
    } else {
        at_s = MAX(at_s, next_back_s(run));
        stand(run, at_s, &run->run.wait_s);
        g_array_remove_index(run->back_s, 0);
    }
    return at_s;
}

static void fail(Run *run, double at_s, uint32_t machines)
{
    run->run.failures++;
    run->run.lost_s += run->work_s - run->kept_s;
    run->work_s = run->kept_s;
    run->since_s = run->saving_s = 0;
    run->usable_s = INFINITY;
    const double back_s = at_s + run->of->repair_s;
    for (uint32_t m = 0; m < machines; m++)
        g_array_append_val(run->back_s, back_s);
    gsl_sort((double *)(void *)run->back_s->data, 1, run->back_s->len);
    for (uint32_t m = 0; m < machines; m++)
        at_s = replace(run, at_s);
    restart(run, at_s);
}

static void react(Run *run, const Event *event)
{
    if (event->slow)
        run->stragglers = (uint32_t)((int)run->stragglers + event->more);
    else
        fail(run, event->time_s, (uint32_t)event->more);
}

/* Advances the run to `time_s`; machines that come back on the way fill empty places. */
static void go_to(Run *run, double time_s)
{
    while (run->missing > 0 && next_back_s(run) < time_s) {
        if (next_back_s(run) > run->now_s)
            advance(run, next_back_s(run));
        take_back(run);
    }
    if (time_s > run->now_s)
        advance(run, time_s);
    take_back(run);
}

static SimCampaignRun run_once(const SimCampaign *of, double interval_s, uint32_t number)
{
    SimRandom random;
    Run run = {.of = of,
               .interval_s = interval_s,
               .spares = of->spares,
               .usable_s = INFINITY,
               .event = g_array_new(false, false, sizeof(Event)),
               .back_s = g_array_new(false, false, sizeof(double))};
    sim_random_start(&random, sim_random_mix(of->seed, number));
    draw_failures(of, run.event, &random.rng);
    draw_stragglers(of, run.event, &random.rng);
    draw_parts(of, run.event, &random.rng);
    g_array_sort(run.event, by_time);
    for (uint32_t i = 0; i < run.event->len && run.now_s < of->days_s; i++) {
        const Event *event = &g_array_index(run.event, Event, i);
        if (event->time_s >= of->days_s)
            break;
        go_to(&run, event->time_s);
        react(&run, event);
    }
    go_to(&run, of->days_s);
    run.run.work_s = run.work_s;
    g_array_unref(run.event);
    g_array_unref(run.back_s);
    return run.run;
}

/* --- all runs --- */

static int by_goodput(gconstpointer a, gconstpointer b)
{
    const SimCampaignRun *x = a, *y = b;
    return (x->work_s > y->work_s) - (x->work_s < y->work_s);
}

static void summarize(SimCampaignReport *report, double days_s)
{
    SimCampaignRun *mean = &report->mean;
    qsort(report->run, report->n, sizeof *report->run, by_goodput);
    for (uint32_t i = 0; i < report->n; i++) {
        const SimCampaignRun *run = &report->run[i];
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

static bool check(const SimCampaign *of, GError **error)
{
    if (!(of->iteration_s > 0) || !(of->days_s > 0) || of->gpus == 0 || of->runs == 0 ||
        of->runs > CAMPAIGN_MAX_RUNS || of->n_fewer > CAMPAIGN_MAX_FEWER ||
        of->n_parts > CAMPAIGN_MAX_PARTS)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "a run of days needs an iteration, a length above 0 and 1 to "
                           "%d runs",
                           CAMPAIGN_MAX_RUNS);
    const double expected =
        (of->failure_s ? of->n_failures : 0) + of->days_s * failure_rate(of);
    const double slow =
        of->straggler_every_s > 0 ? of->days_s / of->straggler_every_s * of->gpus : 0;
    enum { MOST = 10000000 };
    if (expected + slow > MOST)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%.3g failures and stragglers in a run, expected at most %d",
                           expected + slow, MOST);
    return (of->mtbf_s > 0 && of->shape > 0) ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "the time between failures and the shape must be above 0");
}

/* The number of given failures before the end of a run. */
static uint32_t failures_within(const SimCampaign *of)
{
    uint32_t n = 0;
    while (n < of->n_failures && of->failure_s[n] < of->days_s)
        n++;
    return n;
}

SimCampaignReport *sim_campaign(const SimCampaign *campaign, GError **error)
{
    if (!check(campaign, error))
        return NULL;
    SimCampaignReport *report = g_new0(SimCampaignReport, 1);
    const uint32_t given = failures_within(campaign);
    const double rate = given / campaign->days_s + failure_rate(campaign);
    report->system_mtbf_s = rate > 0 ? 1 / rate : INFINITY;
    report->interval_s =
        campaign->interval_s > 0
            ? campaign->interval_s
            : sim_campaign_best_interval_s(report->system_mtbf_s, campaign->save_s);
    /* The interval is a whole number of iterations, at least one. */
    report->interval_s =
        isfinite(report->interval_s)
            ? fmax(round(report->interval_s / campaign->iteration_s), 1) *
                  campaign->iteration_s
            : 2 * campaign->days_s;
    /* A checkpoint has been written before the next one begins. */
    report->interval_s = fmax(report->interval_s, campaign->write_s);
    report->n = campaign->runs;
    report->run = g_new(SimCampaignRun, campaign->runs);
    for (uint32_t i = 0; i < campaign->runs; i++)
        report->run[i] = run_once(campaign, report->interval_s, i);
    summarize(report, campaign->days_s);
    return report;
}

void sim_campaign_report_free(SimCampaignReport *report)
{
    if (!report)
        return;
    g_free(report->run);
    g_free(report);
}
