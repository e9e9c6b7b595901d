/* The picture of `kilter simulate --days --plot`: what the interval between checkpoints changes. */
#include <math.h>

#include "experiments/cli/campaign.h"
#include "experiments/figures/figure.h"

enum { POINTS = 33 };

/* Shortest and longest interval, relative to the one that was used. */
static const double SPAN = 16;

/* Goodput where all failures are exponential, and none waits for a machine (Daly 2006, Eq. 20). */
static double campaign_plot_expected(const SimCampaign *of, double mtbf_s,
                                     double interval_s)
{
    return interval_s /
           ((mtbf_s + of->restart_s) * expm1((interval_s + of->save_s) / mtbf_s));
}

bool command_campaign_plot(const SimCampaign *campaign, const SimCampaignReport *used,
                           const char *folder, GError **error)
{
    SimCampaign of = *campaign;
    g_autoptr(GString) text = g_string_new(
        "# interval_s\tgoodput\tlow\thigh\tlost\tsave\tdown\tslow\texpected\n");
    for (int i = 0; i < POINTS; i++) {
        of.interval_s = used->interval_s * pow(SPAN, 2.0 * i / (POINTS - 1) - 1);
        g_autoptr(SimCampaignReport) report = sim_campaign(&of, error);
        if (!report)
            return false;
        const SimCampaignRun *mean = &report->mean;
        g_string_append_printf(
            text, "%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n",
            report->interval_s, report->goodput, report->low, report->high,
            mean->lost_s / of.days_s, mean->save_s / of.days_s,
            (mean->restart_s + mean->wait_s) / of.days_s, mean->slow_s / of.days_s,
            campaign_plot_expected(&of, report->system_mtbf_s, report->interval_s));
    }
    return figure_draw_text("days", text->str, folder, error);
}
