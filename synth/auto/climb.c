/* Neighbours of the fastest strategy of a choice, tried from each that is better. */
#include "synth/auto/tries.h"

#include <math.h>

#include "data/base/parallel.h"

/* How bad a plan is: its seconds, or above these the bytes by which it does not fit. */
static double misery_of(const SimReport *report)
{
    const double most_s = 1e12;
    return report->missing_bytes > 0 ? most_s + (double)report->missing_bytes
                                     : report->iteration_time_s;
}

/* Runs a round of neighbours. Returns the best one, if it is better than `than`, or NULL. */
static Task *neighbours_run(const PortfolioRun *run, GPtrArray *task, double than)
{
    Tasks tasks = {.run = run, .task = task};
    Task *best = NULL;
    g_mutex_init(&tasks.lock);
    parallel_each(task->len, run->how->threads, portfolio_try, &tasks, NULL);
    g_mutex_clear(&tasks.lock);
    pointers_each (Task, t, task) {
        if (t->plan && misery_of(t->report) < than) {
            best = t;
            than = misery_of(t->report);
        }
    }
    return best;
}

/* Makes a neighbour's plan the choice's, if it is the fastest that fits. */
static void neighbour_take(PortfolioRun *run, PortfolioTry *own, Task *task)
{
    const SimReport *report = task->report, *known = task->choice->report;
    if (!report->feasible)
        return;
    g_free(own->reason);
    *own = *task->attempt;
    own->iteration_s = report->iteration_time_s;
    run->best_s = fmin(run->best_s, own->iteration_s);
    task->attempt = own;
    if (!known || own->iteration_s < known->iteration_time_s)
        portfolio_keep(task);
    if (task->attempt != own) /* a neighbour's words may be replaced */
        portfolio_remember(run, task);
}

/* Tries neighbours of the choice's fastest strategy, at most so many, and goes on from each that is
 * better. */
static void portfolio_climb(PortfolioRun *run, PortfolioChoice *choice, uint32_t most)
{
    PortfolioTry *own =
        &g_array_index(choice->tries, PortfolioTry, choice->tries->len - 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    Strategy at = choice->start, next;
    double misery = choice->start_s;
    if (isfinite(misery)) /* it has a plan */
        g_hash_table_add(seen, (gpointer)neighbour_words(&at));
    for (uint32_t row = 0, n = 1; n > 0 && most > 0;) {
        g_autoptr(GPtrArray) task =
            g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
        PortfolioTry attempt[ROUND];
        for (n = 0; n < MIN(ROUND, most) &&
                    neighbour_next(&at, run->options, run->has, &row, &next);) {
            const char *words = neighbour_words(&next);
            if (!g_hash_table_add(seen, (gpointer)words))
                continue;
            Task *neighbour = task_by_hand(choice, &attempt[n++], words, run->options);
            neighbour->options.strategy = next;
            neighbour->upper_s = neighbour->enough_s = misery;
            g_ptr_array_add(task, neighbour);
        }
        Task *best = neighbours_run(run, task, misery);
        pointers_each (const Task, t, task)
            most -= t->report && most > 0; /* others are refused at once */
        if (!best)
            continue;
        row = 0;
        at = best->options.strategy;
        misery = misery_of(best->report);
        neighbour_take(run, own, best);
    }
}

/* Where nothing fits, neighbours are those of a strategy that needs little memory, on the whole
 * cluster, with the keys that are asked for. */
static void start_small(const PortfolioRun *run, PortfolioChoice *choice)
{
    const Cluster *cluster = choice->cluster;
    uint32_t tp = cluster->machine[0].gpus;
    for (uint32_t m = 1; m < cluster->n_machines; m++)
        tp = MIN(tp, cluster->machine[m].gpus);
    Strategy *start = &choice->start;
    *start = run->options->strategy;
    start->pp = MAX(start->pp, 1);
    start->tp = start->tp ? start->tp : tp;
    start->dp = start->dp ? start->dp : MAX(choice->gpus / start->tp / start->pp, 1);
    start->micro_batch = MAX(start->micro_batch, 1);
    start->zero = MAX(start->zero, start->dp > 1);
    if (!start->recompute)
        start->recompute = "full";
    if (!start->sequence_parallel && start->tp > 1)
        start->sequence_parallel = "on";
}

/* How many neighbours of a choice's strategy are tried: as many as work out to a few seconds, at
 * about 1 us for each op and microbatch, of which a long pipeline has few that are unlike each
 * other; few neighbours are of no use. */
static uint32_t neighbours_most(const PortfolioRun *run, const Strategy *start)
{
    enum { LEAST = 8, MOST = 100, UNLIKE = 64 };
    static const double work[] = {0, 8e6, 40e6}; /* ops times microbatches, by effort */
    const uint32_t size = start->dp * MAX(start->micro_batch, 1),
                   n = start->micro_batch ? graph_batch(run->graph) / size
                                          : start->microbatches;
    const double most =
        work[try_effort(run)] / graph_n_ops(run->graph) / CLAMP(n, 1, UNLIKE);
    return most < LEAST ? 0 : (uint32_t)fmin(most, MOST);
}

/* Climbs on the choices that get every planner, but not for a first answer. */
void portfolio_improve(PortfolioRun *run)
{
    const GPtrArray *choices = run->portfolio->choices;
    g_autoptr(GPtrArray) climbs = g_ptr_array_new();
    if (!run->has.attention && !run->has.experts)
        return;
    pointers_each (PortfolioChoice, choice, choices)
        if (isfinite(choice->start_s) && portfolio_is_among_best(run, choice))
            g_ptr_array_add(climbs, choice);
    for (uint32_t c = 0; c < choices->len && !isfinite(run->best_s); c++) {
        PortfolioChoice *choice = g_ptr_array_index(choices, c);
        if (choice->only)
            continue;
        start_small(run, choice);
        g_ptr_array_add(climbs, choice);
    }
    pointers_each (PortfolioChoice, choice, climbs)
        portfolio_climb(run, choice, neighbours_most(run, &choice->start));
}
