/* Every planner on every choice of machines. */
#include "synth/auto/portfolio.h"
#include "data/base/each.h"
#include "data/base/free.h"
#include "data/base/order.h"
#include "data/base/parallel.h"
#include "data/base/units.h"
#include "data/cluster/change.h"
#include "data/graph/facts.h"
#include "data/models/model.h"
#include "data/plan/fidelity.h"
#include "data/program/period.h"
#include "synth/answer/complete.h"
#include "synth/auto/neighbours.h"

#include <math.h>
#include <string.h>

/* --- tries --- */

/* Tries: a planner on a choice of machines, several at once.
 *
 * Tries are run in rounds. The fastest plan so far, with which a round's tries are compared, is
 * fixed before the round begins, and the plans of the round are taken in the order of the tries
 * after it. So the result does not depend on which try ends first. */

typedef struct {
    Portfolio *portfolio;
    const PortfolioOptions *how;
    const PlannerOptions *options;
    Graph *graph;
    TechniqueNeeds has; /* of what techniques need */
    SimMemoryFloor floor;
    gint64 deadline_us; /* 0: none */
    bool hasty;         /* try_is_hasty() */
    double best_s;      /* least time of all choices; INFINITY at first */
    GPtrArray *
        others; /* Task: the fastest plans that are not their choices' own, by their times */
    GError *failure;  /* the failure that says most, NULL: none */
    uint32_t telling; /* how much it says */
} PortfolioRun;

/* Tries per round: few, so that each is compared with a recent best plan; first that of the planner
 * that is seldom beaten on the most promising machines. */
enum { FIRST_ROUND = 1, ROUND = 4 };

/* Plans that are compared again in the end: those of so many choices, the first ones, and as many
 * others, each of so many instructions. In flow messages share links, and steps overlap. */
enum { MOST_FLOWS = 6, MOST_INSTRUCTIONS = 400000 };

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
    double flow_s;
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
static CLEAR_DEFINE(task_clear, Task, task, let_go(task->report, sim_report_free),
                    let_go(task->plan, plan_free), let_go(task->graph, graph_free),
                    let_go(task->view, cluster_view_free), g_clear_error(&task->error));

static FREE_DEFINE(task_free, Task, task, task_clear(task));

/* --- what can be said before --- */

/* Whether every program of the planner needs more memory than the devices have: for states, or
 * also for the backward pass, of which two microbatches that take turns may need only half. */
static bool cannot_fit(const PortfolioRun *run, const Task *task)
{
    enum { TURNS = 2 };
    const Planner *planner = task->attempt->planner;
    const Strategy *strategy = &task->options.strategy;
    SimMemoryFloor floor = run->floor;
    if (planner_can(planner, PLANNER_GROUPS) || strategy->microbatches > 1 ||
        strategy->recompute)
        floor.divided_bytes = 0;
    else if (planner_can(planner, PLANNER_TURNS) || task->options.duplex == DUPLEX_ON)
        floor.divided_bytes /= TURNS;
    return !strategy->offload && !sim_memory_floor_fits(&floor, task->view);
}

/* Whether every device gets an equal share of every cut dimension. */
static bool is_even(const PortfolioRun *run, const Planner *planner)
{
    const RatiosChoice ratios = planner_ratios(run->options);
    return run->options->strategy.microbatches <= 1 &&
           (ratios == RATIOS_EVEN ||
            (ratios == RATIOS_OWN && planner_can(planner, PLANNER_EVEN)));
}

/* The runtime that the try's plan is for; NULL: none. */
static const char *try_runtime(const PortfolioRun *run, const PortfolioChoice *choice,
                               const PortfolioTry *attempt)
{
    PlannerOptions options = *run->options;
    technique_apply(attempt->set, &options);
    return planner_runtime(attempt->planner, &options, choice->cluster);
}

/* The choice's machines with the prices of ops that the try's planner sees; NULL: not known. */
static ClusterView *priced_view(const PortfolioRun *run, const PortfolioChoice *choice,
                                const PortfolioTry *attempt)
{
    return planner_view(run->options, try_runtime(run, choice, attempt), choice->cluster,
                        attempt->granularity);
}

/* No plan of any try is faster; 0: not known. Prices differ by runtime only. */
static double least_bound(const PortfolioRun *run, const PortfolioChoice *choice)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double least_s = INFINITY;
    array_each (const PortfolioTry, attempt, choice->tries) {
        const char *name = try_runtime(run, choice, attempt);
        if (!g_hash_table_add(seen, (gpointer)(name ? name : "")))
            continue;
        g_autoptr(ClusterView) view = priced_view(run, choice, attempt);
        least_s = fmin(least_s, view ? sim_compute_bound_s(run->graph, view) : 0);
    }
    return isfinite(least_s) ? least_s : 0;
}

/* known: [granularity, runtime] the bounds of even shares on the choice's machines so far. */
static double bound_of(const PortfolioRun *run, const PortfolioChoice *choice,
                       const PortfolioTry *attempt, GHashTable *known)
{
    if (!is_even(run, attempt->planner))
        return choice->bound_s;
    const char *runtime = try_runtime(run, choice, attempt);
    char *key = g_strdup_printf("%d %s", attempt->granularity, runtime ? runtime : "");
    double *bound_s = g_hash_table_lookup(known, key);
    if (bound_s) {
        g_free(key);
        return *bound_s;
    }
    g_autoptr(ClusterView) view = priced_view(run, choice, attempt);
    bound_s = g_new(double, 1);
    *bound_s = fmax(choice->bound_s, view ? sim_even_bound_s(run->graph, view) : 0);
    g_hash_table_insert(known, key, bound_s);
    return *bound_s;
}

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

/* Whether the first plan is wanted soon, and programs may be long, which the planner that comes
 * first makes many of. Strategies come first then, and the rest only where nothing has a plan. */
static bool try_is_hasty(const PortfolioRun *run)
{
    enum { LONG_PROGRAM = 400000 }; /* instructions: a second or two for that planner */
    return try_effort(run) == EFFORT_QUICK &&
           (uint64_t)graph_n_ops(run->graph) * graph_batch(run->graph) > LONG_PROGRAM;
}

/* Planners whose plans are seldom beaten come first, then the quick ones, then those that search
 * long where memory is short. */
enum { EARLY, FIRST, QUICK, TECHNIQUES, LONG, LONG_TECHNIQUES, LAST };

static uint32_t phase_of(const PortfolioTry *attempt, bool hasty)
{
    const Planner *planner = attempt->planner;
    const bool plain = !*attempt->set;
    if (hasty && plain && planner_can(planner, PLANNER_FIRST))
        return LAST;
    if (hasty && planner_can(planner, PLANNER_STRATEGY) &&
        !planner_can(planner, PLANNER_LAST) &&
        (plain || technique_when(attempt->set) == TECHNIQUE_EARLY))
        return plain ? FIRST : EARLY;
    return planner_can(planner, PLANNER_FIRST)  ? plain ? FIRST : TECHNIQUES
           : planner_can(planner, PLANNER_LAST) ? LAST
           : planner_can(planner, PLANNER_SEARCHES) || planner_can(planner, PLANNER_TURNS)
               ? plain ? LONG : LONG_TECHNIQUES
           : plain ? QUICK
                   : TECHNIQUES;
}

static ORDER_POINTERS(by_turn, Task, ASCENDING(phase), ASCENDING(bound_s),
                      ASCENDING(number));

static GPtrArray *list_tasks(const PortfolioRun *run)
{
    GPtrArray *tasks = g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
    const GPtrArray *choices = run->portfolio->choices;
    pointers_each (PortfolioChoice, choice, choices) {
        g_autoptr(GHashTable) known =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        for (uint32_t t = 0; t < choice->tries->len - 1; t++) { /* the last: neighbours */
            Task *task = g_new0(Task, 1);
            task->choice = choice;
            task->attempt = &g_array_index(choice->tries, PortfolioTry, t);
            task->phase = phase_of(task->attempt, run->hasty);
            task->options = *run->options;
            technique_apply(task->attempt->set, &task->options);
            task->number = tasks->len;
            task->bound_s = bound_of(run, choice, task->attempt, known);
            g_ptr_array_add(tasks, task);
        }
    }
    g_ptr_array_sort(tasks, by_turn);
    return tasks;
}

/* --- one try --- */

static void refuse_floor(const PortfolioRun *run, Task *task)
{
    double all = 0;
    items_each (const Device, device, task->view->device, task->view->n_devices)
        all += (double)device->memory_bytes;
    g_autofree char *states = units_format(run->floor.held_bytes, QUANTITY_BYTES),
                    *memory = units_format(all, QUANTITY_BYTES);
    kilter_fail(
        &task->error, KILTER_ERROR_INFEASIBLE,
        "does not fit: its states take %s, with its backward pass more, and all devices "
        "have %s; train=lora:16 of the model or offload=optimizer take less",
        states, memory);
}

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
        refuse_floor(run, task);
        return;
    }
    const AnswerLimits limits = {.upper_s = task->upper_s,
                                 .unbounded = true,
                                 .brief = run->options->target == TARGET_ANY,
                                 .beaten = &task->attempt->beaten};
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

/* Whether a planner of one program for all devices made a plan in this time. */
static bool try_has_rival(const PortfolioChoice *choice, double most_s)
{
    bool has = false;
    array_each (const PortfolioTry, t, choice->tries)
        has |= t->iteration_s < most_s && !planner_can(t->planner, PLANNER_GROUPS);
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
    pointers_each (const PortfolioChoice, other, choices) {
        for (uint32_t t = 0; !other->only && t < other->tries->len; t++) {
            const PortfolioTry *whole = &g_array_index(other->tries, PortfolioTry, t);
            covered |= whole->planner == task->attempt->planner &&
                       isfinite(whole->iteration_s) && !own->network &&
                       memcmp(own->collective, other->cluster->collective,
                              sizeof own->collective) == 0;
        }
    }
    return covered && run->how->prune && task->phase <= FIRST && task->choice->only;
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
    enum {
        FEW_OPS = 200
    }; /* on which devices that take turns are searched in a moment */
    const double far = try_far(run);
    const PortfolioTry *plain = try_plain(task);
    const bool all = try_effort(run) == EFFORT_LONG;
    if (!all && try_is_covered(run, task))
        return false;
    const bool quick =
        planner_can(plain->planner, PLANNER_TURNS) && graph_n_ops(run->graph) <= FEW_OPS;
    if (!all && task->phase >= LONG && task->choice->report &&
        (task->phase > LONG ||
         !(quick || try_has_rival(task->choice, far * run->best_s))))
        return false;
    if (plain == task->attempt || task->phase == EARLY)
        return true;
    if (plain->reason && !plain->misfit && !plain->left_out)
        return run->options->target != TARGET_ANY;
    const TechniqueWhen when = technique_when(task->attempt->set);
    if (plain->misfit && (all || !plain->beaten))
        return when != TECHNIQUE_REFUSED;
    return when <= TECHNIQUE_NEAR &&
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
    pointers_each (const PortfolioChoice, other, choices) {
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
static void prepare_task(const PortfolioRun *run, Task *task)
{
    const SimReport *report = task->choice->report;
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
    else if (!run->how->all &&
             task->phase > (run->hasty && run->has.attention ? EARLY : FIRST) &&
             !is_among_best(run, task->choice))
        task->attempt->reason = g_strdup("not tried: other machines are faster");
    else if (run->hasty && task->phase > FIRST && isfinite(run->best_s))
        task->attempt->reason =
            g_strdup("not tried: a first plan is known; --effort normal tries more");
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

/* Makes the task's plan the choice's plan, with everything that belongs to it, and the other way. */
static void keep(Task *task)
{
    PortfolioChoice *choice = task->choice;
    const Task old = *task;
    task->attempt = (PortfolioTry *)choice->best;
    task->view = choice->view, choice->view = old.view;
    task->graph = choice->graph, choice->graph = old.graph;
    task->plan = choice->plan, choice->plan = old.plan;
    task->report = choice->report, choice->report = old.report;
    task->flow_s = choice->flow_s, choice->flow_s = old.flow_s;
    choice->best = old.attempt;
}

static ORDER_POINTERS(by_own_time, Task, ASCENDING(report->iteration_time_s));

/* Keeps the task's plan, which is not its choice's own, if it is among the fastest of these, the
 * fastest of each planner and kind of replicas on the choice: by flow, which sees what exchanges hide
 * behind, it may be faster than the choice's own. */
static void remember(PortfolioRun *run, Task *task)
{
    GPtrArray *others = run->others;
    if (!run->how->flow || !task->plan || !task->report->feasible ||
        program_whole_n(task->plan->program) > MOST_INSTRUCTIONS)
        return;
    for (uint32_t i = others->len; i-- > 0;) {
        const Task *other = g_ptr_array_index(others, i);
        const int order = by_own_time(&other, &task);
        if (other->choice != task->choice ||
            ((other->attempt->planner != task->attempt->planner ||
              other->options.strategy.zero != task->options.strategy.zero) &&
             order != 0))
            continue;
        if (order <= 0)
            return;
        g_ptr_array_remove_index(others, i);
    }
    g_ptr_array_add(others, g_memdup2(task, sizeof *task));
    task->view = NULL, task->graph = NULL, task->plan = NULL, task->report = NULL;
    g_ptr_array_sort(others, by_own_time);
    g_ptr_array_set_size(others, (gint)MIN(others->len, MOST_FLOWS));
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
        if (!task->choice->report ||
            attempt->iteration_s < task->choice->report->iteration_time_s)
            keep(task);
        remember(run, task);
    }
    task_clear(task);
}

/* --- neighbours of the fastest strategy --- */

/* The task that plans a neighbour, if it is faster than `upper_s`. */
static Task *neighbour_task(const PortfolioRun *run, PortfolioChoice *choice,
                            PortfolioTry *attempt, const Strategy *strategy,
                            double upper_s)
{
    Task task = {.choice = choice,
                 .attempt = attempt,
                 .upper_s = upper_s,
                 .options = *run->options};
    task.options.strategy = *strategy;
    return g_memdup2(&task, sizeof task);
}

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
    parallel_each(task->len, run->how->threads, run_one, &tasks, NULL);
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
        keep(task);
    if (task->attempt != own) /* a neighbour's words may be replaced */
        remember(run, task);
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
    for (uint32_t row = 0, n = 1; n > 0 && most > 0; most -= n) {
        g_autoptr(GPtrArray) task =
            g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
        PortfolioTry attempt[ROUND];
        for (n = 0; n < MIN(ROUND, most) &&
                    neighbour_next(&at, run->options, run->has, &row, &next);) {
            const char *words = neighbour_words(&next);
            if (!g_hash_table_add(seen, (gpointer)words))
                continue;
            attempt[n] = (PortfolioTry){.planner = own->planner,
                                        .granularity = GRANULARITY_GPU,
                                        .set = words,
                                        .iteration_s = INFINITY};
            g_ptr_array_add(task,
                            neighbour_task(run, choice, &attempt[n++], &next, misery));
        }
        Task *best = neighbours_run(run, task, misery);
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
 * about 1 us for each op and microbatch; few are of no use. */
static uint32_t neighbours_most(const PortfolioRun *run, const Strategy *start)
{
    enum { LEAST = 8, MOST = 100 };
    static const double work[] = {0, 5e6, 25e6}; /* ops times microbatches, by effort */
    const uint32_t size = start->dp * MAX(start->micro_batch, 1),
                   n = start->micro_batch ? graph_batch(run->graph) / size
                                          : start->microbatches;
    const double most = work[try_effort(run)] / graph_n_ops(run->graph) / MAX(n, 1);
    return most < LEAST ? 0 : (uint32_t)fmin(most, MOST);
}

/* Climbs on the choices that get every planner, but not for a first answer. */
static void portfolio_improve(PortfolioRun *run)
{
    const GPtrArray *choices = run->portfolio->choices;
    g_autoptr(GPtrArray) climbs = g_ptr_array_new();
    if (!run->has.attention && !run->has.experts)
        return;
    pointers_each (PortfolioChoice, choice, choices)
        if (isfinite(choice->start_s) && is_among_best(run, choice))
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

/* Runs the tries of all choices, on all processors. Quick planners whose plans are seldom beaten
 * come first, so that later tries can be left out by their bounds. A choice keeps its fastest plan.
 * The plans are the same however many processors there are. */
static void portfolio_run(PortfolioRun *run)
{
    g_autoptr(GPtrArray) task = list_tasks(run);
    Tasks tasks = {.run = run, .task = task};
    g_mutex_init(&tasks.lock);
    for (uint32_t first = 0, n = 0; first < task->len; first += n) {
        n = MIN(first > 0 ? ROUND : FIRST_ROUND, task->len - first);
        tasks.first = first;
        for (uint32_t i = 0; i < n; i++)
            prepare_task(run, g_ptr_array_index(task, first + i));
        parallel_each(n, run->how->threads, run_one, &tasks, NULL);
        for (uint32_t i = 0; i < n; i++)
            take(run, g_ptr_array_index(task, first + i));
    }
    g_mutex_clear(&tasks.lock);
    portfolio_improve(run);
    pointers_each (PortfolioChoice, choice, run->portfolio->choices) {
        /* no planner was tried: no plan on its machines is faster than the best one */
        choice->skipped =
            run->how->prune && !choice->report && choice->bound_s >= run->best_s;
    }
}

enum {
    MOST_TYPES =
        6, /* all sets of up to this many device types; with more, sets of the fastest ones */
    MOST_CHOICES = 64, /* most choices of numbers of machines */
    MOST_DEVICES =
        1024, /* most single GPUs on which planners of one program for all devices are tried */
};

/* --- choices of machines --- */

static FREE_DEFINE(
    choice_free, PortfolioChoice, choice,
    free_column((PortfolioTry *)(void *)choice->tries->data, choice->tries->len, reason),
    g_array_unref(choice->tries), free_each(choice->machines, choice->only),
    sim_report_free(choice->report), plan_free(choice->plan), graph_free(choice->graph),
    cluster_view_free(choice->view), cluster_free(choice->cluster));

FREE_DEFINE(portfolio_free, Portfolio, portfolio, g_free(portfolio->model),
            g_ptr_array_unref(portfolio->choices), g_ptr_array_unref(portfolio->notes));

/* Adds the choice of the GPUs in `keep`, which `only` names; both NULL: all of them. Takes
 * `only` over. Adds nothing if the network cannot be built from these machines. */
static void add_choice(Portfolio *portfolio, const Cluster *cluster, const bool *keep,
                       char *only)
{
    g_autoptr(Cluster) part = cluster_copy(cluster, NULL);
    g_autofree char *owned = only;
    g_assert(part); /* it was written by the cluster itself */
    if (keep && !cluster_keep_gpus(part, keep, NULL))
        return;
    PortfolioChoice *choice = g_new0(PortfolioChoice, 1);
    choice->tries = g_array_new(FALSE, TRUE, sizeof(PortfolioTry));
    choice->only = g_steal_pointer(&owned);
    choice->machines = cluster_kinds_text(part);
    choice->gpus = cluster_gpus(part);
    choice->start_s = INFINITY;
    choice->cluster = g_steal_pointer(&part);
    g_ptr_array_add(portfolio->choices, choice);
}

static char *types_of(const Cluster *cluster, uint32_t set)
{
    g_autoptr(GString) names = g_string_new("");
    for (uint32_t t = 0; t < cluster->n_types; t++)
        if (set & 1u << t)
            g_string_append_printf(names, "%s%s", names->len ? "," : "",
                                   cluster->type[t].name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

/* All sets of device types but the empty and the full set. */
static void add_types(Portfolio *portfolio, const Cluster *cluster)
{
    const uint32_t n = MIN(cluster->n_types, MOST_TYPES);
    const uint32_t end = (1u << n) - (n == cluster->n_types);
    g_autofree bool *keep = g_new(bool, cluster_gpus(cluster));
    for (uint32_t set = 1; set < end; set++) {
        for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++)
            for (uint32_t g = 0; g < cluster->machine[i].gpus; g++) {
                const uint32_t type = machine_type_at(&cluster->machine[i], g);
                keep[gpu++] = type < n && set & 1u << type;
            }
        add_choice(portfolio, cluster, keep, types_of(cluster, set));
    }
}

/* Adds the choice of some machines, as keep[machine] says. */
static void add_kept(Portfolio *portfolio, const Cluster *cluster, const bool *keep)
{
    g_autofree bool *gpus = g_new(bool, cluster_gpus(cluster));
    GString *only = g_string_new("");
    for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++) {
        for (uint32_t g = 0; g < cluster->machine[i].gpus; g++)
            gpus[gpu++] = keep[i];
        if (keep[i])
            g_string_append_printf(only, "%s%s", only->len ? "," : "",
                                   cluster->machine[i].name);
    }
    add_choice(portfolio, cluster, gpus, g_string_free(only, FALSE));
}

/* Of each type that has several machines the first one; numbers: also half of them, a quarter, and
 * so on. */
static void add_machines(Portfolio *portfolio, const Cluster *cluster, bool numbers)
{
    g_autofree bool *keep = g_new(bool, cluster->n_machines);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            n += cluster->machine[i].type == t;
        for (uint32_t most = numbers ? n / 2 : MIN(n / 2, 1); most > 0; most /= 2) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < cluster->n_machines; i++) {
                keep[i] = cluster->machine[i].type == t && kept < most;
                kept += keep[i];
            }
            add_kept(portfolio, cluster, keep);
        }
    }
}

/* Numbers of machines of each kind: planning sees no difference between machines of a kind. */
static void add_counts(Portfolio *portfolio, const Cluster *cluster,
                       const DeviceKinds *kinds, const uint32_t *count)
{
    g_autofree bool *keep = g_new0(bool, cluster->n_machines);
    g_autofree uint32_t *left = g_memdup2(count, kinds->n * sizeof *count);
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        keep[i] = left[kinds->of[i]] > 0;
        left[kinds->of[i]] -= keep[i];
    }
    add_kept(portfolio, cluster, keep);
}

/* Adds every combination of numbers of machines of each kind, except none and all, if there are not
 * too many. */
static bool add_some(Portfolio *portfolio, const Cluster *cluster)
{
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(view, UINT32_MAX, &kinds);
    const uint32_t *most = kinds.count;
    g_autofree uint32_t *count = g_new0(uint32_t, kinds.n);
    uint64_t n = 1;
    for (uint32_t k = 0; k < kinds.n && n <= MOST_CHOICES; k++)
        n *= most[k] + 1;
    if (n > MOST_CHOICES)
        return false;
    for (uint64_t c = 1; c + 1 < n; c++) {
        uint64_t rest = c;
        for (uint32_t k = 0; k < kinds.n; k++) {
            count[k] = (uint32_t)(rest % (most[k] + 1));
            rest /= most[k] + 1;
        }
        add_counts(portfolio, cluster, &kinds, count);
    }
    return true;
}

/* --- tries --- */

static bool is_tried(const Planner *planner, Granularity granularity,
                     const Cluster *cluster)
{
    const bool gpus = granularity == GRANULARITY_GPU;
    bool same = true; /* a machine is a GPU */
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        same &= cluster->machine[i].gpus == 1;
    if (!planner_can(planner, PLANNER_TRIED))
        return false;
    if (planner_can(planner, PLANNER_GPUS))
        return gpus;
    if (cluster_mixed(cluster))
        return gpus && cluster_gpus(cluster) <= MOST_DEVICES;
    return !gpus || (!same && cluster_gpus(cluster) <= MOST_DEVICES);
}

/* Each planner as it is, then with each set of techniques. */
static void list_tries(const PortfolioRun *run, PortfolioChoice *choice)
{
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    for (uint32_t p = 0; p < n; p++)
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            PortfolioTry attempt = {.planner = &maker[p],
                                    .granularity = g,
                                    .set = "",
                                    .iteration_s = INFINITY};
            /* frameworks run strategies of single GPUs, DDP also replicas of any shares */
            if (!is_tried(attempt.planner, g, choice->cluster) ||
                (run->options->target != TARGET_ANY &&
                 !planner_can(attempt.planner, PLANNER_GPUS) &&
                 (run->options->target != TARGET_DDP ||
                  !planner_can(attempt.planner, PLANNER_ZERO))))
                continue;
            for (uint32_t row = 0; attempt.set;) {
                g_array_append_val(choice->tries, attempt);
                attempt.set =
                    technique_next(attempt.planner, run->has, run->options, &row);
            }
        }
    const PortfolioTry neighbours = {
        .planner = planner_find("manual", NULL),
        .granularity = GRANULARITY_GPU,
        .set = "",
        .iteration_s = INFINITY,
        .reason = g_strdup("not tried: no neighbour of the fastest strategy is faster"),
        .left_out = true};
    g_array_append_val(choice->tries, neighbours);
}

/* --- the whole --- */

/* Orders choices by their bounds; the whole cluster comes first where no bound is known. */
static ORDER_POINTERS(by_bound, PortfolioChoice, ASCENDING(bound_s));

static gint by_time(gconstpointer a, gconstpointer b)
{
    const PortfolioChoice *x = *(PortfolioChoice *const *)a;
    const PortfolioChoice *y = *(PortfolioChoice *const *)b;
    const double s = x->report ? x->report->iteration_time_s : INFINITY;
    const double t = y->report ? y->report->iteration_time_s : INFINITY;
    if (s != t)
        return (s > t) - (s < t);
    return x->gpus != y->gpus && isfinite(s) ? (x->gpus > y->gpus) - (x->gpus < y->gpus)
                                             : by_bound(a, b);
}

static void list_choices(Portfolio *portfolio, const Cluster *cluster,
                         const PortfolioOptions *how)
{
    add_choice(portfolio, cluster, NULL, NULL);
    if (how->some && add_some(portfolio, cluster))
        return;
    add_types(portfolio, cluster);
    add_machines(portfolio, cluster, how->numbers);
}

/* Says how long the tries may take, and with how much memory, by the most that an op took in each
 * try: 20 questions of 170 to 25,000 ops took 6 to 46 us where all choices are wanted, .3 to 6
 * where bounds leave most of them out, and up to 29 where whole programs do not fit; .3 where the
 * first answer of a long program is wanted. */
static void portfolio_say(const PortfolioRun *run)
{
    const double all_s = 40e-6, some_s = 6e-6, crowded_s = 30e-6, hasty_s = 0.5e-6;
    const double all_bytes = 600e3, some_bytes = 250e3; /* for each op */
    const GPtrArray *choices = run->portfolio->choices;
    const PortfolioChoice *whole = g_ptr_array_index(choices, 0);
    g_autoptr(ClusterView) view = cluster_view(whole->cluster, GRANULARITY_MACHINE);
    const uint32_t ops = graph_n_ops(run->graph);
    uint32_t n_tries = 0;
    for (uint32_t c = 0; c < choices->len; c++)
        n_tries += ((const PortfolioChoice *)g_ptr_array_index(choices, c))->tries->len;
    const double each_s = !run->how->some                            ? all_s
                          : try_is_hasty(run)                        ? hasty_s
                          : sim_memory_floor_fits(&run->floor, view) ? some_s
                                                                     : crowded_s;
    g_autofree char *what =
        g_strdup_printf("%u tries of planners on %u ops", n_tries, ops);
    planner_say(what, each_s * n_tries * ops,
                (run->how->some ? some_bytes : all_bytes) * ops);
}

/* Says so where a large model is trained in float32, as it is by default: 16 bits are usual. */
static void note_precision(const PortfolioRun *run)
{
    const uint64_t large = 1000000000;
    if (graph_precision(run->graph) == PRECISION_SINGLE &&
        graph_facts(run->graph).parameters >= large)
        g_ptr_array_add(
            run->portfolio->notes,
            g_strdup("trained in float32; most models of this size are trained "
                     "with precision=bf16"));
}

static bool prepare(PortfolioRun *run, const char *model, const Cluster *cluster,
                    GError **error)
{
    Portfolio *portfolio = run->portfolio;
    run->graph = model_build(model, cluster_gpus(cluster), &portfolio->model, error);
    if (!run->graph)
        return false;
    note_precision(run);
    run->floor = sim_memory_floor(run->graph);
    run->has = technique_needs(run->graph);
    run->has.hosts = technique_has_hosts(cluster);
    list_choices(portfolio, cluster, run->how);
    for (uint32_t i = 0; i < portfolio->choices->len; i++)
        list_tries(run, g_ptr_array_index(portfolio->choices, i));
    portfolio_say(run);
    pointers_each (PortfolioChoice, choice, portfolio->choices) {
        choice->bound_s = least_bound(run, choice);
        if (!choice->only)
            portfolio->bound_s = choice->bound_s;
    }
    g_ptr_array_sort(portfolio->choices, by_bound);
    return true;
}

/* --- the order by flow --- */

/* Seconds of the plan by flow, with the prices of ops that were asked for; INFINITY: not to be
 * had. */
static double portfolio_flow_s(const PortfolioRun *run, const Plan *plan,
                               const Graph *graph, const ClusterView *view)
{
    SimOptions options;
    sim_options_init(&options);
    options.costs = run->options->sim.costs;
    options.time_only = true;
    if (program_whole_n(plan->program) > MOST_INSTRUCTIONS)
        return INFINITY;
    Plan whole = *plan;
    whole.program = program_copy(plan->program);
    if (whole.program->left_out > 0)
        program_whole(&whole.program);
    g_autoptr(SimReport) report = sim_evaluate_with(
        &whole, graph, view, fidelity_name(FIDELITY_FLOW), &options, NULL);
    program_free(whole.program);
    return report ? report->iteration_time_s : INFINITY;
}

static ORDER_POINTERS(portfolio_by_flow, PortfolioChoice, ASCENDING(flow_s));

/* The choice's plan, with its times. Caller frees. */
static char *portfolio_flow_words(const PortfolioChoice *choice)
{
    g_autofree char *flow = units_format(choice->flow_s, QUANTITY_TIME),
                    *own = units_format(choice->report->iteration_time_s, QUANTITY_TIME);
    return g_strdup_printf("%s on %s takes %s (%s by %s)", choice->best->planner->name,
                           choice->machines, flow, own, choice->report->fidelity);
}

/* The times by flow of the first choices' plans and of the other plans on them, of those that are
 * at most `most_s` by the planners' fidelity; returns the least. */
static double portfolio_flows(PortfolioRun *run, PortfolioChoice **choice, double most_s)
{
    double least_s = INFINITY;
    for (uint32_t i = 0; i < MIN(run->portfolio->choices->len, MOST_FLOWS); i++) {
        PortfolioChoice *c = choice[i];
        if (!c->report || c->report->iteration_time_s > most_s)
            break;
        c->flow_s = portfolio_flow_s(run, c->plan, c->graph, c->view);
        least_s = fmin(least_s, c->flow_s);
    }
    pointers_each (Task, t, run->others) {
        const bool near = t->choice->flow_s > 0 && t->report->iteration_time_s <= most_s;
        t->flow_s = near ? portfolio_flow_s(run, t->plan, t->graph, t->view) : INFINITY;
        least_s = fmin(least_s, t->flow_s);
    }
    return least_s;
}

/* Puts the fastest plans in order by flow, if one is then clearly faster than the one that was
 * first, of which the time must be known. */
static void portfolio_rank_by_flow(PortfolioRun *run)
{
    static const double near = 1.5, clearly = 0.99;
    PortfolioChoice **choice = (PortfolioChoice **)(void *)run->portfolio->choices->pdata;
    PortfolioChoice *const first = choice[0];
    const double most_s = near * first->report->iteration_time_s,
                 least_s = portfolio_flows(run, choice, most_s);
    if (!isfinite(first->flow_s) || least_s >= clearly * first->flow_s)
        return;
    g_autofree char *before = portfolio_flow_words(first);
    pointers_each (Task, t, run->others) {
        if (t->flow_s < clearly * t->choice->flow_s)
            keep(t);
    }
    uint32_t n = 0;
    while (n < run->portfolio->choices->len && choice[n]->flow_s > 0)
        n++;
    qsort(choice, n, sizeof *choice, portfolio_by_flow);
    g_autofree char *now = portfolio_flow_words(choice[0]);
    g_ptr_array_add(run->portfolio->notes,
                    g_strdup_printf("ranks change by flow, in which messages share links "
                                    "and hide behind computations: %s, %s",
                                    now, before));
}

/* The gain of the neighbour that is the choice's plan, in words. Caller frees. */
static char *neighbours_words(const PortfolioChoice *choice)
{
    const double part = choice->best->iteration_s / choice->start_s;
    return isfinite(choice->start_s)
               ? g_strdup_printf("%s: a neighbour of the fastest strategy that a planner "
                                 "found, %.1f %%",
                                 choice->best->set, 100 * (part - 1))
               : g_strdup_printf("%s: no strategy that the planners search fits",
                                 choice->best->set);
}

/* Says what was searched, and what techniques bring. */
static void portfolio_add_notes(Portfolio *portfolio)
{
    uint32_t plans = 0, tries = 0;
    pointers_each (const PortfolioChoice, choice, portfolio->choices) {
        array_each (const PortfolioTry, t, choice->tries) {
            plans += isfinite(t->iteration_s);
            tries += !t->left_out;
        }
    }
    g_ptr_array_insert(
        portfolio->notes, 0,
        g_strdup_printf(
            "%u searches by planners and techniques on %u choices of machines "
            "gave %u plans",
            tries, portfolio->choices->len, plans));
    const PortfolioChoice *first = g_ptr_array_index(portfolio->choices, 0);
    char *words = planner_can(first->best->planner, PLANNER_TRIED)
                      ? technique_words(first)
                      : neighbours_words(first);
    if (words)
        g_ptr_array_add(portfolio->notes, words);
}

Portfolio *portfolio_new(const char *model, const Cluster *cluster,
                         const PlannerOptions *options, const PortfolioOptions *how,
                         GError **error)
{
    const gint64 start = g_get_monotonic_time();
    g_autoptr(Portfolio) portfolio = g_new0(Portfolio, 1);
    portfolio->choices = g_ptr_array_new_with_free_func((GDestroyNotify)choice_free);
    portfolio->notes = g_ptr_array_new_with_free_func(g_free);
    const double known_s = how->known_s > 0 ? how->known_s : INFINITY;
    g_autoptr(GPtrArray) others =
        g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
    PortfolioRun run = {.portfolio = portfolio,
                        .how = how,
                        .options = options,
                        .best_s = known_s,
                        .others = others};
    if (options->budget_s > 0)
        run.deadline_us = start + (gint64)(options->budget_s * G_USEC_PER_SEC);
    const bool prepared = prepare(&run, model, cluster, error);
    run.hasty = prepared && try_is_hasty(&run);
    if (prepared)
        portfolio_run(&run);
    graph_free(run.graph);
    if (!prepared)
        return NULL;
    g_ptr_array_sort(portfolio->choices, by_time);
    if (!((PortfolioChoice *)g_ptr_array_index(portfolio->choices, 0))->report) {
        g_propagate_error(error, run.failure);
        return NULL;
    }
    g_clear_error(&run.failure);
    if (how->flow)
        portfolio_rank_by_flow(&run);
    for (uint32_t i = 0; i < (how->prune ? 1 : portfolio->choices->len); i++) {
        PortfolioChoice *c = g_ptr_array_index(portfolio->choices, i);
        if (c->report)
            plan_make_whole(c->plan, &c->report, options, c->graph, c->view);
    }
    portfolio_add_notes(portfolio);
    portfolio->elapsed_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return g_steal_pointer(&portfolio);
}

Plan *portfolio_take(Portfolio *portfolio, ClusterView **view, SimReport **report)
{
    PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, 0);
    g_assert(choice->plan);
    cluster_view_own(choice->view, g_steal_pointer(&choice->cluster));
    *view = g_steal_pointer(&choice->view);
    *report = g_steal_pointer(&choice->report);
    return g_steal_pointer(&choice->plan);
}
