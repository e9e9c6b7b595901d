/* The planner joint: pipelines of unlike stages (synth/joint/joint.h).
 *
 * For every number of microbatches and every schedule, the search finds the best pipelines by a
 * formula, which is up to a fifth below the time of the schedule. Each pipeline is then walked step
 * by step, under its own schedule and under the others for which its stages have the memory. The
 * fastest few are made into programs and evaluated, as long as the walk leaves room for a faster
 * one. Where memory is short, stages are planned with only a part of it. The bound is that of the
 * formula without communication, memory and waits. */
#include <math.h>
#include <string.h>

#include "experiments/planners/complete.h"
#include "experiments/planners/make.h"

enum {
    TRIALS = 3,       /* programs that are evaluated */
    MOST_TRIALS = 12, /* most programs evaluated until one fits */
    BEAM = 4,
    LABELS = 3000000,      /* most labels of a search */
    LABELS_LARGE = 100000, /* most labels of a search for a bound on thousands of GPUs */
};

/* The schedules, with the chunks of each group. */
static const JointWay WAY[] = {
    {.schedule = SCHEDULE_GPIPE, .chunks = 1},
    {.schedule = SCHEDULE_1F1B, .chunks = 1},
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 1},
    {.schedule = SCHEDULE_ZB_H1, .chunks = 1},
    {.schedule = SCHEDULE_ZB_H2, .chunks = 1},
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 2},
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 4},
};

/* Whether the search needs to know the number of stages. */
static bool is_counted(const JointWay *way)
{
    return schedule_splits(way->schedule) || way->chunks > 1;
}

/* A search among the pipelines of a problem. */
typedef struct {
    uint32_t problem, number;
    JointWay way;
    double least_s;    /* no pipeline of the problem is faster */
    double walk_s;     /* of the best pipeline found; INFINITY: none */
    uint32_t n_stages; /* that this pipeline has */
} Run;

/* Runs are repeated, or others made of them, if their best pipeline takes less than so many times
 * the time of the best one. */
static const double NEAR = 1.1, FAR = 1.5;

/* A pipeline and its problem. */
typedef struct {
    JointPipeline pipeline;
    uint32_t problem;
    double walk_s;
} Found;

typedef struct {
    const Planning *planning;
    Plan *plan;
    JointMenu *menu;
    GPtrArray *problems; /* JointProblem */
    GArray *found;       /* Found, cheapest first */
    double upper_s;      /* the cheapest so far */
} Joint;

static void clear_found(void *data)
{
    synth_joint_pipeline_clear(&((Found *)data)->pipeline);
}

static gint by_walk(gconstpointer a, gconstpointer b)
{
    const Found *x = a, *y = b;
    if (x->walk_s != y->walk_s)
        return x->walk_s < y->walk_s ? -1 : 1;
    if (x->pipeline.schedule != y->pipeline.schedule)
        return x->pipeline.schedule < y->pipeline.schedule ? -1 : 1;
    if (x->pipeline.chunks != y->pipeline.chunks)
        return x->pipeline.chunks < y->pipeline.chunks ? -1 : 1;
    return (x->problem > y->problem) - (x->problem < y->problem);
}

/* Whether each stage has a layer for each chunk, and the schedule suits the numbers. */
static bool can_run(const JointProblem *problem, const JointPipeline *pipeline)
{
    bool possible =
        pipeline->chunks == 1 || problem->n_microbatches % pipeline->n_stages == 0;
    for (uint32_t i = 0; i < pipeline->n_stages; i++) {
        const uint32_t end =
            i + 1 < pipeline->n_stages ? pipeline->stage[i + 1].first : problem->n_layers;
        possible &= end - pipeline->stage[i].first >= pipeline->chunks;
    }
    return possible && synth_joint_fits(problem, pipeline);
}

/* Walks the pipeline under its own schedule and under the others for which its stages have the
 * memory. */
static void find(Joint *j, Run *run, const JointPipeline *pipeline)
{
    const JointProblem *problem = j->problems->pdata[run->problem];
    for (uint32_t w = 0; w < G_N_ELEMENTS(WAY); w++) {
        Found found = {*pipeline, run->problem, 0};
        const bool own =
            WAY[w].schedule == pipeline->schedule && WAY[w].chunks == pipeline->chunks;
        found.pipeline.schedule = WAY[w].schedule;
        found.pipeline.chunks = WAY[w].chunks;
        if (!own && (pipeline->n_stages == 1 || !can_run(problem, &found.pipeline)))
            continue;
        found.pipeline.stage =
            g_memdup2(pipeline->stage, pipeline->n_stages * sizeof *pipeline->stage);
        found.walk_s = synth_joint_walk_s(j->menu, problem, &found.pipeline);
        j->upper_s = fmin(j->upper_s, found.walk_s);
        g_array_append_val(j->found, found);
        if (found.walk_s < run->walk_s) {
            run->walk_s = found.walk_s;
            run->n_stages = pipeline->n_stages;
        }
    }
}

/* Whether a search with several labels per state takes long, as on thousands of GPUs. */
static bool is_large(const JointProblem *p)
{
    static const double large = 3e6;
    double extensions = (double)p->n_layers * p->n_groups;
    for (uint32_t k = 0; k < p->n_kinds; k++)
        extensions *= p->units[k] + 1;
    return extensions > large;
}

/* Finds the best pipelines of a run. */
static void search(Joint *j, Run *run, uint32_t beam, uint32_t n_best)
{
    g_auto(JointResult) result = {0};
    const JointOptions options = {.way = run->way,
                                  .n_best = n_best,
                                  .beam = beam,
                                  .upper_s = j->upper_s,
                                  .most_labels = LABELS,
                                  .deadline_us = j->planning->deadline_us};
    if (run->least_s >= options.upper_s)
        return;
    synth_joint_solve(j->problems->pdata[run->problem], &options, &result);
    for (uint32_t i = 0; i < result.best->len; i++)
        find(j, run, &g_array_index(result.best, JointPipeline, i));
}

/* Makes a problem for every number of microbatches that divides the batch, or for the requested
 * one. */
static void make_problems(Joint *j, double headroom)
{
    const Strategy *asked = &j->planning->options->strategy;
    const uint32_t batch = graph_batch(j->planning->graph);
    g_ptr_array_set_size(j->problems, 0);
    for (uint32_t m = batch; m > 0; m--) {
        if (batch % m != 0 || m >= PROGRAM_WHOLE ||
            (asked->microbatches > 1 && m != asked->microbatches))
            continue;
        JointProblem *problem = synth_joint_problem(j->menu, m, headroom, true);
        if (problem)
            g_ptr_array_add(j->problems, problem);
    }
}

/* --- runs of the search --- */

static gint by_least(gconstpointer a, gconstpointer b)
{
    const Run *x = a, *y = b;
    if (x->least_s != y->least_s)
        return x->least_s < y->least_s ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void add_run(GArray *runs, uint32_t problem, double least_s, const JointWay *way)
{
    const Run run = {.problem = problem,
                     .number = runs->len,
                     .way = *way,
                     .least_s = least_s,
                     .walk_s = INFINITY};
    g_array_append_val(runs, run);
}

/* The runs that need no number of stages, those with the most promising numbers of microbatches
 * first. */
static GArray *list_plain(const Joint *j)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t i = 0; i < j->problems->len; i++) {
        const JointProblem *p = j->problems->pdata[i];
        const double least_s = synth_joint_density_s(p);
        for (uint32_t w = 0; w < G_N_ELEMENTS(WAY); w++)
            if (!is_counted(&WAY[w]) &&
                (!is_large(p) || WAY[w].schedule != SCHEDULE_GPIPE))
                add_run(runs, i, least_s, &WAY[w]);
    }
    g_array_sort(runs, by_least);
    return runs;
}

/* Adds the counted runs of a problem: of all numbers of stages, or of those near the number that
 * `plain`, a run of a large problem, found best. */
static void add_counted(const Joint *j, const Run *plain, GArray *runs)
{
    const JointProblem *p = j->problems->pdata[plain->problem];
    const uint32_t best = plain->n_stages;
    const bool large = is_large(p);
    uint32_t units = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++)
        units += p->units[k];
    for (uint32_t w = 0; w < G_N_ELEMENTS(WAY); w++) {
        JointWay way = WAY[w];
        const bool splits = schedule_splits(way.schedule);
        const uint32_t first = !large   ? 2
                               : splits ? best
                                        : (best + 1) / 2,
                       most = !large   ? units
                              : splits ? best
                                       : 2 * best,
                       last = MIN(MIN(most, units), p->n_layers / way.chunks);
        if (is_counted(&way))
            for (way.n_stages = MAX(first, 2); way.n_stages <= last; way.n_stages++)
                if (splits || p->n_microbatches % way.n_stages == 0)
                    add_run(runs, plain->problem, plain->least_s, &way);
    }
}

/* The counted runs of all problems with a pipeline that is not much slower than the best one. */
static GArray *list_counted(const Joint *j, const GArray *plain)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t i = 0; i < j->problems->len; i++) {
        const Run *best = NULL;
        for (uint32_t k = 0; k < plain->len; k++) {
            const Run *run = &g_array_index(plain, Run, k);
            if (run->problem == i && (!best || run->walk_s < best->walk_s))
                best = run;
        }
        if (best && best->walk_s < FAR * j->upper_s)
            add_counted(j, best, runs);
    }
    g_array_sort(runs, by_least);
    return runs;
}

/* Searches with one label per state first, which gives a time to beat, and then with more where
 * that is quick and promising. */
static void search_all(Joint *j, double headroom)
{
    g_array_set_size(j->found, 0);
    make_problems(j, headroom);
    g_autoptr(GArray) plain = list_plain(j), counted = NULL;
    const uint32_t n_best = j->planning->options->pipelines;
    for (uint32_t k = 0; k < plain->len; k++) {
        Run *run = &g_array_index(plain, Run, k);
        search(j, run, 1, is_large(j->problems->pdata[run->problem]) ? n_best : 1);
    }
    counted = list_counted(j, plain);
    for (uint32_t k = 0; k < counted->len; k++)
        search(j, &g_array_index(counted, Run, k), 1, 1);
    g_array_append_vals(plain, counted->data, counted->len);
    for (uint32_t k = 0; k < plain->len; k++) {
        Run *run = &g_array_index(plain, Run, k);
        if (!is_large(j->problems->pdata[run->problem]) &&
            (!is_counted(&run->way) || run->walk_s < NEAR * j->upper_s))
            search(j, run, BEAM, n_best);
    }
    g_array_sort(j->found, by_walk);
}

/* Puts a pipeline's program in the plan. */
static bool put(const Joint *j, uint32_t i, GError **error)
{
    const Planning *planning = j->planning;
    const Found *found = &g_array_index(j->found, Found, i);
    g_auto(JointProgram) made = {0};
    if (!synth_joint_program(j->menu, j->problems->pdata[found->problem],
                             &found->pipeline, &made, error))
        return false;
    plan_set(j->plan, planning->graph, planning->view, g_steal_pointer(&made.program),
             made.ratio);
    return plan_complete(j->plan, planning, error);
}

typedef struct {
    uint32_t found;
    double time_s;
    bool fits;
} Trial;

static bool is_better(const Trial *a, const Trial *b)
{
    return (a->fits && !b->fits) || (a->fits == b->fits && a->time_s < b->time_s);
}

/* Leaves the fastest program that fits in the plan. The walk is too slow by about the same factor
 * for all pipelines. */
static bool try_first(Joint *j, GError **error)
{
    Trial best = {.time_s = INFINITY}, last = best;
    double off = 1;
    const uint32_t n = j->found->len;
    for (uint32_t i = 0; i < n && (i < TRIALS || (!best.fits && i < MOST_TRIALS)); i++) {
        const Found *found = &g_array_index(j->found, Found, i);
        if (best.fits && off * found->walk_s >= best.time_s)
            break;
        if (!put(j, i, error))
            return false;
        last = (Trial){i, j->plan->iteration_time_s, j->plan->feasible};
        off = fmin(off, last.time_s / found->walk_s);
        if (is_better(&last, &best))
            best = last;
    }
    return n == 0 || best.found == last.found || put(j, best.found, error);
}

static bool search_and_try(Joint *j, GError **error)
{
    /* Parts of the memory to plan with, since the model of memory here is coarser than the final
     * check. */
    static const double headroom[] = {0.985, 0.9, 0.75, 0.5};
    for (uint32_t i = 0; i < G_N_ELEMENTS(headroom); i++) {
        j->upper_s = j->planning->upper_s;
        search_all(j, headroom[i]);
        if (!try_first(j, error))
            return false;
        if (j->found->len == 0 || j->plan->feasible)
            break;
    }
    return j->plan->program ||
           kilter_fail(
               error, KILTER_ERROR_INFEASIBLE,
               "no pipeline of stages on groups of these devices fits the memory");
}

/* The bound over every number of microbatches that the plan could have. */
static void bound(Joint *j)
{
    Plan *plan = j->plan;
    double bound_s = INFINITY;
    bool exact = true;
    if (j->planning->options->strategy.microbatches > 1)
        make_problems(j, 1);
    for (uint32_t i = 0; i < j->problems->len && exact; i++) {
        const JointProblem *problem = j->problems->pdata[i];
        g_auto(JointResult) result = {0};
        const JointOptions options = {.way = {.relaxed = true},
                                      .n_best = 1,
                                      .upper_s = fmin(bound_s, plan->iteration_time_s),
                                      .most_labels =
                                          is_large(problem) ? LABELS_LARGE : LABELS,
                                      .deadline_us = j->planning->deadline_us};
        synth_joint_solve(problem, &options, &result);
        exact = result.exact;
        bound_s = fmin(bound_s, result.best->len > 0
                                    ? g_array_index(result.best, JointPipeline, 0).cost_s
                                    : options.upper_s);
    }
    if (!exact) {
        bound_s = INFINITY;
        for (uint32_t i = 0; i < j->problems->len; i++)
            bound_s = fmin(bound_s, synth_joint_density_s(j->problems->pdata[i]));
    }
    plan->lower_bound_s = fmin(bound_s, plan->iteration_time_s);
    plan->bound_over = g_strdup(
        exact ? "pipelines of these stages, one or several per device, in any order and "
                "schedule, without communication"
              : "pipelines of these stages, by the computation per device");
}

/* Checks that the search can do what the options ask for. */
static bool check_options(const Planning *planning, GError **error)
{
    const Strategy *asked = &planning->options->strategy;
    const uint32_t batch = graph_batch(planning->graph);
    if (asked->recompute && strcmp(asked->recompute, "auto") != 0)
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "joint with option 'recompute': expected auto, since it chooses "
            "for each stage");
    return asked->microbatches <= 1 || batch % asked->microbatches == 0 ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "joint with option 'microbatches': expected a divisor of the "
                       "batch, %u, got %u",
                       batch, asked->microbatches);
}

bool plan_make_joint(const Planning *planning, Plan *plan, GError **error)
{
    if (!check_options(planning, error))
        return false;
    const gint64 start = g_get_monotonic_time();
    g_autoptr(JointMenu) menu =
        synth_joint_menu_new(planning->graph, planning->view, error);
    if (!menu)
        return false;
    g_autoptr(GPtrArray) problems =
        g_ptr_array_new_with_free_func((GDestroyNotify)synth_joint_problem_free);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(Found));
    g_array_set_clear_func(found, clear_found);
    Joint j = {planning, plan, menu, problems, found, INFINITY};
    if (!search_and_try(&j, error))
        return false;
    const gint64 searched = g_get_monotonic_time();
    plan->search_time_s = (double)(searched - start) / G_USEC_PER_SEC;
    if (!planning->unbounded)
        bound(&j);
    plan->certificate_time_s =
        (double)(g_get_monotonic_time() - searched) / G_USEC_PER_SEC;
    return true;
}
