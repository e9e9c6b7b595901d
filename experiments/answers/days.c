/* Days of training with a plan, as an answer and as a figure. */
#include "experiments/answers/days.h"

#include <math.h>

#include "experiments/figures/figure.h"

enum { POINTS = 33 };

static const double DAY_S = 86400;

/* Shortest and longest interval, relative to the one that was used. */
static const double SPAN = 16;

/* Goodput where all failures are exponential, and none waits for a machine (Daly 2006, Eq. 20). */
static double campaign_plot_expected(const SimCampaign *of, double mtbf_s,
                                     double interval_s)
{
    return interval_s /
           ((mtbf_s + of->restart_s) * expm1((interval_s + of->save_s) / mtbf_s));
}

bool days_draw(const SimCampaign *campaign, const SimCampaignReport *used,
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

double days_save_s(const Evaluation *evaluation, uint32_t machines)
{
    double bytes = 0;
    for (TensorId t = 0; t < graph_n_tensors(evaluation->graph); t++) {
        const Tensor *tensor = graph_tensor(evaluation->graph, t);
        if (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER)
            bytes += (double)tensor_bytes(tensor);
    }
    const double port = evaluation->view->collective[COLLECTIVE_ALL_GATHER].bandwidth;
    return port > 0 ? bytes / (port * machines) : 0;
}

json_t *days_json(const SimCampaign *of, const SimCampaignReport *report,
                  const Evaluation *evaluation)
{
    const double length_s = of->days_s;
    const SimWorkload work =
        sim_workload(evaluation->plan, evaluation->graph, evaluation->view);
    const double iterations = report->mean.work_s / of->iteration_s;
    const SimCampaignRun *mean = &report->mean;
    json_t *parts =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "work", mean->work_s / length_s,
                  "lost", mean->lost_s / length_s, "save", mean->save_s / length_s,
                  "restart", mean->restart_s / length_s, "wait", mean->wait_s / length_s,
                  "slow", mean->slow_s / length_s);
    return json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:b, s:o, s:f, s:f, s:o, "
        "s:o}",
        "days", length_s / DAY_S, "goodput", report->goodput, "goodput_5", report->low,
        "goodput_50", report->median, "goodput_95", report->high, "runs", (int)report->n,
        "failures", report->failures, "checkpoints", report->checkpoints, "system_mtbf_s",
        isfinite(report->system_mtbf_s) ? report->system_mtbf_s : 0, "checkpoint_s",
        report->interval_s, "best_interval", of->interval_s == 0, "checkpoint_95_s",
        report->interval_low_s > 0
            ? json_pack("[f, f]", report->interval_low_s, report->interval_high_s)
            : json_null(),
        "save_s", of->save_s, "iterations", iterations, "tokens",
        work.tokens > 0 ? json_real(work.tokens * iterations) : json_null(), "parts",
        parts);
}
