/* Days of training with a plan, as an answer and as a figure. */
#include "experiments/answers/days.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/units.h"
#include "experiments/figures/figure.h"

enum { POINTS = 33 };

static const double DAY_S = 86400, HOUR_S = 3600;

/* Shortest and longest interval, relative to the one that was used. */
static const double SPAN = 16;

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
        /* The last is the goodput where all failures are exponential and none waits for a machine
         * (Daly 2006, Eq. 20). */
        g_string_append_printf(
            text, "%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n",
            report->interval_s, report->goodput, report->low, report->high,
            mean->lost_s / of.days_s, mean->save_s / of.days_s,
            (mean->restart_s + mean->wait_s) / of.days_s, mean->slow_s / of.days_s,
            report->interval_s /
                ((report->system_mtbf_s + of.restart_s) *
                 expm1((report->interval_s + of.save_s) / report->system_mtbf_s)));
    }
    return figure_draw_text("days", text->str, folder, error);
}

double days_save_s(const Evaluation *evaluation)
{
    const double bytes =
        sum_in(double, tensors_each (tensor, t, evaluation->graph),
               tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER
                   ? (double)tensor_bytes(tensor)
                   : 0);
    const double port = evaluation->view->collective[COLLECTIVE_ALL_GATHER].bandwidth;
    return port > 0 ? bytes / (port * evaluation->view->cluster->n_machines) : 0;
}

/* --- what is read --- */

typedef struct {
    const char *name;
    double hours;
    GString *known;
} DaysRate;

static bool days_take_rate(const Csv *csv, void *data, GError **error)
{
    DaysRate *rate = data;
    double hours;
    if (!csv_number(csv, "mtbf_h", 1e-3, 1e9, &hours, error))
        return false;
    if (strcmp(csv_text(csv, "name"), rate->name) == 0)
        rate->hours = hours;
    g_string_append_printf(rate->known, ", %s", csv_text(csv, "name"));
    return true;
}

bool days_read_mtbf(const char *text, double *seconds, GError **error)
{
    const char *name = text ? text : "llama3-405b";
    if (units_parse(name, QUANTITY_TIME, seconds, NULL))
        return *seconds > 0 || refuse(error, "--mtbf: expected more than 0");
    static const char *const COLUMNS[] = {"name", "mtbf_h", "source", NULL};
    g_autofree char *path = path_find("failures.csv");
    g_autoptr(Csv) csv = path ? csv_read(path, error) : NULL;
    g_autoptr(GString) known = g_string_new(NULL);
    DaysRate rate = {.name = name, .known = known};
    if (!path)
        return refuse(error, "data/failures.csv is missing");
    if (!csv || !csv_expect(csv, COLUMNS, NULL, error) ||
        !csv_each(csv, days_take_rate, &rate, error))
        return false;
    *seconds = rate.hours * HOUR_S;
    return rate.hours > 0 ||
           refuse(error, "--mtbf: expected a time such as 40000h%s, got '%.60s'",
                  known->str, name);
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

/* --- a training on some number of tokens --- */

bool days_read_tokens(const char *text, double *tokens, GError **error)
{
    static const char units[] = "KMBT";
    static const double most = 1e18;
    char *end;
    *tokens = g_ascii_strtod(text, &end);
    const char *unit = *end ? strchr(units, g_ascii_toupper(*end)) : NULL;
    const bool whole = !*end || (unit && !end[1]);
    for (const char *at = unit; whole && at && at >= units; at--)
        *tokens *= 1000;
    return (end != text && whole && *tokens >= 1 && *tokens <= most) ||
           refuse(error,
                  "--tokens: expected a number from 1 to 1e18 such as 1T, 300B or 2e10, "
                  "got '%.60s'",
                  text);
}

/* Random runs of a training that takes so long by itself, of a year at most. */
static bool days_campaign(const Evaluation *of, double length_s, SimCampaign *campaign,
                          GError **error)
{
    enum { RUNS = 100 };
    static const double restart_s = 5 * 60, least_s = 3600, most_days = 365;
    const double iteration_s = of->report->iteration_time_s;
    *campaign = (SimCampaign){
        .iteration_s = iteration_s,
        .days_s = fmax(CLAMP(length_s, least_s, most_days * DAY_S), iteration_s),
        .gpus = cluster_gpus(of->view->cluster),
        .save_s = days_save_s(of),
        .restart_s = restart_s,
        .repair_s = DAY_S,
        .shape = 1,
        .runs = RUNS,
        .seed = 1};
    return days_read_mtbf(NULL, &campaign->mtbf_s, error);
}

json_t *days_training_json(const Evaluation *of, double tokens, double dollars_an_hour,
                           double power_w, GError **error)
{
    const SimWorkload work = sim_workload(of->plan, of->graph, of->view);
    const double iteration_s = of->report->iteration_time_s;
    if (!(work.tokens > 0) || !(iteration_s > 0))
        return refused(error, "--tokens: the model's samples are no sequences of tokens");
    const double iterations = ceil(tokens / work.tokens);
    SimCampaign campaign;
    g_autoptr(SimCampaignReport) report =
        days_campaign(of, iterations * iteration_s, &campaign, error)
            ? sim_campaign(&campaign, error)
            : NULL;
    if (!report)
        return NULL;
    const double length_s = iterations * iteration_s / report->goodput,
                 hours = length_s / HOUR_S;
    const double dollars = dollars_an_hour * hours + of->report->toll * iterations,
                 kwh = power_w / 1000 * hours;
    const bool priced = dollars > 0 && dollars_an_hour > 0;
    return json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "tokens", tokens, "iterations",
        iterations, "days", length_s / DAY_S, "goodput", report->goodput, "failures",
        isfinite(report->system_mtbf_s) ? length_s / report->system_mtbf_s : 0,
        "checkpoint_s", report->interval_s, "save_s", campaign.save_s, "dollars",
        json_number(priced ? dollars : NAN), "kwh", json_number(kwh > 0 ? kwh : NAN));
}
