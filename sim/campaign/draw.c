/* The events of a run of days, failures and stragglers, drawn before the run begins. */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "data/base/order.h"
#include "sim/campaign/run.h"
#include "sim/event/random.h"

static ORDER_DEFINE(by_time, SimCampaignEvent, ASCENDING(time_s));

static void add_event(GArray *list, double time_s, bool slow, int more)
{
    const SimCampaignEvent event = {time_s, slow, more};
    g_array_append_val(list, event);
}

static uint32_t machines_of(const SimCampaign *of, uint32_t failure)
{
    return of->failure_machines ? of->failure_machines[failure] : 1;
}

/* The failures of the log, each as long after the one before as in the log, in a new order: any of
 * them may follow, and follow again. */
static void draw_log_again(const SimCampaign *of, GArray *list, const gsl_rng *rng)
{
    g_assert(sim_campaign_can_draw_again(of));
    for (double at = 0;;) {
        const uint32_t k = (uint32_t)(gsl_rng_uniform(rng) * of->n_failures);
        at += of->failure_s[k] - (k > 0 ? of->failure_s[k - 1] : 0);
        if (at >= of->days_s)
            return;
        add_event(list, at, false, (int)machines_of(of, k));
    }
}

static void draw_gpus(const SimCampaign *of, GArray *list, const gsl_rng *rng)
{
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

bool sim_campaign_can_draw_again(const SimCampaign *of)
{
    return of->n_failures > 1 && of->failure_s[of->n_failures - 1] > 0;
}

GArray *sim_campaign_draw(const SimCampaign *of, uint32_t number, SimCampaignDraw draw)
{
    SimRandom random;
    GArray *list = g_array_new(false, false, sizeof(SimCampaignEvent));
    /* The draws of a search are not those of the runs that are reported. */
    sim_random_start(&random,
                     sim_random_mix(of->seed + (draw == SIM_CAMPAIGN_AGAIN), number));
    if (!of->failure_s)
        draw_gpus(of, list, &random.rng);
    else if (draw == SIM_CAMPAIGN_AGAIN)
        draw_log_again(of, list, &random.rng);
    else
        for (uint32_t i = 0; i < of->n_failures; i++)
            add_event(list, of->failure_s[i], false, (int)machines_of(of, i));
    draw_stragglers(of, list, &random.rng);
    draw_parts(of, list, &random.rng);
    g_array_sort(list, by_time);
    return list;
}
