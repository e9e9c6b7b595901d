/* The search of the planner joint (synth/joint/search.h). */
#include "synth/joint/search.h"
#include "data/base/order.h"
#include "synth/joint/menu.h"

#include <math.h>

enum {
    BEAM = 4,
    BEAM_ORDERS = 2, /* with coarse groups, where kinds have an order */
    FINE = 4, /* numbers of microbatches that are searched again after a coarse search */
    FIRST_ORDERS = 2, /* orders that are searched for every number of microbatches */
    MOST_ORDERS = 24, /* and for the best of these numbers */
    /* with more stages than these, their number is sought from the best one outwards, until so many
     * numbers one after another give nothing faster */
    MANY_STAGES = 16,
    MISSES = 3,
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
    /* and for a framework, which runs nothing with as little idle time */
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 3},
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 6},
    {.schedule = SCHEDULE_INTERLEAVED, .chunks = 8},
};
enum { WAYS_OF_ANY = 7 };

static uint32_t count_ways(const JointSearch *j)
{
    return j->target ? G_N_ELEMENTS(WAY) : WAYS_OF_ANY;
}

/* Whether the search needs to know the number of stages. */
static bool is_counted(const JointWay *way)
{
    return schedule_splits(way->schedule) || way->chunks > 1;
}

/* A search among the pipelines of a problem. */
typedef struct {
    uint32_t problem, number;
    JointWay way;
    const uint32_t *order; /* of the kinds; NULL: any */
    double least_s;        /* no pipeline of the problem is faster */
    double walk_s;         /* of the best pipeline found; INFINITY: none */
    uint32_t n_stages;     /* that this pipeline has */
    uint32_t line;         /* 1 + number of the line outwards that it is on; 0: none */
} Run;

/* Runs are repeated, or others made of them, if their best pipeline takes less than so many times
 * the time of the best one. */
static const double NEAR = 1.1, FAR = 1.5;

static ORDER_DEFINE(by_walk, JointFound, ASCENDING(walk_s), ASCENDING(is_gpipe),
                    ASCENDING(pipeline.schedule), ASCENDING(pipeline.chunks),
                    ASCENDING(problem));

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
 * memory; a single stage also under 1f1b, which frameworks run. */
static void find(JointSearch *j, Run *run, const JointPipeline *pipeline)
{
    const JointProblem *problem = j->problems->pdata[run->problem];
    for (uint32_t w = 0; w < count_ways(j); w++) {
        JointFound found = {.pipeline = *pipeline,
                            .problem = run->problem,
                            .is_gpipe = WAY[w].schedule == SCHEDULE_GPIPE};
        const bool own = WAY[w].schedule == pipeline->schedule &&
                         WAY[w].chunks == pipeline->chunks,
                   one = pipeline->n_stages == 1 && WAY[w].schedule != SCHEDULE_1F1B;
        found.pipeline.schedule = WAY[w].schedule;
        found.pipeline.chunks = WAY[w].chunks;
        if (!own && (one || !can_run(problem, &found.pipeline)))
            continue;
        if (j->target && !joint_is_for(j->menus->pdata[run->problem], problem,
                                       &found.pipeline, j->target))
            continue;
        found.pipeline.stage = joint_copy(pipeline).stage;
        found.walk_s =
            synth_joint_walk_s(j->menus->pdata[run->problem], problem, &found.pipeline);
        j->upper_s = fmin(j->upper_s, found.walk_s);
        g_array_append_val(j->found, found);
        if (found.walk_s < run->walk_s) {
            run->walk_s = found.walk_s;
            run->n_stages = pipeline->n_stages;
        }
    }
}

/* Finds the best pipelines of a problem; programs of HAP's are looked for where a promise of
 * them may win. */
static void search_settled(JointSearch *j, uint32_t problem, const JointOptions *options,
                           JointResult *result)
{
    JointProblem *p = j->problems->pdata[problem];
    GArray *group;
    while ((group = synth_joint_solve_lazily(p, options, result))) {
        for (uint32_t i = 0; i < group->len; i++)
            joint_hap_settle(j->hap, j->menus->pdata[problem], p,
                             g_array_index(group, uint32_t, i));
        g_array_unref(group);
    }
}

/* Finds the best pipelines of a run, also such that take up to `part` times as long as the fastest;
 * plain: without SPMD programs, else with some. */
static void search(JointSearch *j, double part, Run *run, bool plain, uint32_t beam,
                   uint32_t n_best)
{
    g_auto(JointResult) result = {0};
    const JointOptions options = {.way = run->way,
                                  .order = run->order,
                                  .n_best = n_best,
                                  .beam = beam,
                                  .plain = plain,
                                  .upper_s = part * j->upper_s,
                                  .most_labels = JOINT_LABELS,
                                  .left = joint_left(j),
                                  .deadline_us = j->answer->deadline_us};
    if (run->least_s >= j->upper_s || joint_is_spent(j))
        return;
    search_settled(j, run->problem, &options, &result);
    array_each (const JointPipeline, best, result.best)
        if (plain || joint_is_inside(j->problems->pdata[run->problem], best))
            find(j, run, best);
}

/* Whether the problem is one of those of the runs. */
static bool is_of(const JointSearch *j, const GArray *runs, uint32_t m,
                  const JointKeep *keep)
{
    bool is = false;
    array_each (const Run, run, runs) {
        const JointProblem *p = j->problems->pdata[run->problem];
        is |= p->n_microbatches == m && p->keep == keep;
    }
    return is;
}

/* Adds a problem for every number of microbatches that divides the batch's pieces, or for the
 * requested one, and for all stages that a framework runs; those of the `best` runs (NULL: all). */
static void add_problems(JointSearch *j, JointMenu *menu, double headroom,
                         const GArray *best)
{
    const Strategy *asked = &j->question->options->strategy;
    const uint32_t batch = graph_batch(j->question->graph),
                   pieces = joint_hap_pieces(j->hap),
                   n_keeps = j->keeps ? j->keeps->len : 1;
    for (uint32_t m = pieces; m > 0; m--)
        for (uint32_t k = 0; pieces % m == 0 && k < n_keeps; k++) {
            const JointKeep *keep =
                j->keeps ? &g_array_index(j->keeps, JointKeep, k) : NULL;
            if ((best && !is_of(j, best, m, keep)) || m >= PROGRAM_WHOLE ||
                (asked->microbatches > 1 && m != asked->microbatches) ||
                (keep && keep->even && batch / m % keep->dp != 0))
                continue;
            menu->keep = keep;
            JointProblem *problem = synth_joint_problem(menu, m, headroom, true);
            if (!problem)
                continue;
            g_ptr_array_add(j->problems, problem);
            g_ptr_array_add(j->menus, menu);
        }
}

void joint_all_problems(JointSearch *j, double headroom)
{
    g_ptr_array_set_size(j->problems, 0);
    g_ptr_array_set_size(j->menus, 0);
    j->keeps = NULL;
    add_problems(j, j->menu, headroom, NULL);
}

bool joint_is_large(JointMenu *menu, uint32_t batch)
{
    if (menu->in_order)
        return true;
    static const double large = 6e5;
    g_autoptr(JointProblem) p = synth_joint_problem(menu, batch, 1, true);
    double extensions = p ? (double)p->n_layers * p->n_groups : 0;
    for (uint32_t k = 0; p && k < p->n_kinds; k++)
        extensions *= p->units[k] + 1;
    return extensions > large;
}

/* --- runs of the search --- */

static ORDER_DEFINE(by_least, Run, ASCENDING(least_s), ASCENDING(number));

static void add_run(GArray *runs, uint32_t problem, double least_s, const JointWay *way,
                    const uint32_t *order)
{
    const Run run = {.problem = problem,
                     .order = order,
                     .number = runs->len,
                     .way = *way,
                     .least_s = least_s,
                     .walk_s = INFINITY};
    g_array_append_val(runs, run);
}

static const JointProblem *problem_of(const JointSearch *j, const Run *run)
{
    return j->problems->pdata[run->problem];
}

/* Seconds of a pipeline that computes as densely as possible, and waits until all machines have a
 * microbatch. */
static double filled_s(const JointSearch *j, const Run *run)
{
    const JointProblem *p = problem_of(j, run);
    const uint32_t stages = MIN(p->n_layers, j->question->view->cluster->n_machines);
    return run->least_s * (1 + (double)stages / p->n_microbatches);
}

static gint by_filled(gconstpointer a, gconstpointer b, gpointer search)
{
    const double x = filled_s(search, a), y = filled_s(search, b);
    return x != y ? (x < y ? -1 : 1) : by_least(a, b);
}

/* The runs on the problems from `first` on that need no number of stages, those with the most
 * promising numbers of microbatches first. */
static GArray *list_plain(const JointSearch *j, uint32_t first)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t i = first; i < j->problems->len; i++) {
        const JointProblem *p = j->problems->pdata[i];
        const double least_s = synth_joint_density_s(p);
        for (uint32_t w = 0; w < count_ways(j); w++)
            if (!is_counted(&WAY[w]) &&
                (!j->coarse || WAY[w].schedule != SCHEDULE_GPIPE)) {
                JointWay way = WAY[w];
                way.n_stages = p->keep ? p->keep->pp : 0;
                if (!p->keep || joint_way_is_for(j->menus->pdata[i], p, &way, j->target))
                    add_run(runs, i, least_s, &way, NULL);
            }
    }
    if (j->coarse)
        g_array_sort_with_data(runs, by_filled, (gpointer)j);
    else
        g_array_sort(runs, by_least);
    return runs;
}

/* Whether a number of stages is tried beside the one that was best, on many GPUs. */
static bool is_near(uint32_t n_stages, uint32_t best, bool any)
{
    return any ? n_stages == best || n_stages == 2 * best || n_stages == (best + 1) / 2
               : n_stages <= 2 * best && 2 * n_stages >= best;
}

/* Adds the counted runs of a problem whose backwards are split, or are not: of all numbers of
 * stages, or of those near the number that `plain` found best on many GPUs. */
static void add_counted(const JointSearch *j, const Run *plain, bool splits, GArray *runs)
{
    const JointProblem *p = j->problems->pdata[plain->problem];
    const uint32_t best = plain->n_stages;
    const bool large = j->coarse != NULL;
    uint32_t units = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++)
        units += p->units[k];
    for (uint32_t w = 0; w < count_ways(j); w++) {
        JointWay way = WAY[w];
        const uint32_t last = MIN(units, p->n_layers / way.chunks);
        const bool outwards = splits && last > MANY_STAGES;
        const uint32_t from = outwards ? CLAMP(best, 2, last) : 2;
        if (!is_counted(&way) || schedule_splits(way.schedule) != splits ||
            (p->keep &&
             !joint_way_is_for(j->menus->pdata[plain->problem], p, &way, j->target)))
            continue;
        for (uint32_t k = 0; k + 1 < last; k++) {
            const bool up = k <= last - from; /* else down from there */
            way.n_stages = up ? from + k : last - k;
            if (!((splits || p->n_microbatches % way.n_stages == 0) &&
                  (p->keep ? way.n_stages == p->keep->pp
                           : !large || is_near(way.n_stages, best, splits))))
                continue;
            add_run(runs, plain->problem, plain->least_s, &way, plain->order);
            if (outwards)
                g_array_index(runs, Run, runs->len - 1).line =
                    1 + (plain->problem * G_N_ELEMENTS(WAY) + w) * 2 + up;
        }
    }
}

/* The run of a problem with the best pipeline; NULL if there is none. */
static const Run *best_of(const GArray *runs, uint32_t problem)
{
    const Run *best = NULL;
    array_each (const Run, run, runs)
        if (run->problem == problem && (!best || run->walk_s < best->walk_s))
            best = run;
    return best;
}

static ORDER_DEFINE(by_run, Run, ASCENDING(walk_s), ASCENDING(problem));

/* The best run of each number of microbatches with pipelines that take less than `far` times as
 * long as the best one: at most `most`, those first that take least. */
static GArray *best_runs(const JointSearch *j, const GArray *runs, double far, guint most)
{
    GArray *best = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t i = 0; i < j->problems->len; i++) {
        const Run *run = best_of(runs, i);
        if (run && run->walk_s < far * j->upper_s)
            g_array_append_val(best, *run);
    }
    g_array_sort(best, by_run);
    g_array_set_size(best, MIN(best->len, most));
    return best;
}

/* The counted runs of these problems. As a fast pipeline leaves less to the others, quick searches
 * come first, of runs without split backwards, and what is made of the fastest pipelines. */
static GArray *list_counted(const JointSearch *j, const GArray *plain, double far)
{
    g_autoptr(GArray) best = best_runs(j, plain, far, UINT_MAX);
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t splits = 0; splits < 2; splits++)
        array_each (const Run, run, best)
            add_counted(j, run, splits, runs);
    return runs;
}

/* Searches counted runs. */
static void search_counted(JointSearch *j, const GArray *counted, bool plain,
                           uint32_t n_best)
{
    g_autofree uint32_t *misses =
        g_new0(uint32_t, (size_t)j->problems->len * G_N_ELEMENTS(WAY) * 2 + 1);
    array_each (Run, run, counted) {
        const uint32_t before = j->found->len;
        if (run->line > 0 && misses[run->line] >= MISSES)
            continue;
        search(j, 1, run, plain, 1, n_best);
        misses[run->line] = j->found->len > before ? 0 : misses[run->line] + 1;
    }
}

/* Where no pipeline is fast enough, counted runs may find some: finds what they are made of. */
static void search_missed(JointSearch *j, GArray *runs, uint32_t n_best)
{
    for (uint32_t k = 0; k < runs->len && isfinite(j->upper_s); k++) {
        Run *run = &g_array_index(runs, Run, k);
        if (!isfinite(best_of(runs, run->problem)->walk_s))
            search(j, FAR, run, true, 1, n_best);
    }
}

/* Searches the problems from `first` on with one label per state, which gives a time to beat. */
static GArray *search_once(JointSearch *j, uint32_t first, uint32_t n_best)
{
    GArray *runs = list_plain(j, first);
    for (uint32_t k = 0; k < runs->len; k++)
        search(j, 1, &g_array_index(runs, Run, k), true, 1, n_best);
    search_missed(j, runs, n_best);
    g_autoptr(GArray) counted = list_counted(j, runs, FAR);
    search_counted(j, counted, true, n_best);
    g_array_append_vals(runs, counted->data, counted->len);
    return runs;
}

/* Few GPUs: searches again with more labels per state where that is promising. */
static void search_wide(JointSearch *j, GArray *runs, uint32_t n_best)
{
    g_array_sort(runs, by_run);
    array_each (Run, run, runs)
        if (!is_counted(&run->way) || run->walk_s < NEAR * j->upper_s)
            search(j, 1, run, true, BEAM, n_best);
}

/* --- kinds in an order --- */

/* Searches with coarse groups in the orders from `begin` to `end`, for the numbers of
 * microbatches of the `best` runs (NULL: all). */
static void search_orders(JointSearch *j, const uint32_t *order, uint32_t begin,
                          uint32_t end, const GArray *best, GArray *runs)
{
    g_autoptr(GArray) plain = list_plain(j, 0);
    for (uint32_t k = 0; k < plain->len; k++)
        for (uint32_t o = begin; o < end; o++) {
            Run run = g_array_index(plain, Run, k);
            bool wanted = !best;
            for (uint32_t b = 0; best && b < best->len; b++)
                wanted |= g_array_index(best, Run, b).problem == run.problem;
            if (!wanted)
                continue;
            run.order = order + (size_t)o * problem_of(j, &run)->n_kinds;
            search(j, 1, &run, true, BEAM_ORDERS, j->question->options->pipelines);
            g_array_append_val(runs, run);
        }
}

/* Searches with fine groups in the orders that were best with coarse ones. */
static void search_best_orders(JointSearch *j, const GArray *best, uint32_t first)
{
    const uint32_t n_best = j->question->options->pipelines;
    for (uint32_t b = 0; b < best->len; b++) {
        Run run = g_array_index(best, Run, b);
        const JointProblem *p = problem_of(j, &run);
        run.problem = first;
        while (problem_of(j, &run)->n_microbatches != p->n_microbatches ||
               problem_of(j, &run)->keep != p->keep)
            run.problem++;
        search(j, 1, &run, true, BEAM, n_best);
        g_autoptr(GArray) counted = g_array_new(FALSE, FALSE, sizeof(Run));
        add_counted(j, &run, false, counted);
        add_counted(j, &run, true, counted);
        search_counted(j, counted, true, n_best);
    }
}

/* --- all --- */

/* Many GPUs: searches with coarse groups, and then with finer ones for the numbers of microbatches
 * that were best. */
static void search_large(JointSearch *j, double headroom)
{
    const uint32_t n_best = j->question->options->pipelines, first = j->problems->len;
    g_autoptr(GArray) runs = NULL;
    g_autofree uint32_t *order = NULL;
    if (j->coarse->in_order && first > 0) {
        uint32_t n;
        order = synth_joint_orders(j->problems->pdata[0], MOST_ORDERS, &n);
        runs = g_array_new(FALSE, FALSE, sizeof(Run));
        search_orders(j, order, 0, MIN(FIRST_ORDERS, n), NULL, runs);
        g_autoptr(GArray) some = best_runs(j, runs, FAR, FINE);
        search_orders(j, order, MIN(FIRST_ORDERS, n), n, some, runs);
    } else
        runs = search_once(j, 0, n_best);
    g_autoptr(GArray) best = best_runs(j, runs, FAR, FINE);
    add_problems(j, j->menu, headroom, best);
    if (order)
        search_best_orders(j, best, first);
    else
        g_array_unref(search_once(j, first, n_best));
}

/* Searches with SPMD programs for numbers of microbatches whose bound leaves room for them. Other
 * schedules are tried on what is found. */
static void search_inside(JointSearch *j, uint32_t n_best)
{
    g_autoptr(GArray) runs = list_plain(j, 0);
    array_each (Run, run, runs) {
        search(j, 1, run, false, 1, 1);
        search(j, 1, run, false, BEAM, n_best);
    }
    g_autoptr(GArray) counted = list_counted(j, runs, NEAR);
    search_counted(j, counted, false, n_best);
    g_array_sort(j->found, by_walk);
    joint_polish(j);
}

void joint_search(JointSearch *j, double headroom)
{
    g_array_set_size(j->found, 0);
    g_ptr_array_set_size(j->problems, 0);
    g_ptr_array_set_size(j->menus, 0);
    add_problems(j, j->coarse ? j->coarse : j->menu, headroom, NULL);
    if (j->coarse)
        search_large(j, headroom);
    else {
        const uint32_t n_best = j->question->options->pipelines;
        g_autoptr(GArray) runs = search_once(j, 0, 1);
        search_wide(j, runs, n_best);
        if (!j->target)
            search_inside(j, n_best);
    }
    g_array_sort(j->found, by_walk);
}
