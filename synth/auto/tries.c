/* One try: a planner on a choice of machines; what bounds and memory say of it before. */
#include "synth/auto/tries.h"

#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/base/units.h"
#include "data/plan/fidelity.h"
#include "synth/answer/complete.h"

/* Frees what the choice did not take over. */
CLEAR_DEFINE(task_clear, Task, task, let_go(task->report, sim_report_free),
             let_go(task->plan, plan_free), let_go(task->graph, graph_free),
             let_go(task->view, cluster_view_free), g_clear_error(&task->error));

FREE_DEFINE(task_free, Task, task, task_clear(task));

Task *task_by_hand(PortfolioChoice *choice, PortfolioTry *attempt, const char *set,
                   const PlannerOptions *options)
{
    *attempt = (PortfolioTry){.planner = planner_find("manual", NULL),
                              .granularity = GRANULARITY_GPU,
                              .set = set,
                              .iteration_s = INFINITY};
    const Task task = {
        .choice = choice, .attempt = attempt, .upper_s = INFINITY, .options = *options};
    return g_memdup2(&task, sizeof task);
}

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

/* The runtime that the try's plan is for; NULL: none. */
static const char *try_runtime(const PortfolioRun *run, const PortfolioChoice *choice,
                               const PortfolioTry *attempt)
{
    PlannerOptions options = *run->options;
    technique_apply(attempt->set, &options);
    return planner_runtime(attempt->planner, &options, choice->cluster);
}

/* No plan of any try is faster; 0: not known. Prices differ by runtime only. */
double portfolio_least_bound(const PortfolioRun *run, const PortfolioChoice *choice)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double least_s = INFINITY;
    array_each (const PortfolioTry, attempt, choice->tries) {
        const char *name = try_runtime(run, choice, attempt);
        if (!g_hash_table_add(seen, (gpointer)(name ? name : "")))
            continue;
        g_autoptr(ClusterView) view =
            planner_view(run->options, name, choice->cluster, attempt->granularity);
        least_s = fmin(least_s, view ? sim_compute_bound_s(run->graph, view) : 0);
    }
    return isfinite(least_s) ? least_s : 0;
}

Effort try_effort(const PortfolioRun *run)
{
    enum { QUICK_WORK = 1, NORMAL_WORK = 40 };
    const uint32_t work = run->options->work;
    return work == 0 || work > NORMAL_WORK ? EFFORT_LONG
           : work > QUICK_WORK             ? EFFORT_NORMAL
                                           : EFFORT_QUICK;
}

/* Whether the first plan is wanted soon, and programs may be long, which the planner that comes
 * first makes many of. Strategies come first then, and the rest only where nothing has a plan. */
bool try_is_hasty(const PortfolioRun *run)
{
    /* instructions: a second or two for that planner; of deep models, whose cuts are many, on
     * all choices of machines */
    enum { LONG_PROGRAM = 400000, LONG_PROGRAMS = 500000, DEEP = 40 };
    const uint64_t one = (uint64_t)graph_n_ops(run->graph) * graph_batch(run->graph);
    return try_effort(run) == EFFORT_QUICK &&
           (one > LONG_PROGRAM || (graph_n_layers(run->graph) > DEEP &&
                                   one * run->portfolio->choices->len > LONG_PROGRAMS));
}

bool try_is_among_many(const PortfolioRun *run)
{
    enum { MANY_GPUS = 256 };
    const uint32_t most = most_in(
        uint32_t, pointers_each (const PortfolioChoice, choice, run->portfolio->choices),
        0, choice->gpus);
    return most >= MANY_GPUS;
}

static uint32_t phase_of(const PortfolioRun *run, const PortfolioChoice *choice,
                         const PortfolioTry *attempt)
{
    const Planner *planner = attempt->planner;
    const bool plain = !*attempt->set, ordered = run->hasty || run->many;
    if (ordered && plain && planner_can(planner, PLANNER_FIRST))
        return run->hasty || choice->cluster->n_types == 1 ? LAST : COARSE;
    if (ordered && planner_can(planner, PLANNER_STRATEGY) &&
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

static ORDER_POINTERS(by_turn, Task, ASCENDING(phase), ASCENDING(choice->bound_s),
                      ASCENDING(number));

GPtrArray *portfolio_tasks(const PortfolioRun *run)
{
    GPtrArray *tasks = g_ptr_array_new_with_free_func((GDestroyNotify)task_free);
    const GPtrArray *choices = run->portfolio->choices;
    pointers_each (PortfolioChoice, choice, choices) {
        for (uint32_t t = 0; t < choice->tries->len - 1; t++) { /* the last: neighbours */
            Task *task = g_new0(Task, 1);
            task->choice = choice;
            task->attempt = &g_array_index(choice->tries, PortfolioTry, t);
            task->phase = phase_of(run, choice, task->attempt);
            task->options = *run->options;
            technique_apply(task->attempt->set, &task->options);
            if (task->options.strategy.pieces == 0) /* the neighbours have more */
                task->options.strategy.pieces = 1;
            task->number = tasks->len;
            g_ptr_array_add(tasks, task);
        }
    }
    g_ptr_array_sort(tasks, by_turn);
    return tasks;
}

/* --- one try --- */

char *portfolio_floor_words(const PortfolioRun *run, const Cluster *cluster)
{
    double all = 0;
    items_each (const Machine, machine, cluster->machine, cluster->n_machines)
        for (uint32_t g = 0; g < machine->gpus; g++)
            all += (double)cluster->type[machine_type_at(machine, g)].memory_bytes;
    g_autofree char *states = units_format(run->floor.held_bytes, QUANTITY_BYTES),
                    *memory = units_format(all, QUANTITY_BYTES);
    return g_strdup_printf(
        "its weights and optimizer states take %s, more with gradients and the backward "
        "pass, and all devices have %s; %s of the model, or offload=optimizer, takes "
        "less",
        states, memory, run->floor.adapts ? "weights=nf4" : "train=lora:16");
}

void portfolio_make(const PortfolioRun *run, Task *task)
{
    task->options.budget_s = answer_seconds_left(run->deadline_us); /* of all tries */
    task->view = cluster_view(task->choice->cluster, task->attempt->granularity);
    g_autoptr(Question) question =
        question_open_on(task->attempt->planner, run->portfolio->model, run->graph,
                         task->view, &task->options, &task->error);
    if (!question)
        return;
    if (cannot_fit(run, task)) {
        g_autofree char *words = portfolio_floor_words(run, task->choice->cluster);
        kilter_fail(&task->error, KILTER_ERROR_INFEASIBLE, "does not fit: %s", words);
        return;
    }
    const AnswerLimits limits = {.upper_s = task->upper_s,
                                 .enough_s = task->enough_s,
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

/* Seconds of the plan by flow, with the prices of ops that were asked for; INFINITY: not to be
 * had. */
double portfolio_flow_s(const PortfolioRun *run, const Plan *plan, const Graph *graph,
                        const ClusterView *view)
{
    SimOptions options;
    sim_options_init(&options);
    options.costs = run->options->sim.costs;
    options.time_only = true;
    if (program_whole_n(plan->program) > MOST_INSTRUCTIONS)
        return sim_flow_estimate_s(plan, graph, view, &options, MOST_INSTRUCTIONS);
    g_autoptr(SimReport) report = sim_evaluate_shortly(
        plan, graph, view, fidelity_name(FIDELITY_FLOW), &options, NULL);
    return report ? report->iteration_time_s : INFINITY;
}

void portfolio_make_flow(const PortfolioRun *run, Task *task)
{
    portfolio_make(run, task);
    task->flow_s = task->plan && task->report->feasible
                       ? portfolio_flow_s(run, task->plan, task->graph, task->view)
                       : INFINITY;
}

bool portfolio_try(void *context, uint32_t i, GError **error)
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
        portfolio_make(tasks->run, task);
    return true;
}
