/* A run of days, from event to event. */
#include <math.h>

#include "data/base/assert.h"
#include "sim/campaign/run.h"

typedef struct {
    const SimCampaign *of;
    double interval_s;
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

/* --- work --- */

/* The factor by which an iteration takes longer now than at full pace. */
static double run_pace(const Run *run)
{
    const double fewer =
        run->missing ? run->of->fewer[run->missing - 1] / run->of->iteration_s : 1;
    return run->stragglers ? fewer * run->of->straggler_factor : fewer;
}

/* From now on a restart begins from the checkpoint that has been written meanwhile, if any. */
static void campaign_settle(Run *run)
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
    campaign_settle(run);
    run->pending_s = run->work_s;
    run->usable_s = at_s + run->of->write_s;
    campaign_settle(run);
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
    const double slower = run_pace(run);
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
    campaign_settle(run);
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
static void run_take_back(Run *run)
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

/* A spare takes the place of a machine that failed, or training goes on without it, or waits until
 * a machine is back. Returns when. */
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

static void run_fail(Run *run, double at_s, uint32_t machines)
{
    run->run.failures++;
    run->run.lost_s += run->work_s - run->kept_s;
    run->work_s = run->kept_s;
    run->since_s = run->saving_s = 0;
    run->usable_s = INFINITY;
    const double back_s = at_s + run->of->repair_s;
    const uint32_t n = run->back_s->len;
    /* Failures come in the order of time, and so do machines that are back. */
    g_assert(n == 0 || g_array_index(run->back_s, double, n - 1) <= back_s);
    for (uint32_t m = 0; m < machines; m++)
        g_array_append_val(run->back_s, back_s);
    for (uint32_t m = 0; m < machines; m++)
        at_s = replace(run, at_s);
    restart(run, at_s);
}

static void react(Run *run, const SimCampaignEvent *event)
{
    if (event->slow)
        run->stragglers = (uint32_t)((int)run->stragglers + event->more);
    else
        run_fail(run, event->time_s, (uint32_t)event->more);
}

/* Advances the run to `time_s`; machines that come back on the way fill empty places. */
static void go_to(Run *run, double time_s)
{
    while (run->missing > 0 && next_back_s(run) < time_s) {
        if (next_back_s(run) > run->now_s)
            advance(run, next_back_s(run));
        run_take_back(run);
    }
    if (time_s > run->now_s)
        advance(run, time_s);
    run_take_back(run);
}

SimCampaignRun sim_campaign_run(const SimCampaign *of, double interval_s,
                                const GArray *events)
{
    KILTER_ASSERT(interval_s > 0);
    Run run = {.of = of,
               .interval_s = interval_s,
               .spares = of->spares,
               .usable_s = INFINITY,
               .back_s = g_array_new(false, false, sizeof(double))};
    for (uint32_t i = 0; i < events->len && run.now_s < of->days_s; i++) {
        const SimCampaignEvent *event = &g_array_index(events, SimCampaignEvent, i);
        if (event->time_s >= of->days_s)
            break;
        go_to(&run, event->time_s);
        react(&run, event);
    }
    go_to(&run, of->days_s);
    run.run.work_s = run.work_s;
    g_array_unref(run.back_s);
    return run.run;
}
