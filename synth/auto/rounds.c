/* Rounds of tries: which are promising after the plans so far, and which plans are kept. */
#include "synth/auto/tries.h"

#include <math.h>
#include <string.h>

#include "data/base/order.h"
#include "data/base/parallel.h"
#include "data/base/units.h"

/* Whether a planner of one program for all devices made a plan in this time. */
static bool try_has_rival(const PortfolioChoice *choice, double most_s)
{
    const bool has =
        any_in(array_each (const PortfolioTry, t, choice->tries),
               t->iteration_s < most_s && !planner_can(t->planner, PLANNER_GROUPS));
    return has;
}

/* The planner's try on the same devices without techniques. */
static const PortfolioTry *try_plain(const Task *task)
{
    const PortfolioTry *plain = task->attempt;
    while (*plain->set)
        plain--; /* a planner's sets stand behind it */
    return plain;
}

/* Whether the framework that is asked for refuses the planner's own plans, without techniques. */
static bool try_is_refused(const PortfolioRun *run, const Task *task)
{
    const PortfolioTry *plain = try_plain(task);
    return run->options->target != TARGET_ANY && plain->reason && !plain->misfit &&
           !plain->left_out;
}

/* Whether the planner that comes first has a plan on the whole cluster, where it also searched
 * these machines alone, which have the same network there. */
static bool try_is_covered(const PortfolioRun *run, const Task *task)
{
    const Cluster *own = task->choice->cluster;
    const GPtrArray *choices = run->portfolio->choices;
    bool covered = false;
    pointers_each (const PortfolioChoice, other, choices) {
        for (uint32_t t = 0; !other->only && t < other->tries->len; t++) {
            const PortfolioTry *whole = &g_array_index(other->tries, PortfolioTry, t);
            covered |= whole->planner == task->attempt->planner &&
                       isfinite(whole->iteration_s) && !own->network &&
                       memcmp(own->collective, other->cluster->collective,
                              sizeof own->collective) == 0;
        }
    }
    return covered && run->how->prune && task->phase <= FIRST && task->choice->only &&
           (run->hasty || planner_can(task->attempt->planner, PLANNER_FIRST));
}

/* How far a planner's own plan may be from the best one if techniques are to be tried with it: as
 * far as flow compares, or less where tries take long. */
static double try_far(const PortfolioRun *run, const Task *task)
{
    const bool quick = (task->phase == TECHNIQUES || task->phase == LONG_TECHNIQUES) &&
                       !planner_can(task->attempt->planner, PLANNER_STRATEGY);
    return quick || try_effort(run) == EFFORT_LONG ? TRIES_FAR : TRIES_NEAR;
}

/* Whether the planner's own plan or a set of techniques may make the best plan of the choice. Short
 * of all effort, searches of one program for all devices that take long are for machines on which
 * nothing else has a plan or a quick one is near the best. */
static bool try_is_promising(const PortfolioRun *run, const Task *task)
{
    enum { FEW_OPS = 200 }; /* with which programs for all devices are searched fast */
    const double far = try_far(run, task);
    const PortfolioTry *plain = try_plain(task);
    const bool all = try_effort(run) == EFFORT_LONG;
    if (!all && try_is_covered(run, task))
        return false;
    const bool quick = graph_n_ops(run->graph) <= FEW_OPS;
    const bool again = task->phase == LONG_TECHNIQUES && isfinite(plain->iteration_s);
    if (!all && !again && task->phase >= LONG && task->choice->report &&
        (task->phase > LONG ||
         !(quick || try_has_rival(task->choice, far * run->best_s))))
        return false;
    if (plain == task->attempt || task->phase == EARLY || try_is_refused(run, task))
        return true;
    const TechniqueWhen when = technique_when(task->attempt->set);
    if (plain->misfit && (all || !plain->beaten))
        return when != TECHNIQUE_REFUSED;
    return when <= TECHNIQUE_NEAR &&
           plain->iteration_s < far * fmin(run->best_s, task->upper_s);
}

/* Whether the choice is one of the fastest so far, of few GPUs also one that is near, or has no
 * plan where all are to have one, or is the whole cluster, without a plan or with all effort: of
 * many choices only these get every planner. */
bool portfolio_is_among_best(const PortfolioRun *run, const PortfolioChoice *choice)
{
    enum { FEW = 8, FEW_GPUS = 16 };
    static const uint32_t BEST[] = {1, 2, 3};
    const Effort effort = try_effort(run);
    const GPtrArray *choices = run->portfolio->choices;
    uint32_t faster = 0, most = 0;
    pointers_each (const PortfolioChoice, other, choices) {
        most = MAX(most, other->gpus);
        faster += other->report && choice->report &&
                  other->report->iteration_time_s < choice->report->iteration_time_s;
        faster += other->report && !choice->report && choice->only;
    }
    const bool few = choices->len <= FEW && most <= FEW_GPUS;
    return faster < BEST[effort] || (!run->how->prune && !choice->report) ||
           (effort >= EFFORT_NORMAL && few && choice->report &&
            choice->report->iteration_time_s < TRIES_NEAR * run->best_s) ||
           (effort == EFFORT_LONG &&
            (choices->len <= FEW || most <= FEW_GPUS || !choice->only));
}

/* Sets the time that the task must beat, and leaves the task out if its bound shows that it
 * cannot. */
static void prepare_task(const PortfolioRun *run, Task *task)
{
    const SimReport *report = task->choice->report;
    const bool ordered = run->hasty || run->many;
    task->upper_s = run->how->prune ? run->best_s
                    : report        ? report->iteration_time_s
                                    : INFINITY;
    static const double least_gain[] = {0.1, 0.03, 0}; /* of other machines, by effort */
    const double least = least_gain[try_effort(run)],
                 spare = task->phase >= LONG    ? fmax(run->how->spare, least)
                         : task->phase <= FIRST ? least
                                                : 0;
    if (!try_is_promising(run, task))
        task->attempt->reason =
            g_strdup("not tried: the planner's plan without these techniques or on all "
                     "machines is far from the best one, or fits");
    else if (!run->how->all && !try_is_refused(run, task) &&
             task->phase > (ordered && run->has.attention ? EARLY : FIRST) &&
             !portfolio_is_among_best(run, task->choice))
        task->attempt->reason = g_strdup("not tried: other machines are faster");
    else if (run->hasty && task->phase > FIRST && isfinite(run->best_s))
        task->attempt->reason =
            g_strdup("not tried: a first plan is known; --effort normal tries more");
    else if (!run->how->all && task->choice->bound_s >= task->upper_s)
        task->attempt->reason = g_strdup_printf(
            "not tried: it takes at least %.3g s, longer than a plan that is known",
            task->choice->bound_s);
    else if (!run->how->all && task->choice->bound_s * (1 + spare) >= task->upper_s)
        task->attempt->reason =
            g_strdup_printf("not tried: it takes at least %.3g s, at most %g %% less "
                            "than a plan that is known",
                            task->choice->bound_s, 100 * spare);
    /* whether a planner's own plan is near enough for techniques has to be seen */
    if (try_effort(run) < EFFORT_LONG && task->phase == QUICK &&
        planner_can(task->attempt->planner, PLANNER_STRATEGY))
        task->upper_s *= try_far(run, task);
    task->attempt->left_out = task->attempt->reason != NULL;
}

/* Makes the task's plan the choice's plan, with all that belongs to it, and the other way. */
void portfolio_keep(Task *task)
{
    PortfolioChoice *choice = task->choice;
    const Task old = *task;
    task->attempt = (PortfolioTry *)choice->best;
    task->view = choice->view, choice->view = old.view;
    task->graph = choice->graph, choice->graph = old.graph;
    task->plan = choice->plan, choice->plan = old.plan;
    task->report = choice->report, choice->report = old.report;
    task->options = choice->options, choice->options = old.options;
    task->flow_s = choice->flow_s, choice->flow_s = old.flow_s;
    choice->best = old.attempt;
}

static ORDER_POINTERS(by_own_time, Task, ASCENDING(report->iteration_time_s));

/* How many of the others, which are in order, are compared: MOST_FLOWS, and more where their
 * programs are short. */
static uint32_t others_compared(const GPtrArray *others)
{
    uint64_t work = 0;
    uint32_t n = 0;
    while (n < others->len &&
           portfolio_compares(n, ((const Task *)others->pdata[n])->plan,
                              SHORT_INSTRUCTIONS, &work))
        n++;
    return n;
}

/* Keeps the task's plan, which is not its choice's own, if it is among the fastest of these, the
 * fastest of each planner, kind of replicas and size of buckets on the choice: by flow, which sees
 * what exchanges hide behind, it may be faster than the choice's own. */
void portfolio_remember(PortfolioRun *run, Task *task)
{
    GPtrArray *others = run->others;
    if (!run->how->flow || !task->plan || !task->report->feasible ||
        task->plan->program->n > MOST_INSTRUCTIONS)
        return;
    for (uint32_t i = others->len; i-- > 0;) {
        const Task *other = g_ptr_array_index(others, i);
        const int order = by_own_time(&other, &task);
        const bool alike = other->attempt->planner == task->attempt->planner &&
                           other->options.strategy.zero == task->options.strategy.zero &&
                           other->options.bucket_bytes == task->options.bucket_bytes;
        if (other->choice != task->choice || (!alike && order != 0))
            continue;
        if (order <= 0)
            return;
        g_ptr_array_remove_index(others, i);
    }
    g_ptr_array_add(others, g_memdup2(task, sizeof *task));
    task->view = NULL, task->graph = NULL, task->plan = NULL, task->report = NULL;
    g_ptr_array_sort(others, by_own_time);
    g_ptr_array_set_size(others, (gint)others_compared(others));
}

/* Keeps the first of the failures that say most: those on all machines, of these a plan that does
 * not fit, as it says more than a refused option, and of these those of pipelines' planners. */
static void note_failure(PortfolioRun *run, Task *task)
{
    enum { REFUSED = 1, REFUSED_BY_PIPELINES, MISFIT };
    const uint32_t telling =
        (task->error->code == KILTER_ERROR_INFEASIBLE            ? MISFIT
         : planner_can(task->attempt->planner, PLANNER_STRATEGY) ? REFUSED_BY_PIPELINES
                                                                 : REFUSED) +
        (task->choice->only ? 0 : MISFIT); /* on all machines */
    if (telling <= run->telling)
        return;
    g_clear_error(&run->failure);
    run->failure = g_steal_pointer(&task->error);
    run->telling = telling;
}

/* Whether the task's plan is better than the choice's. Of two that take equally long, the one of a
 * strategy is, which frameworks may run. */
static bool is_better(const Task *task, const PortfolioChoice *choice)
{
    static const double same = 1e-9;
    if (!choice->report)
        return true;
    const bool laid_out = task->plan->strategy.dp > 0,
               was = choice->plan->strategy.dp > 0;
    const double even = laid_out == was ? 1 : laid_out ? 1 + same : 1 - same;
    return task->report->iteration_time_s < even * choice->report->iteration_time_s;
}

static void take(PortfolioRun *run, Task *task)
{
    PortfolioTry *attempt = task->attempt;
    const SimReport *report = task->report;
    if (task->plan && !report->feasible) {
        g_autofree char *missing =
            units_format((double)report->missing_bytes, QUANTITY_BYTES);
        kilter_fail(&task->error, KILTER_ERROR_INFEASIBLE,
                    "does not fit: device %s lacks %s",
                    task->view->device[report->worst_device].name, missing);
    }
    if (task->error) {
        attempt->reason = g_strdup(task->error->message);
        attempt->misfit = task->error->code == KILTER_ERROR_INFEASIBLE;
        note_failure(run, task);
    } else if (task->plan) {
        attempt->iteration_s = report->iteration_time_s;
        run->best_s = fmin(run->best_s, attempt->iteration_s);
        if (task->plan->strategy.dp > 0 && attempt->iteration_s < task->choice->start_s) {
            task->choice->start = task->plan->strategy;
            task->choice->start_s = attempt->iteration_s;
        }
        if (is_better(task, task->choice))
            portfolio_keep(task);
        portfolio_remember(run, task);
    }
    task_clear(task);
}

/* Runs the tries of all choices, on all processors. Quick planners whose plans are seldom beaten
 * come first, so that later tries can be left out by their bounds. A choice keeps its fastest plan.
 * The plans are the same however many processors there are. */
void portfolio_run(PortfolioRun *run)
{
    g_autoptr(GPtrArray) task = portfolio_tasks(run);
    Tasks tasks = {.run = run, .task = task};
    g_mutex_init(&tasks.lock);
    for (uint32_t first = 0, n = 0; first < task->len; first += n) {
        n = MIN(first > 0 ? ROUND : FIRST_ROUND, task->len - first);
        tasks.first = first;
        for (uint32_t i = 0; i < n; i++)
            prepare_task(run, g_ptr_array_index(task, first + i));
        parallel_each(n, run->how->threads, portfolio_try, &tasks, NULL);
        for (uint32_t i = 0; i < n; i++)
            take(run, g_ptr_array_index(task, first + i));
    }
    g_mutex_clear(&tasks.lock);
}
