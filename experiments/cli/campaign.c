/* Days of training with a plan. */
#include "experiments/cli/campaign.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/free.h"
#include "data/base/order.h"
#include "data/base/units.h"
#include "experiments/answers/days.h"

static const double DAY_S = 86400;

enum {
    DEFAULT_RUNS = 100,
    MOST_MACHINES = 10000, /* that one failure takes out */
};

/* --- what is asked --- */

bool command_campaign_check(const CommandCampaign *campaign, GError **error)
{
    const struct {
        const char *option;
        bool given;
    } OF_DAYS[] = {
#define X(kind, member, name, ...) {"--" name, campaign->member},
        CAMPAIGN_OPTIONS(X)
#undef X
            {"--plot", campaign->plot}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF_DAYS); i++)
        if (OF_DAYS[i].given && !campaign->days)
            return refuse(error, "%s: expected --days as well", OF_DAYS[i].option);
    return true;
}

static bool read_time(const char *option, const char *text, const char *otherwise,
                      double *seconds, GError **error)
{
    if (units_parse(text ? text : otherwise, QUANTITY_TIME, seconds, error))
        return true;
    g_prefix_error(error, "%s: ", option);
    return false;
}

static bool read_number(const char *option, const char *text, double least, double most,
                        double *value, GError **error)
{
    return number_read(text, least, most, value) ||
           refuse(error, "%s: expected a number from %g to %g, got '%.60s'", option,
                  least, most, text);
}

/* "3" machines, or "2%" of those that train, rounded up. */
static bool read_spares(const char *text, uint32_t machines, uint32_t *spares,
                        GError **error)
{
    double number = 0;
    const size_t length = text ? strlen(text) : 0;
    const bool part = length > 0 && text[length - 1] == '%';
    g_autofree char *digits = g_strndup(text ? text : "0", text ? length - part : 1);
    if (!read_number("--spares", digits, 0, part ? 100 : 1e6, &number, error))
        return false;
    *spares = (uint32_t)ceil(part ? number / 100 * machines : number);
    return true;
}

static bool read_stragglers(const char *text, SimCampaign *of, GError **error)
{
    g_auto(GStrv) part = g_strsplit(text ? text : "", ",", -1);
    if (!text)
        return true;
    if (g_strv_length(part) != 3)
        return refuse(error,
                      "--stragglers: expected EVERY,STAYS,FACTOR such as "
                      "1000h,30min,1.5, got '%.60s'",
                      text);
    return read_time("--stragglers", part[0], NULL, &of->straggler_every_s, error) &&
           read_time("--stragglers", part[1], NULL, &of->straggler_stays_s, error) &&
           read_number("--stragglers", part[2], 1, 1000, &of->straggler_factor, error);
}

/* "leaf:64,100000h,16;spine:8,200000h,0": what fails besides GPUs, by name, number, mean time
 * between failures of one, and machines that a failure takes out. */
static bool read_part(const char *text, GArray *parts, GError **error)
{
    const char *colon = strchr(text, ':');
    g_auto(GStrv) word = g_strsplit(colon ? colon + 1 : "", ",", -1);
    double n = 0, machines = 0;
    SimCampaignPart part;
    if (!colon || colon == text || g_strv_length(word) != 3)
        return refuse(error,
                      "--parts: expected NAME:NUMBER,MTBF,MACHINES such as "
                      "leaf:64,100000h,16, got '%.60s'",
                      text);
    if (!read_number("--parts", word[0], 1, 1e6, &n, error) ||
        !read_time("--parts", word[1], NULL, &part.mtbf_s, error) ||
        !read_number("--parts", word[2], 0, MOST_MACHINES, &machines, error))
        return false;
    if (!(part.mtbf_s > 0) || n != floor(n) || machines != floor(machines))
        return refuse(error,
                      "--parts: expected whole numbers, and more than 0 s between "
                      "failures, got '%.60s'",
                      text);
    part.n = (uint32_t)n;
    part.machines = (uint32_t)machines;
    g_array_append_val(parts, part);
    return parts->len <= CAMPAIGN_MAX_PARTS ||
           refuse(error, "--parts: expected at most %d parts", CAMPAIGN_MAX_PARTS);
}

static bool campaign_read_parts(const char *text, GArray *parts, GError **error)
{
    g_auto(GStrv) list = g_strsplit(text ? text : "", ";", -1);
    for (char **part = list; *part; part++)
        if (!read_part(g_strstrip(*part), parts, error))
            return false;
    return true;
}

/* A failure of a log. */
typedef struct {
    double time_s;
    uint32_t machines;
} Failure;

static bool take_failure(const Csv *csv, void *data, GError **error)
{
    Failure failure = {.machines = 1};
    if (!csv_number(csv, "time_s", 0, 1e12, &failure.time_s, error) ||
        (csv_has(csv, "machines") &&
         !csv_count(csv, "machines", 0, MOST_MACHINES, &failure.machines, error)))
        return false;
    g_array_append_val((GArray *)data, failure);
    return true;
}

static ORDER_DEFINE(by_time, Failure, ASCENDING(time_s));

/* Appends the times and the machines of a log, in the order of time. */
static bool read_failures(const char *file, GArray *times, GArray *machines,
                          GError **error)
{
    static const char *const COLUMNS[] = {"time_s", NULL};
    g_autoptr(GArray) failures = g_array_new(false, false, sizeof(Failure));
    g_autoptr(Csv) csv = file ? csv_read(file, error) : NULL;
    if (file && (!csv || !csv_expect(csv, COLUMNS, NULL, error) ||
                 !csv_each(csv, take_failure, failures, error)))
        return false;
    g_array_sort(failures, by_time);
    array_each (const Failure, failure, failures) {
        g_array_append_val(times, failure->time_s);
        g_array_append_val(machines, failure->machines);
    }
    return true;
}

/* --- plans for fewer machines --- */

/* Iteration times without 1, 2, ... of the machines of the most frequent type. */
static bool plan_fewer(const CommandCampaign *campaign, const CommandPlanning *how,
                       int argc, char **argv, const CommandOptions *options,
                       const Evaluation *evaluation, GArray *times, GError **error)
{
    if (campaign->replan == 0)
        return true;
    if (argc < 3 || how->change[CHANGE_WITHOUT])
        return refuse(error, "--replan is for MODEL CLUSTER, without --without");
    const Cluster *cluster = evaluation->view->cluster;
    g_autofree uint32_t *count = g_new0(uint32_t, cluster->n_types);
    uint32_t type = 0;
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        count[cluster->machine[m].type]++;
    for (uint32_t t = 0; t < cluster->n_types; t++)
        if (count[t] > count[type])
            type = t;
    g_autoptr(GString) names = g_string_new(NULL);
    for (uint32_t m = cluster->n_machines, n = 0;
         m-- > 1 && n < (uint32_t)campaign->replan;) {
        if (cluster->machine[m].type != type)
            continue;
        n++;
        g_string_append_printf(names, "%s%s", names->len ? "," : "",
                               cluster->machine[m].name);
        CommandPlanning fewer = *how;
        fewer.change[CHANGE_WITHOUT] = (char *[]){names->str, NULL};
        g_auto(Evaluation) left = {0};
        if (!command_evaluate(&fewer, argc, argv, evaluation->report->fidelity, options,
                              &left, error))
            return false;
        if (!left.report->feasible)
            break;
        const double time_s =
            MAX(left.report->iteration_time_s, evaluation->report->iteration_time_s);
        g_array_append_val(times, time_s);
    }
    return true;
}

/* --- the answer --- */

static bool campaign_read_all(const CommandCampaign *campaign,
                              const Evaluation *evaluation, uint32_t machines,
                              SimCampaign *of, GError **error)
{
    double days = 0;
    g_autofree char *save = g_strdup_printf("%.17g s", days_save_s(evaluation));
    const char *checkpoint = campaign->checkpoint ? campaign->checkpoint : "auto";
    if (!read_number("--days", campaign->days, 1e-6, 36500, &days, error) ||
        !days_read_mtbf(campaign->mtbf, &of->mtbf_s, error) ||
        !read_number("--weibull", campaign->weibull ? campaign->weibull : "1", 0.1, 20,
                     &of->shape, error) ||
        !read_time("--save", campaign->save, save, &of->save_s, error) ||
        !read_time("--write", campaign->write, "0 s", &of->write_s, error) ||
        !read_time("--restart", campaign->restart, "5 min", &of->restart_s, error) ||
        !read_time("--repair", campaign->repair, "24 h", &of->repair_s, error) ||
        !read_spares(campaign->spares, machines, &of->spares, error) ||
        !read_stragglers(campaign->stragglers, of, error) ||
        !command_campaign_in_range(campaign, error))
        return false;
    of->days_s = days * DAY_S;
    return strcmp(checkpoint, "auto") == 0 ||
           read_time("--checkpoint", checkpoint, NULL, &of->interval_s, error);
}

bool command_campaign_add(const CommandCampaign *campaign, const CommandPlanning *how,
                          char **argv, const CommandOptions *options,
                          const Evaluation *evaluation, json_t *answer, GError **error)
{
    if (!campaign->days)
        return true;
    const uint32_t machines = evaluation->view->cluster->n_machines;
    SimCampaign of = {.iteration_s = evaluation->report->iteration_time_s,
                      .runs = campaign->runs ? (uint32_t)campaign->runs : DEFAULT_RUNS,
                      .seed = options->planner.seed,
                      .threads = (uint32_t)campaign->jobs,
                      .gpus = cluster_gpus(evaluation->view->cluster)};
    g_autoptr(GArray) failures = g_array_new(false, false, sizeof(double));
    g_autoptr(GArray) lost = g_array_new(false, false, sizeof(uint32_t));
    g_autoptr(GArray) parts = g_array_new(false, false, sizeof(SimCampaignPart));
    g_autoptr(GArray) fewer = g_array_new(false, false, sizeof(double));
    if (!campaign_read_all(campaign, evaluation, machines, &of, error) ||
        !read_failures(campaign->failures, failures, lost, error) ||
        !campaign_read_parts(campaign->parts, parts, error) ||
        !plan_fewer(campaign, how, (int)g_strv_length(argv), argv, options, evaluation,
                    fewer, error))
        return false;
    if (campaign->failures) {
        of.failure_s = (const double *)(void *)failures->data;
        of.failure_machines = (const uint32_t *)(void *)lost->data;
        of.n_failures = failures->len;
    }
    of.part = (const SimCampaignPart *)(void *)parts->data;
    of.n_parts = parts->len;
    of.fewer = (const double *)(void *)fewer->data;
    of.n_fewer = fewer->len;
    g_autoptr(SimCampaignReport) report = sim_campaign(&of, error);
    if (!report || (campaign->plot && !days_draw(&of, report, campaign->plot, error)))
        return false;
    json_object_set_new(answer, "campaign", days_json(&of, report, evaluation));
    return true;
}
