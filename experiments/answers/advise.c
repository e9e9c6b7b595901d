/* Advice: which machines to train on, with which planner, and how much mixing them gains. */
#include "experiments/answers/advise.h"

#include <math.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/units.h"
#include "data/cluster/change.h"
#include "data/formats/export/export.h"
#include "data/models/model.h"
#include "experiments/answers/command_line.h"
#include "experiments/answers/days.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/answers/plan_words.h"
#include "experiments/calibration/prediction.h"
#include "experiments/figures/figure.h"

/* --- in words --- */

static const AdviseRow *advise_whole(const AdviseRow *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!row[i].choice->only)
            return &row[i];
    g_assert_not_reached();
}

/* The fastest choice of one device type. */
static const AdviseRow *fastest_alone(const AdviseRow *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(row[i].iteration_s) && row[i].choice->cluster->n_types == 1)
            return &row[i];
    return NULL;
}

/* Says how much more GPUs gain over fewer, in percent of the throughput. */
static void say_gain(GString *text, const AdviseRow *more, const AdviseRow *fewer)
{
    const double faster = 100 * (fewer->iteration_s / more->iteration_s - 1);
    const int gpus = (int)more->choice->gpus - (int)fewer->choice->gpus;
    const bool priced = !isnan(more->dollars_an_hour + fewer->dollars_an_hour);
    g_autofree char *time = units_format(fewer->iteration_s, QUANTITY_TIME);
    g_string_append_printf(text, "%s alone: %s. ", fewer->choice->machines, time);
    if (faster > 0 && gpus > 0)
        g_string_append_printf(
            text,
            "The %d further GPUs give %.1f %% more throughput for %.0f %% more %s. ",
            gpus, faster,
            priced ? 100 * (more->dollars_an_hour / fewer->dollars_an_hour - 1)
                   : 100.0 * gpus / fewer->choice->gpus,
            priced ? "dollars per hour" : "GPUs");
}

static char *advice(const AdviseRow *row, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    const AdviseRow *best = &row[0], *all = advise_whole(row, n),
                    *alone = fastest_alone(row, n);
    g_autofree char *time = units_format(best->iteration_s, QUANTITY_TIME);
    g_string_append_printf(text, "Fastest: %s by %s (%s), %s per iteration. ",
                           best->choice->machines, best->choice->best->planner->name,
                           granularity_name(best->choice->best->granularity), time);
    if (alone && alone != best)
        say_gain(text, best, alone);
    if (all != best && isfinite(all->iteration_s)) {
        /* by flow where the order is by flow */
        const bool flows = all->choice->flow_s > 0 && best->choice->flow_s > 0;
        const double longer_s = flows ? all->choice->flow_s : all->iteration_s,
                     least_s = flows ? best->choice->flow_s : best->iteration_s;
        g_autofree char *slower = units_format(longer_s, QUANTITY_TIME);
        g_string_append_printf(
            text, "All machines take %s%s, %.1f %% longer: mixing them does not pay. ",
            slower, flows ? " by flow" : "", 100 * (longer_s / least_s - 1));
    } else if (all != best && !all->choice->skipped) {
        g_string_append(text, "No plan on all machines was found. ");
    }
    if (all->choice->bound_s > 0) {
        g_autofree char *bound = units_format(all->choice->bound_s, QUANTITY_TIME);
        g_string_append_printf(text,
                               "On all machines together, computation alone takes %s at "
                               "the rates of this cluster.",
                               bound);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- as JSON --- */

static void advise_add_words(GStrvBuilder *words, const char *option, char *const *text)
{
    for (uint32_t i = 0; text && text[i]; i++)
        if (g_str_has_prefix(text[i], "for="))
            g_strv_builder_add_many(words, "--for", text[i] + strlen("for="), NULL);
        else
            g_strv_builder_add_many(words, option, text[i], NULL);
}

/* The command that makes the choice's plan. */
static char *advise_command_of(const Portfolio *portfolio, const PortfolioChoice *choice,
                               const AdviseAsked *asked)
{
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_autofree char *model = model_brief(portfolio->model);
    g_strv_builder_add_many(words, "plan", model, asked->cluster, NULL);
    for (ChangeKind kind = 0; kind < CHANGES; kind++) {
        const bool chooses = kind == CHANGE_ONLY || kind == CHANGE_WITHOUT;
        g_autofree char *option = g_strdup_printf("--%s", change_name(kind));
        if (!choice->only || !chooses)
            advise_add_words(words, option, asked->change[kind]);
        else if (kind == CHANGE_ONLY)
            g_strv_builder_add_many(words, option, choice->only, NULL);
    }
    g_strv_builder_add_many(words, "--planner", choice->best->planner->name,
                            "--granularity", granularity_name(choice->best->granularity),
                            NULL);
    g_auto(GStrv) set = g_strsplit(choice->best->set, " ", -1);
    advise_add_words(words, "--set", set);
    advise_add_words(words, "--set", asked->set);
    if (asked->effort)
        g_strv_builder_add_many(words, "--effort", asked->effort, NULL);
    if (asked->seed)
        g_strv_builder_add_many(words, "--seed", asked->seed, NULL);
    g_auto(GStrv) line = g_strv_builder_end(words);
    return command_line((int)g_strv_length(line), line);
}

/* Adds the memory of GPUs, and those that do nothing, if any. */
static void advise_add_use(const PortfolioChoice *choice, json_t *object)
{
    const uint32_t unused =
        sum_in(uint32_t,
               items_at (const Device, device, j, choice->view->device,
                         choice->report->n_devices),
               choice->report->busy_s[j] > 0 ? 0 : device->gpus);
    plan_words_room_json(choice->report, choice->view, object);
    if (unused > 0)
        json_object_set_new(object, "unused", json_integer((json_int_t)unused));
}

static json_t *number_or_null(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

static json_t *tries_json(const PortfolioChoice *choice)
{
    json_t *tries = json_array();
    array_each (const PortfolioTry, t, choice->tries) {
        if (!t->reason && !isfinite(t->iteration_s))
            continue;
        json_array_append_new(
            tries, json_pack("{s:s, s:s, s:s, s:o, s:s?}", "planner", t->planner->name,
                             "set", t->set, "granularity",
                             granularity_name(t->granularity), "iteration_time_s",
                             number_or_null(t->iteration_s), "reason", t->reason));
    }
    return tries;
}

/* The probability that the choice is faster than the first one, both on the same fitted cluster. */
static json_t *advise_faster_json(const AdviseRow *row, const AdviseRow *first)
{
    return row == first || !row->choice->best || !first->choice->best
               ? json_null()
               : prediction_faster_json(row->choice->view, row->iteration_s,
                                        first->choice->view, first->iteration_s);
}

static Evaluation choice_evaluation(const PortfolioChoice *choice)
{
    return (Evaluation){.graph = choice->graph,
                        .view = choice->view,
                        .plan = choice->plan,
                        .report = choice->report};
}

/* first: the row of the fastest choice. */
static json_t *row_json(const Portfolio *portfolio, const AdviseRow *row,
                        const AdviseRow *first, const AdviseAsked *asked)
{
    const PortfolioChoice *choice = row->choice;
    json_t *object =
        json_pack("{s:s, s:s?, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:n, "
                  "s:o, s:o, s:o}",
                  "machines", choice->machines, "only", choice->only, "gpus",
                  (int)choice->gpus, "iteration_time_s", number_or_null(row->iteration_s),
                  "samples_per_s", number_or_null(row->samples_per_s), "tokens_per_s",
                  number_or_null(row->tokens_per_s), "dollars_per_hour",
                  number_or_null(row->dollars_an_hour), "dollars_per_million",
                  number_or_null(row->dollars_per_million), "lower_bound_s",
                  number_or_null(choice->bound_s), "pareto", (int)row->front, "skipped",
                  (int)choice->skipped, "faster_than_first",
                  advise_faster_json(row, first), "interval_90_s", "mfu",
                  number_or_null(row->mfu), "power_w", number_or_null(row->power_w),
                  "kwh_per_million", number_or_null(row->kwh_per_million));
    const Evaluation of = choice_evaluation(choice);
    if (choice->best) {
        evaluation_add_range(&of, object);
        g_autofree char *binds = advise_binds(row);
        g_autofree char *command = advise_command_of(portfolio, choice, asked);
        json_object_update_new(
            object, json_pack("{s:{s:s, s:s, s:f, s:f, s:f}, s:s, s:s}", "binds", "what",
                              binds, "device", row->busiest, "computes", row->computes,
                              "communicates", row->communicates, "idles", row->idles,
                              "planner", choice->best->planner->name, "granularity",
                              granularity_name(choice->best->granularity)));
        advise_add_use(choice, object);
        json_object_set_new(object, "command", json_string(command));
    }
    if (asked->top > 0 && choice->best) {
        g_autofree char *exports = plan_exports(of.plan, of.graph, of.view);
        json_object_set_new(object, "exports",
                            *exports ? json_string(exports) : json_null());
    }
    if (row->training)
        json_object_set(object, "training", row->training);
    json_object_set_new(object, "tries", tries_json(choice));
    return object;
}

/* Where each choice lies between the least and the most of both logarithmic axes; the next number
 * of the front is left out at a place that a number is near to. */
typedef struct {
    double low[2], high[2];
    GArray *taken; /* double[2] */
} AdvisePlaces;

static bool places_take(AdvisePlaces *places, const double *at)
{
    const double NEAR[2] = {0.035, 0.05};
    double place[2];
    for (uint32_t k = 0; k < 2; k++)
        place[k] = log(at[k] / places->low[k]) / log(places->high[k] / places->low[k]);
    for (guint i = 0; i < places->taken->len; i += 2)
        if (fabs(g_array_index(places->taken, double, i) - place[0]) < NEAR[0] &&
            fabs(g_array_index(places->taken, double, i + 1) - place[1]) < NEAR[1])
            return false;
    g_array_append_vals(places->taken, place, 2);
    return true;
}

/* The data file: cost and time of each choice, with the ends of its 90 % interval on a fitted
 * cluster; those that no other one beats, by cost, numbered, with their words; the ranges and the
 * name of the cost. */
static bool advise_draw(const AdviseRow *row, uint32_t n, const char *folder,
                        GError **error)
{
    enum { LONGEST = 40 };
    g_autoptr(GString) text = g_string_new("# cost\tseconds\tfront\tlow\thigh\n");
    AdvisePlaces places = {
        {INFINITY, INFINITY}, {0, 0}, g_array_new(FALSE, FALSE, sizeof(double))};
    const bool priced = !isnan(row[0].dollars_an_hour);
    uint32_t number = 0;
    for (uint32_t i = 0; i < n; i++) {
        double ends[2] = {NAN, NAN};
        const double at[2] = {advise_cost(&row[i]), row[i].iteration_s};
        if (!isfinite(at[1]))
            continue;
        for (uint32_t k = 0; k < 2; k++) {
            places.low[k] = fmin(places.low[k], at[k] / 1.25);
            places.high[k] = fmax(places.high[k], at[k] * 1.25);
        }
        g_string_append_printf(text, "%.9g\t%.9g\t%d", at[0], at[1], row[i].front);
        if (prediction_interval(row[i].choice->view, 0.9, row[i].iteration_s, ends))
            g_string_append_printf(text, "\t%.9g\t%.9g\n", ends[0], ends[1]);
        else
            g_string_append(text, "\tNaN\tNaN\n");
    }
    g_string_append(text, "\n\n# cost\tseconds\tnumber\twhat\ttime\n");
    for (uint32_t i = 0; i < n; i++) { /* from the fastest, which costs most */
        const double at[2] = {advise_cost(&row[i]), row[i].iteration_s};
        if (!row[i].front || !isfinite(at[1]))
            continue;
        g_autofree char *time = units_format(at[1], QUANTITY_TIME);
        const char *machines = row[i].choice->machines;
        const bool cut = strlen(machines) > LONGEST;
        g_string_append_printf(text, "%.9g\t%.9g\t%u%s\t%.*s%s\t%s\n", at[0], at[1],
                               ++number, places_take(&places, at) ? "" : "!", LONGEST,
                               machines, cut ? "\u2026" : "", time);
    }
    g_string_append_printf(text, "\n\n%.9g\t%.9g\t%.9g\t%.9g\t%s\n", places.low[0],
                           places.high[0], places.low[1], places.high[1],
                           priced ? "dollars per iteration" : "GPUs");
    g_array_unref(places.taken);
    return figure_draw_text("advise", text->str, folder, error);
}

static const double day_s = 86400;

/* The trainings on so many tokens of the first rows, which point to theirs; release them. */
static json_t *take_trainings(AdviseRow *row, uint32_t n, double tokens)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < n && row[i].choice->best; i++) {
        const Evaluation of = choice_evaluation(row[i].choice);
        row[i].training =
            days_training_json(&of, tokens, row[i].dollars_an_hour, row[i].power_w, NULL);
        json_array_append_new(all, row[i].training);
    }
    return all;
}

/* Sets what each row takes to the time of its training. */
static void limit_training(AdviseRow *row, uint32_t n)
{
    for (uint32_t i = 0; i < n && row[i].choice->best; i++) {
        const json_t *days = json_object_get(row[i].training, "days");
        row[i].takes_s = days ? json_number_value(days) * day_s : INFINITY;
    }
}

/* Days of a training, else the time of an iteration. Caller frees. */
static char *time_words(const AdviseAsked *asked, double seconds)
{
    return asked->tokens > 0 && seconds >= day_s
               ? g_strdup_printf(seconds < 100 * day_s ? "%.3g days" : "%.0f days",
                                 seconds / day_s)
               : units_format(seconds, QUANTITY_TIME);
}

/* Whether some choice reaches the target time and throughput. */
static bool check_target(const AdviseAsked *asked, const AdviseRow *row, uint32_t n,
                         const AdviseRow *enough, GError **error)
{
    const bool timed = isfinite(asked->target_s);
    if ((!timed && asked->tokens_per_s == 0) || enough)
        return true;
    const double least_s = least_over(double, i, n, INFINITY, row[i].takes_s);
    g_autofree char *most = time_words(asked, asked->target_s),
                    *least = time_words(asked, least_s);
    if (asked->tokens_per_s == 0)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "no choice of machines takes at most %s%s; the fastest takes "
                           "%s, %.3g times as "
                           "long",
                           most, asked->tokens > 0 ? " for the training" : "", least,
                           least_s / asked->target_s);
    if (row->tokens_per_s == 0)
        return refuse(error, "--tokens-per-day: the model's samples are no sequences of "
                             "tokens; --target limits the time of an iteration");
    return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "no choice of machines reaches %g tokens/s%s; the fastest "
                       "reaches %g",
                       asked->tokens_per_s, timed ? " within the target time" : "",
                       row->tokens_per_s);
}

static void add_target(json_t *answer, const Portfolio *portfolio,
                       const AdviseRow *enough, const AdviseAsked *asked)
{
    g_autofree char *command = advise_command_of(portfolio, enough->choice, asked);
    json_object_set_new(answer, "within_gpus", json_integer(enough->choice->gpus));
    json_object_set_new(answer, "within_time_s", json_real(enough->iteration_s));
    if (enough->takes_s > enough->iteration_s)
        json_object_set_new(answer, "within_days", json_real(enough->takes_s / day_s));
    json_object_set_new(answer, "within_command", json_string(command));
}

static json_t *advise_json(const Portfolio *portfolio, const AdviseAsked *asked,
                           GError **error)
{
    const uint32_t n = portfolio->choices->len;
    g_autofree AdviseRow *row = advise_rows(asked->prices, portfolio);
    if (asked->tokens > 0 && !(row->tokens_per_s > 0))
        return refused(error, "--tokens: the model's samples are no sequences of tokens");
    const bool timed = isfinite(asked->target_s);
    const uint32_t shown = asked->top > 0 ? MIN(asked->top, n) : n;
    json_auto_t *trainings =
        asked->tokens > 0 ? take_trainings(row, timed ? n : shown, asked->tokens) : NULL;
    if (trainings && timed)
        limit_training(row, n);
    const bool limited = timed || asked->tokens_per_s > 0;
    const AdviseRow *enough =
        limited ? advise_within(row, n, asked->target_s, asked->tokens_per_s) : NULL;
    if (!check_target(asked, row, n, enough, error) ||
        (asked->plot && !advise_draw(row, n, asked->plot, error)))
        return NULL;
    json_t *choices =
        json_list(places_before(i, shown), row_json(portfolio, &row[i], row, asked));
    g_autofree char *words = advice(row, n);
    g_autofree char *unpriced =
        g_hash_table_size(asked->prices->price) > 0
            ? advise_unpriced(asked->prices, advise_whole(row, n)->choice->cluster)
            : NULL;
    json_t *answer =
        json_pack("{s:s, s:s, s:s, s:s?, s:o, s:f, s:b, s:b}", "model", portfolio->model,
                  "cluster", asked->cluster, "advice", words, "within_target",
                  enough ? enough->choice->machines : NULL, "choices", choices,
                  "elapsed_s", portfolio->elapsed_s, "priced",
                  !isnan(row[0].dollars_an_hour), "all", (int)asked->all);
    if (asked->top > 0)
        json_object_set_new(answer, "top", json_integer(asked->top));
    if (enough)
        add_target(answer, portfolio, enough, asked);
    json_object_update_new(
        answer, json_pack("{s:o, s:s*, s:o*}", "notes", json_texts(portfolio->notes),
                          "unpriced", unpriced, "figure",
                          asked->plot ? json_sprintf("%s/advise.png %s/advise.svg",
                                                     asked->plot, asked->plot)
                                      : NULL));
    return answer;
}

/* Adds the framework that the plans are for, and the time of the fastest plan without it, for which
 * only what may be faster is tried. */
static void add_restriction(const char *model, const Cluster *cluster,
                            const PlannerOptions *options, const Portfolio *portfolio,
                            const PortfolioOptions *how, json_t *answer)
{
    PlannerOptions any = *options;
    any.target = TARGET_ANY;
    const PortfolioChoice *best = g_ptr_array_index(portfolio->choices, 0);
    const double time_s = best->report->iteration_time_s;
    PortfolioOptions faster = *how;
    faster.prune = true;
    faster.known_s = time_s;
    g_autoptr(Portfolio) free = portfolio_new(model, cluster, &any, &faster, NULL);
    const PortfolioChoice *other = free ? g_ptr_array_index(free->choices, 0) : best;
    const double any_s = fmin(other->report->iteration_time_s, time_s);
    json_object_set_new(answer, "for",
                        json_pack("{s:s, s:f, s:f}", "target",
                                  planner_options_target(options), "any_time_s", any_s,
                                  "costs", time_s / any_s - 1));
}

json_t *advise(const char *model, const Cluster *cluster, const PlannerOptions *options,
               const AdviseAsked *asked, GError **error)
{
    static const double spare = 0.02; /* not worth a long search */
    const bool limited = isfinite(asked->target_s) || asked->tokens_per_s > 0;
    const PortfolioOptions how = {.numbers = limited,
                                  .all = asked->all,
                                  .flow = true,
                                  .spare = spare,
                                  .progress = asked->progress,
                                  .context = asked->context};
    g_autoptr(Portfolio) portfolio = portfolio_new(model, cluster, options, &how, error);
    json_t *answer = portfolio ? advise_json(portfolio, asked, error) : NULL;
    if (answer && options->target)
        add_restriction(model, cluster, options, portfolio, &how, answer);
    return answer;
}
