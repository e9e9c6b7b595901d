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

/* Changes the options; returns what the climb changes, for --set, interned. NULL: not open. */
static const char *hides_apply(const PortfolioRun *run, const char *set,
                               PlannerOptions *options)
{
    g_auto(GStrv) pair = g_strsplit(set, "=", 2);
    Strategy *s = &options->strategy;
    if (!planner_options_is_default(run->options, pair[0]) ||
        (*set == 'z' && s->dp * MAX(s->cp, 1) == 1) ||
        (g_str_has_prefix(set, "schedule") && (s->pp == 1 || s->virtual_stages > 1)) ||
        (*set == 'm' && s->micro_batch == 0))
        return NULL;
    technique_apply(set, options);
    g_autofree char *words = g_strdup_printf("%s bucket=%" G_GUINT64_FORMAT "B",
                                             neighbour_words(s), options->bucket_bytes);
    return g_intern_string(words);
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
        const char *words = hides_apply(run, HIDES[i], &options);
        if (!words || !g_hash_table_add(seen, (gpointer)words))
            continue;
        g_autoptr(Task) task = task_by_hand(choice, &attempt[i], words, &options);
        portfolio_make_flow(run, task);
        if (task->flow_s < faster * (best ? best->flow_s : choice->flow_s)) {
            Task *const slower = best;
            best = task, task = slower;
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
