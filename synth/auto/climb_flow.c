/* Neighbours of the strategy that is fastest by flow, in what hides exchanges: only flow says what
 * schedules, divided states and buckets bring there. */
#include "synth/auto/tries.h"

#include <math.h>

/* Degrees stay as they are. */
static const char *const HIDES[] = {
    "zero=0",         "zero=1",        "schedule=zb-h2", "schedule=zb-h1",
    "schedule=gpipe", "schedule=1f1b", "micro_batch=1",  "micro_batch=2",
    "bucket=0",       "bucket=25MiB",
};

/* Whether the set is open, and makes other options of these. */
static bool hides_apply(const PortfolioRun *run, const char *set, PlannerOptions *options)
{
    g_auto(GStrv) pair = g_strsplit(set, "=", 2);
    Strategy *s = &options->strategy;
    if (!planner_options_is_default(run->options, pair[0]) ||
        (*set == 'z' && s->dp * MAX(s->cp, 1) == 1) ||
        (g_str_has_prefix(set, "schedule") && (s->pp == 1 || s->virtual_stages > 1)) ||
        (*set == 'm' && s->micro_batch == 0))
        return false;
    technique_apply(set, options);
    return true;
}

/* All keys of the options that the climb changes, as words for --set; interned. */
static const char *hides_words(const PlannerOptions *options)
{
    g_autofree char *words =
        g_strdup_printf("%s bucket=%" G_GUINT64_FORMAT "B",
                        neighbour_words(&options->strategy), options->bucket_bytes);
    return g_intern_string(words);
}

/* The task that has the neighbour's plan and its time by flow; NULL: it has none that fits. */
static Task *hides_try(const PortfolioRun *run, PortfolioChoice *choice,
                       PortfolioTry *attempt, const PlannerOptions *options)
{
    g_autoptr(Task) task = g_new0(Task, 1);
    *task = (Task){
        .choice = choice, .attempt = attempt, .upper_s = INFINITY, .options = *options};
    portfolio_make(run, task);
    if (!task->plan || !task->report->feasible)
        return NULL;
    task->flow_s = portfolio_flow_s(run, task->plan, task->graph, task->view);
    return g_steal_pointer(&task);
}

/* Makes the neighbour's plan the choice's. */
static void hides_take(PortfolioChoice *choice, Task *task)
{
    PortfolioTry *own =
        &g_array_index(choice->tries, PortfolioTry, choice->tries->len - 1);
    task->attempt->iteration_s = task->report->iteration_time_s;
    choice->start_s = choice->report->iteration_time_s;
    g_free(own->reason);
    *own = *task->attempt;
    task->attempt = own;
    portfolio_keep(task);
}

/* The fastest neighbour of the choice's plan that was not seen yet, if it is faster. */
static Task *hides_best(const PortfolioRun *run, PortfolioChoice *choice,
                        GHashTable *seen, PortfolioTry *attempt)
{
    static const double faster = 0.999;
    g_autoptr(Task) best = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(HIDES); i++) {
        PlannerOptions options = choice->options;
        options.strategy = choice->plan->strategy;
        options.bucket_bytes = choice->plan->bucket_bytes;
        if (!hides_apply(run, HIDES[i], &options))
            continue;
        const char *words = hides_words(&options);
        if (!g_hash_table_add(seen, (gpointer)words))
            continue;
        attempt[i] = (PortfolioTry){.planner = planner_find("manual", NULL),
                                    .granularity = GRANULARITY_GPU,
                                    .set = words,
                                    .iteration_s = INFINITY};
        g_autoptr(Task) task = hides_try(run, choice, &attempt[i], &options);
        if (task && task->flow_s < faster * (best ? best->flow_s : choice->flow_s)) {
            Task *const slower = best;
            best = g_steal_pointer(&task);
            task = slower;
        }
    }
    return g_steal_pointer(&best);
}

void portfolio_climb_by_flow(const PortfolioRun *run, PortfolioChoice *choice)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const uint64_t most = try_effort(run) == EFFORT_LONG     ? MOST_INSTRUCTIONS
                          : try_effort(run) == EFFORT_NORMAL ? SHORT_INSTRUCTIONS
                                                             : 0;
    while (choice->plan->strategy.dp > 0 &&
           program_whole_n(choice->plan->program) <= most) {
        PortfolioTry attempt[G_N_ELEMENTS(HIDES)];
        g_autoptr(Task) best = hides_best(run, choice, seen, attempt);
        if (!best)
            break;
        hides_take(choice, best);
    }
}
