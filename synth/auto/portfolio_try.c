/* Tries: a planner on a choice of machines, several at once.
 *
 * Tries are run in rounds. The fastest plan so far, with which a round's tries are compared, is
 * fixed before the round begins, and the plans of the round are taken in the order of the tries
 * after it. So the result does not depend on which try ends first. */
#include "synth/auto/portfolio_try.h"
#include "synth/answer/answer.h"
#include "synth/auto/technique.h"

#include <math.h>
#include <string.h>

#include "data/base/parallel.h"
#include "data/base/units.h"

/* Tries per round: few, so that each is compared with a recent best plan; first that of the planner
 * that is seldom beaten on the most promising machines. */
enum { FIRST_ROUND = 1, ROUND = 4 };

/* A try and its result. */
typedef struct {
    PortfolioChoice *choice;
    PortfolioTry *attempt;
    uint32_t phase, number; /* when it has its turn */
    double bound_s;         /* its plan is not faster */
    double upper_s;         /* plans that are not faster are of no use */
    PlannerOptions options; /* with the try's techniques */
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimReport *report;
    GError *error;
} Task;

typedef struct {
    const PortfolioRun *run;
    GPtrArray *task; /* Task */
    uint32_t first;  /* of the round */
    uint32_t done;
    GMutex lock;
} Tasks;

/* Frees what the choice did not take over. */
static void task_clear(Task *task)
{
    g_clear_pointer(&task->report, sim_report_free);
    g_clear_pointer(&task->plan, plan_free);
    g_clear_pointer(&task->graph, graph_free);
    g_clear_pointer(&task->view, cluster_view_free);
    g_clear_error(&task->error);
}

static void task_free(gpointer data)
{
    task_clear(data);
    g_free(data);
}

/* --- what can be said before --- */

/* Whether every program of the planner needs more memory than the devices have. Two microbatches
 * that take turns may need only half of the memory kept for the backward pass. */
static bool cannot_fit(const PortfolioRun *run, const Task *task)
{
    enum { TURNS = 2 };
    const Planner *planner = task->attempt->planner;
    const Strategy *strategy = &task->options.strategy;
    SimMemoryFloor floor = run->floor;
    if (planner_can(planner, PLANNER_GROUPS) || strategy->microbatches > 1 ||
        strategy->recompute)
        return false;
    if (planner_can(planner, PLANNER_TURNS) || task->options.duplex == DUPLEX_ON)
        floor.divided_bytes /= TURNS;
    return !sim_memory_floor_fits(&floor, task->view);
}

/* Whether every device gets an equal share of every cut dimension. */
static bool is_even(const PortfolioRun *run, const Planner *planner)
{
    const RatiosChoice ratios = planner_ratios(run->options);
    return run->options->strategy.microbatches <= 1 &&
           (ratios == RATIOS_EVEN ||
            (ratios == RATIOS_OWN && planner_can(planner, PLANNER_EVEN)));
}

static double bound_of(const PortfolioRun *run, const PortfolioChoice *choice,
                       const PortfolioTry *attempt)
{
    if (!is_even(run, attempt->planner))
        return choice->bound_s;
    g_autoptr(ClusterView) view = cluster_view(choice->cluster, attempt->granularity);
    return fmax(choice->bound_s, sim_even_bound_s(run->graph, view));
}

/* Planners whose plans are seldom beaten come first, then the quick ones, then those that search long where memory is
 * short. */
enum { FIRST, QUICK, TECHNIQUES, LONG, LONG_TECHNIQUES, LAST };

static uint32_t phase_of(const PortfolioTry *attempt)
{
    const Planner *planner = attempt->planner;
    const bool plain = !*attempt->set;
    return planner_can(planner, PLANNER_FIRST)  ? plain ? FIRST : TECHNIQUES
           : planner_can(planner, PLANNER_LAST) ? LAST
           : planner_can(planner, PLANNER_SEARCHES) || planner_can(planner, PLANNER_TURNS)
               ? plain ? LONG : LONG_TECHNIQUES
           : plain ? QUICK
                   : TECHNIQUES;
}

static gint by_turn(gconstpointer a, gconstpointer b)
{
    const Task *x = *(Task *const *)a, *y = *(Task *const *)b;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->bound_s != y->bound_s)
        return x->bound_s < y->bound_s ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static GPtrArray *list_tasks(const PortfolioRun *run)
{
    GPtrArray *tasks = g_ptr_array_new_with_free_func(task_free);
    const GPtrArray *choices = run->portfolio->choices;
    for (uint32_t c = 0; c < choices->len; c++) {
        PortfolioChoice *choice = g_ptr_array_index(choices, c);
        for (uint32_t t = 0; t < choice->tries->len; t++) {
            Task *task = g_new0(Task, 1);
            task->choice = choice;
            task->attempt = &g_array_index(choice->tries, PortfolioTry, t);
            task->phase = phase_of(task->attempt);
            task->options = *run->options;
            technique_apply(task->attempt->set, &task->options);
            task->number = tasks->len;
            task->bound_s = bound_of(run, choice, task->attempt);
            g_ptr_array_add(tasks, task);
        }
    }
    g_ptr_array_sort(tasks, by_turn);
    return tasks;
}

/* --- one try --- */

static void plan_once(const PortfolioRun *run, Task *task)
{
    task->options.budget_s = answer_seconds_left(run->deadline_us); /* of all tries */
    task->view = cluster_view(task->choice->cluster, task->attempt->granularity);
    g_autoptr(Question) question =
        question_open_on(task->attempt->planner, run->portfolio->model, run->graph,
                         task->view, &task->options, &task->error);
    if (!question)
        return;
    if (cannot_fit(run, task)) {
        kilter_fail(
            &task->error, KILTER_ERROR_INFEASIBLE,
            "does not fit: its backward pass needs more memory than all devices have");
        return;
    }
    const AnswerLimits limits = {
        .upper_s = task->upper_s, .unbounded = true, .beaten = &task->attempt->beaten};
    g_autoptr(Answer) answer =
        question_answer(question, task->choice->cluster->name, &limits, &task->error);
    if (!answer)
        return;
    task->plan = answer_take_plan(answer);
    task->report = answer_take_report(answer);
    task->graph = question_graph(question);
}

static bool run_one(void *context, uint32_t i, GError **error)
{
    (void)error; /* a try that fails does not stop the others */
    Tasks *tasks = context;
    Task *task = g_ptr_array_index(tasks->task, tasks->first + i);
    const PortfolioOptions *how = tasks->run->how;
    if (how->progress) {
        g_autofree char *what = g_strdup_printf(
            "%s%s%s on %s", task->attempt->planner->name, *task->attempt->set ? " " : "",
            task->attempt->set, task->choice->machines);
        g_mutex_lock(&tasks->lock);
        how->progress(how->context, tasks->done++, tasks->task->len, what);
        g_mutex_unlock(&tasks->lock);
    }
    if (!task->attempt->reason)
        plan_once(tasks->run, task);
    return true;
}

/* --- rounds --- */

/* How far to search, by the option `work`: with less than all, machines and planners that are not
 * promising are left out. */
typedef enum { EFFORT_QUICK, EFFORT_NORMAL, EFFORT_LONG } Effort;

static Effort try_effort(const PortfolioRun *run)
{
    enum { QUICK_WORK = 1, NORMAL_WORK = 40 };
    const uint32_t work = run->options->work;
    return work == 0 || work > NORMAL_WORK ? EFFORT_LONG
           : work > QUICK_WORK             ? EFFORT_NORMAL
                                           : EFFORT_QUICK;
}

/* Whether a planner of one program for all devices made a plan in this time. */
static bool try_has_rival(const PortfolioChoice *choice, double most_s)
{
    bool has = false;
    for (uint32_t i = 0; i < choice->tries->len; i++) {
        const PortfolioTry *t = &g_array_index(choice->tries, PortfolioTry, i);
        has |= t->iteration_s < most_s && !planner_can(t->planner, PLANNER_GROUPS);
    }
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

/* Whether the planner that comes first has a plan on the whole cluster, where it also searched
 * these machines alone, which have the same network there. */
static bool try_is_covered(const PortfolioRun *run, const Task *task)
{
    const Cluster *own = task->choice->cluster;
    const GPtrArray *choices = run->portfolio->choices;
    bool covered = false;
    for (uint32_t c = 0; c < choices->len; c++) {
        const PortfolioChoice *other = g_ptr_array_index(choices, c);
        for (uint32_t t = 0; !other->only && t < other->tries->len; t++) {
            const PortfolioTry *whole = &g_array_index(other->tries, PortfolioTry, t);
            covered |= whole->planner == task->attempt->planner &&
                       isfinite(whole->iteration_s) && !own->network &&
                       memcmp(own->collective, other->cluster->collective,
                              sizeof own->collective) == 0;
        }
    }
    return covered && run->how->prune && task->phase == FIRST && task->choice->only;
}

/* How far a planner's own plan may be from the best one if techniques are to be tried with it. */
static double try_far(const PortfolioRun *run)
{
    return try_effort(run) == EFFORT_LONG ? 1.5 : 1.15;
}

/* Whether the planner's own plan or a set of techniques may make the best plan of the choice. Short
 * of all effort, searches of one program for all devices that take long are for machines on which
 * nothing else has a plan or a quick one is near the best. */
static bool try_is_promising(const PortfolioRun *run, const Task *task)
{
    const double far = try_far(run);
    const PortfolioTry *plain = try_plain(task);
    const bool all = try_effort(run) == EFFORT_LONG;
    if (!all && try_is_covered(run, task))
        return false;
    if (!all && task->phase >= LONG && task->choice->report &&
        (task->phase > LONG || !try_has_rival(task->choice, far * run->best_s)))
        return false;
    if (plain == task->attempt || (plain->misfit && (all || !plain->beaten)))
        return true;
    return technique_when(task->attempt->set) == TECHNIQUE_NEAR &&
           plain->iteration_s < far * fmin(run->best_s, task->upper_s);
}

/* Whether the choice is the whole cluster or one of the fastest so far: of many choices only these
 * get every planner. */
static bool is_among_best(const PortfolioRun *run, const PortfolioChoice *choice)
{
    enum { FEW = 8, FEW_GPUS = 16 };
    static const uint32_t BEST[] = {1, 2, 3};
    const Effort effort = try_effort(run);
    const GPtrArray *choices = run->portfolio->choices;
    uint32_t faster = 0, most = 0;
    for (uint32_t c = 0; c < choices->len; c++) {
        const PortfolioChoice *other = g_ptr_array_index(choices, c);
        most = MAX(most, other->gpus);
        faster += other->report && choice->report &&
                  other->report->iteration_time_s < choice->report->iteration_time_s;
        faster += other->report && !choice->report;
    }
    return faster < BEST[effort] ||
           (effort == EFFORT_LONG &&
            (choices->len <= FEW || most <= FEW_GPUS || !choice->only));
}

/* Sets the time that the task must beat, and leaves the task out if its bound shows that it
 * cannot. */
static void prepare(const PortfolioRun *run, Task *task)
{
    const SimReport *report = task->choice->report;
    task->upper_s = run->how->prune ? run->best_s
                    : report        ? report->iteration_time_s
                                    : INFINITY;
    static const double least_gain[] = {0.1, 0.03, 0}; /* of other machines, by effort */
    const double least = least_gain[try_effort(run)],
                 spare = task->phase >= LONG    ? fmax(run->how->spare, least)
                         : task->phase == FIRST ? least
                                                : 0;
    if (!try_is_promising(run, task))
        task->attempt->reason =
            g_strdup("not tried: the planner's plan without these techniques or on all "
                     "machines is far from the best one, or fits");
    else if (!run->how->all && task->phase > FIRST && !is_among_best(run, task->choice))
        task->attempt->reason = g_strdup("not tried: other machines are faster");
    else if (!run->how->all && task->bound_s >= task->upper_s)
        task->attempt->reason = g_strdup_printf(
            "not tried: it takes at least %.3g s, longer than a plan that is known",
            task->bound_s);
    else if (!run->how->all && task->bound_s * (1 + spare) >= task->upper_s)
        task->attempt->reason =
            g_strdup_printf("not tried: it takes at least %.3g s, at most %g %% less "
                            "than a plan that is known",
                            task->bound_s, 100 * spare);
    /* whether a planner's own plan is near enough for techniques has to be seen */
    if (try_effort(run) < EFFORT_LONG && task->phase == QUICK &&
        planner_can(task->attempt->planner, PLANNER_STRATEGY))
        task->upper_s *= try_far(run);
    task->attempt->left_out = task->attempt->reason != NULL;
}

/* Makes the task's plan the choice's plan, with everything that belongs to it. */
static void keep(Task *task)
{
    PortfolioChoice *choice = task->choice;
    sim_report_free(choice->report);
    plan_free(choice->plan);
    graph_free(choice->graph);
    cluster_view_free(choice->view);
    choice->best = task->attempt;
    choice->view = g_steal_pointer(&task->view);
    choice->graph = g_steal_pointer(&task->graph);
    choice->plan = g_steal_pointer(&task->plan);
    choice->report = g_steal_pointer(&task->report);
}

/* Keeps the first of the failures that say most: a plan that does not fit says more than a refused
 * option, and of these the planners of pipelines take most. */
static void note_failure(PortfolioRun *run, Task *task)
{
    enum { REFUSED = 1, REFUSED_BY_PIPELINES, MISFIT };
    const uint32_t telling = task->error->code == KILTER_ERROR_INFEASIBLE ? MISFIT
                             : planner_can(task->attempt->planner, PLANNER_STRATEGY)
                                 ? REFUSED_BY_PIPELINES
                                 : REFUSED;
    if (telling <= run->telling)
        return;
    g_clear_error(&run->failure);
    run->failure = g_steal_pointer(&task->error);
    run->telling = telling;
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
        if (!task->choice->report ||
            attempt->iteration_s < task->choice->report->iteration_time_s)
            keep(task);
    }
    task_clear(task);
}

/* Whether no planner was tried on the choice, since no plan on its machines is faster than the best one. */
static bool is_skipped(const PortfolioRun *run, const PortfolioChoice *choice)
{
    return run->how->prune && !choice->report && choice->bound_s >= run->best_s;
}

void portfolio_run(PortfolioRun *run)
{
    g_autoptr(GPtrArray) task = list_tasks(run);
    Tasks tasks = {.run = run, .task = task};
    g_mutex_init(&tasks.lock);
    for (uint32_t first = 0, n = 0; first < task->len; first += n) {
        n = MIN(first > 0 ? ROUND : FIRST_ROUND, task->len - first);
        tasks.first = first;
        for (uint32_t i = 0; i < n; i++)
            prepare(run, g_ptr_array_index(task, first + i));
        parallel_each(n, run->how->threads, run_one, &tasks, NULL);
        for (uint32_t i = 0; i < n; i++)
            take(run, g_ptr_array_index(task, first + i));
    }
    g_mutex_clear(&tasks.lock);
    for (uint32_t c = 0; c < run->portfolio->choices->len; c++) {
        PortfolioChoice *choice = g_ptr_array_index(run->portfolio->choices, c);
        choice->skipped = is_skipped(run, choice);
    }
}
