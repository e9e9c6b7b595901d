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
    return (x->problem > y->problem) - (x->problem < y->problem);
}

/* Walks the pipeline under its own schedule and under the others for which its stages have the
 * memory. */
static void find(Joint *j, uint32_t number, const JointPipeline *pipeline)
{
    const JointProblem *problem = j->problems->pdata[number];
    for (SynthSchedule s = SCHEDULE_GPIPE; s <= SCHEDULE_INTERLEAVED; s++) {
        Found found = {*pipeline, number, 0};
        found.pipeline.schedule = s;
        if (s != pipeline->schedule &&
            (pipeline->n_stages == 1 || !synth_joint_fits(problem, &found.pipeline)))
            continue;
        found.pipeline.stage =
            g_memdup2(pipeline->stage, pipeline->n_stages * sizeof *pipeline->stage);
        found.walk_s = synth_joint_walk_s(j->menu, problem, &found.pipeline);
        j->upper_s = fmin(j->upper_s, found.walk_s);
        g_array_append_val(j->found, found);
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

/* Finds the best pipelines of a problem; searches with one label per state first, which gives a
 * time to beat. */
static void search(Joint *j, uint32_t number, SynthSchedule schedule, uint32_t beam)
{
    const bool last = beam > 1 || is_large(j->problems->pdata[number]);
    g_auto(JointResult) result = {0};
    const JointProblem *problem = j->problems->pdata[number];
    const JointOptions options = {.schedule = schedule,
                                  .n_best = last ? j->planning->options->pipelines : 1,
                                  .beam = beam,
                                  .upper_s = j->upper_s,
                                  .most_labels = LABELS,
                                  .deadline_us = j->planning->deadline_us};
    if (synth_joint_density_s(problem) >= options.upper_s)
        return;
    synth_joint_solve(problem, &options, &result);
    for (uint32_t i = 0; i < result.best->len; i++)
        find(j, number, &g_array_index(result.best, JointPipeline, i));
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

static void search_all(Joint *j, double headroom)
{
    g_array_set_size(j->found, 0);
    make_problems(j, headroom);
    for (uint32_t beam = 1; beam <= BEAM; beam += BEAM - 1)
        for (uint32_t i = 0; i < j->problems->len; i++)
            for (SynthSchedule s = SCHEDULE_GPIPE; s <= SCHEDULE_INTERLEAVED; s++)
                if (!is_large(j->problems->pdata[i]) ||
                    (beam == 1 && s != SCHEDULE_GPIPE))
                    search(j, i, s, beam);
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
        const JointOptions options = {.n_best = 1,
                                      .upper_s = fmin(bound_s, plan->iteration_time_s),
                                      .most_labels =
                                          is_large(problem) ? LABELS_LARGE : LABELS,
                                      .relaxed = true,
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
        exact ? "pipelines of these stages, one per device, in any order and schedule, "
                "without communication"
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
