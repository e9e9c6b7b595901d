/* The planner joint: pipelines of unlike stages (synth/joint/joint.h).
 *
 * For every number of microbatches and every schedule, the search finds the best pipelines by a
 * formula, which is up to a fifth below the time of the schedule. Each pipeline is then walked step
 * by step, under its own schedule and under the others for which its stages have the memory. The
 * fastest few are made into programs and evaluated, as long as the walk leaves room for a faster
 * one. On many GPUs a search with coarse groups comes first, that of what waits little before the
 * rest; where all combinations of machines are too many, the kinds are in an order, and some orders
 * are searched. Where memory is short, stages are planned with only a part of it.
 *
 * A second search lets stages run SPMD programs: those of HAP's planner for the stage's devices
 * (synth/joint/hap_inside.h), which are found where what is promised of them may win. On
 * the many GPUs above there are none. A third one divides the machines among two pipelines that are
 * replicas of each other (synth/joint/pair_search.c).
 *
 * The bound is that of the formula without communication, memory and waits, for whatever SPMD
 * programs stages have; of a pair it is that by the computation per device. */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/cluster/runtime.h"
#include "synth/answer/complete.h"
#include "synth/joint/make.h"
#include "synth/joint/menu.h"
#include "synth/joint/search.h"

enum {
    TRIALS = 3,            /* programs that fit, with and without SPMD programs each */
    MOST_TRIALS = 12,      /* most programs evaluated until there are as many */
    LABELS_LARGE = 100000, /* most labels of a search for a bound on thousands of GPUs */
};

static CLEAR_DEFINE(clear_found, JointFound, found,
                    synth_joint_pipeline_clear(&found->pipeline));

/* Leaves gradients one by one where that is no slower, and nothing was asked for. Memory is the
 * same. */
static bool joint_choose_buckets(const JointSearch *j, GError **error)
{
    Answer *answer = j->answer;
    Plan *plan = j->plan;
    if (j->question->options->bucket_bytes > 0)
        return true;
    g_autoptr(SimReport) before = g_steal_pointer(&answer->report);
    const double before_s = before->iteration_time_s;
    const uint64_t bucket_bytes = plan->bucket_bytes;
    plan->bucket_bytes = 0;
    answer->enough_s = before->feasible ? before_s : 0;
    const bool done = answer_complete(answer, plan, j->question, error);
    answer->enough_s = 0;
    if (!done || plan->iteration_time_s < before_s)
        return done;
    if (plan->iteration_time_s > before_s)
        plan->bucket_bytes = bucket_bytes;
    plan_take_report(plan, before);
    sim_report_free(answer->report);
    answer->report = g_steal_pointer(&before);
    return true;
}

/* Puts a pipeline's program in the plan. */
static bool put(const JointSearch *j, uint32_t i, GError **error)
{
    const Question *question = j->question;
    const JointFound *found = &g_array_index(j->found, JointFound, i);
    g_auto(JointProgram) made = {0};
    if (!synth_joint_program(j->menus->pdata[found->problem],
                             j->problems->pdata[found->problem], &found->pipeline, &made,
                             error))
        return false;
    plan_set(j->plan, question->graph, question->view, g_steal_pointer(&made.program),
             made.ratio);
    joint_strategy(j->menus->pdata[found->problem], j->problems->pdata[found->problem],
                   &found->pipeline, &j->plan->strategy);
    j->plan->strategy.offload = question->options->strategy.offload;
    return answer_complete(j->answer, j->plan, question, error);
}

/* Whether a pipeline of as many stages and microbatches, under the same schedule, did not fit:
 * others like it hardly do. */
static bool is_like_misfit(const JointSearch *j, uint32_t i)
{
    const JointFound *a = &g_array_index(j->found, JointFound, i);
    bool like = false;
    for (uint32_t k = 0; k < j->misfits; k++) {
        const JointFound *b = &g_array_index(j->found, JointFound, j->misfit[k]);
        like |= a->problem == b->problem &&
                a->pipeline.schedule == b->pipeline.schedule &&
                a->pipeline.chunks == b->pipeline.chunks &&
                a->pipeline.n_stages == b->pipeline.n_stages;
    }
    return like;
}

/* Whether the pipeline was found before, by another search: pipelines that are equal stand side by
 * side, apart from those that take as long. */
static bool is_repeated(const JointSearch *j, uint32_t i)
{
    const JointFound *a = &g_array_index(j->found, JointFound, i);
    const size_t size = a->pipeline.n_stages * sizeof *a->pipeline.stage;
    bool repeated = false;
    for (uint32_t k = i; k-- > 0 && !repeated;) {
        const JointFound *b = &g_array_index(j->found, JointFound, k);
        if (b->walk_s != a->walk_s)
            break;
        repeated = b->problem == a->problem &&
                   b->pipeline.schedule == a->pipeline.schedule &&
                   b->pipeline.chunks == a->pipeline.chunks &&
                   b->pipeline.n_stages == a->pipeline.n_stages &&
                   memcmp(b->pipeline.stage, a->pipeline.stage, size) == 0;
    }
    return repeated;
}

/* Whether a pipeline is not evaluated, since it takes at least as long as the best plan or as one
 * that is known elsewhere: the walk is too slow by about the same factor for all pipelines. */
static bool is_slower(const JointSearch *j, const JointFound *found,
                      const AnswerAside *best)
{
    const double s = j->off * found->walk_s;
    return (best->plan && best->plan->feasible && s >= best->plan->iteration_time_s) ||
           (j->off < 1 && s >= j->answer->upper_s);
}

/* Sets the fastest program that fits aside; where none does, the fastest one. */
static bool try_first(JointSearch *j, AnswerAside *best, GError **error)
{
    const uint32_t n = j->found->len;
    uint32_t tried = 0, fit[2] = {0};
    for (uint32_t i = 0; i < n; i++) {
        const JointFound *found = &g_array_index(j->found, JointFound, i);
        const bool inside = joint_has_inside(j, found);
        g_autoptr(GError) unmade = NULL;
        if (is_repeated(j, i) || is_like_misfit(j, i) || fit[inside] == TRIALS ||
            tried == MOST_TRIALS)
            continue;
        if (is_slower(j, found, best))
            break;
        tried++;
        if (!put(j, i, &unmade)) {
            if (inside) /* forms that no transfer joins */
                continue;
            g_propagate_error(error, g_steal_pointer(&unmade));
            return false;
        }
        fit[inside] += j->plan->feasible;
        if (!j->plan->feasible && j->misfits < G_N_ELEMENTS(j->misfit))
            j->misfit[j->misfits++] = i;
        j->off = fmin(j->off, j->plan->iteration_time_s / found->walk_s);
        if (plan_is_better(j->plan, best->plan))
            answer_set_aside(j->answer, j->plan, j->question, best);
    }
    return true;
}

/* Whether the fastest pipeline found, which may not fit, is hardly faster than the best plan:
 * others with less memory are slower. Few GPUs are searched again for less. */
static bool promises_little(const JointSearch *j, const AnswerAside *best)
{
    enum { MANY_GPUS = 16 };
    static const double little = 0.995;
    const double first_s = j->off * g_array_index(j->found, JointFound, 0).walk_s;
    return j->question->view->n_devices > MANY_GPUS &&
           first_s > little * best->plan->iteration_time_s;
}

/* Searches with less and less of the memory until the pipelines that promise most fit. */
static bool search_and_try(JointSearch *j, GError **error)
{
    /* Parts of the memory to plan with, since the model of memory here is coarser than the final
     * check. */
    static const double headroom[] = {0.985, 0.9, 0.75, 0.5};
    g_auto(AnswerAside) best = {0};
    for (uint32_t i = 0; i < G_N_ELEMENTS(headroom); i++) {
        const bool fits = best.plan && best.plan->feasible;
        j->upper_s = fmin(j->answer->upper_s,
                          fits ? best.plan->iteration_time_s / j->off : INFINITY);
        j->misfits = 0;
        if (!fits)
            answer_aside_clear(&best);
        joint_search(j, headroom[i]);
        if (!try_first(j, &best, error))
            return false;
        if (j->found->len == 0 || j->misfits == 0 ||
            (best.plan && best.plan->feasible &&
             (i > 0 || j->coarse || promises_little(j, &best))))
            break;
    }
    answer_put_back(j->answer, j->plan, j->question, &best);
    return j->plan->program ||
           kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "no pipeline of stages on groups of these devices%s%s%s fits the "
                       "memory",
                       j->target ? " that " : "", j->target ? j->target : "",
                       j->target ? " runs" : "");
}

/* The option `work`, in stages that are prepended. */
static uint64_t joint_steps_of(const Question *question)
{
    static const uint64_t unit = 1000000;
    return question->options->work > 0 ? question->options->work * unit : UINT64_MAX;
}

/* The least time of the formula over every number of microbatches, at most upper_s; 0 if the search
 * does not end. A few labels per state first give a time to beat. */
static double make_least_s(const JointSearch *j, const JointWay *way, bool plain,
                           double upper_s)
{
    enum { FEW = 2 };
    uint64_t most = joint_steps_of(j->question), *left = most < UINT64_MAX ? &most : NULL;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < j->problems->len; i++) {
            g_auto(JointResult) result = {0};
            const JointOptions options = {.way = *way,
                                          .n_best = 1,
                                          .plain = plain,
                                          .beam = pass == 0 ? FEW : 0,
                                          .upper_s = upper_s,
                                          .most_labels =
                                              j->coarse ? LABELS_LARGE : JOINT_LABELS,
                                          .left = left,
                                          .deadline_us = j->answer->deadline_us};
            if (synth_joint_density_s(j->problems->pdata[i]) >= upper_s)
                continue;
            synth_joint_solve(j->problems->pdata[i], &options, &result);
            if (pass > 0 && !result.exact)
                return 0;
            if (result.best->len > 0)
                upper_s = g_array_index(result.best, JointPipeline, 0).cost_s;
        }
    return upper_s;
}

/* Bounds over every number of microbatches that the plan could have: of every schedule, by the
 * computation per device, and, without SPMD programs, of every schedule and of 1f1b. */
static void make_bound(JointSearch *j)
{
    static const double most =
        1.25; /* of the plan's time: as far as others are searched */
    const JointWay relaxed = {.relaxed = true},
                   one = {.schedule = SCHEDULE_1F1B, .chunks = 1, .free = true};
    static const char *const any_over = "single pipelines of stages with any SPMD "
                                        "program, one or several per device, in any "
                                        "order and schedule, without communication";
    static const char *const dense_over = "pipelines of these stages, also as unlike "
                                          "replicas, by the computation per device";
    Plan *plan = j->plan;
    double dense_s = INFINITY, any_s = 0;
    if (j->coarse || j->target || j->question->options->strategy.microbatches > 1)
        joint_all_problems(j, 1);
    for (uint32_t i = 0; i < j->problems->len; i++)
        dense_s = fmin(dense_s, synth_joint_density_s(j->problems->pdata[i]));
    /* which counts updates, too */
    dense_s = fmax(dense_s, sim_compute_bound_s(j->question->graph, j->question->view));
    if (!j->menu->in_order)
        any_s = make_least_s(j, &relaxed, false, plan->iteration_time_s);
    any_s = any_s > 0 ? fmax(any_s, dense_s) : 0;
    /* the first bound is over all plans like this one */
    const bool any = any_s > 0 && !j->is_pair;
    plan->lower_bound_s = fmin(any ? any_s : dense_s, plan->iteration_time_s);
    plan->bound_over = g_strdup(any ? any_over : dense_over);
    if (any_s > 0)
        plan_add_bound(plan, any ? dense_s : any_s, any ? dense_over : any_over);
    const double plain_s =
        any_s > 0 ? make_least_s(j, &relaxed, true, most * plan->iteration_time_s) : 0;
    if (plain_s > 0)
        plan_add_bound(
            plan, plain_s,
            "single pipelines of stages with replicas and tensor parallelism alone, in "
            "any order and schedule, without communication");
    const double one_s =
        j->coarse ? 0 : make_least_s(j, &one, true, most * plan->iteration_time_s);
    if (one_s > 0)
        plan_add_bound(plan, one_s,
                       "pipelines of such stages, one per device, under 1f1b, without "
                       "transfers, in any memory");
}

/* Checks that the search can do what the options ask for; the batch has so many pieces. */
static bool check_options(const Question *question, uint32_t pieces, GError **error)
{
    const Strategy *asked = &question->options->strategy;
    if (asked->offload && strcmp(asked->offload, "optimizer") != 0)
        return refuse(error, "joint with option 'offload': expected optimizer, got %s",
                      asked->offload);
    return asked->microbatches <= 1 || pieces % asked->microbatches == 0 ||
           refuse(error,
                  "joint with option 'microbatches': expected a divisor of the %u pieces "
                  "of the batch, got %u",
                  pieces, asked->microbatches);
}

bool joint_make(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    g_autoptr(JointHap) hap = joint_hap_new(question, answer);
    if (!check_options(question, joint_hap_pieces(hap), error))
        return false;
    const gint64 start = g_get_monotonic_time();
    g_autoptr(JointMenu) menu =
        synth_joint_menu_new(question->graph, question->view, false, error),
                         coarse = NULL;
    if (!menu)
        return false;
    const char *target = planner_options_target(question->options);
    const bool hosts = question->options->strategy.offload != NULL;
    g_autoptr(GArray) keeps = target ? joint_keeps(menu, target, error) : NULL;
    if (target && !keeps)
        return false;
    if (joint_is_large(menu, graph_batch(question->graph)))
        coarse = synth_joint_menu_new(question->graph, question->view, true, error);
    else if (!target && !hosts &&
             !cluster_mixed(
                 question->view->cluster)) /* HAP's groups have whole machines */
        menu->promises = true;
    menu->hosts = hosts;
    if (coarse)
        coarse->hosts = hosts;
    g_autoptr(GPtrArray) problems =
        g_ptr_array_new_with_free_func((GDestroyNotify)synth_joint_problem_free);
    g_autoptr(GPtrArray) menus = g_ptr_array_new();
    g_autoptr(GArray) found = array_owning(JointFound, clear_found);
    JointSearch j = {.question = question,
                     .answer = answer,
                     .plan = plan,
                     .hap = hap,
                     .menu = menu,
                     .coarse = coarse,
                     .problems = problems,
                     .menus = menus,
                     .found = found,
                     .upper_s = INFINITY,
                     .off = 1,
                     .left = joint_steps_of(question),
                     .target = target,
                     .keeps = keeps};
    plan->bucket_bytes = runtime_bucket_bytes(question->runtime, plan->bucket_bytes);
    if (!search_and_try(&j, error) || !joint_try_pairs(&j, error) ||
        !joint_choose_buckets(&j, error))
        return false;
    const gint64 searched = g_get_monotonic_time();
    plan->search_time_s = (double)(searched - start) / G_USEC_PER_SEC;
    if (!answer->unbounded)
        make_bound(&j);
    plan->certificate_time_s =
        (double)(g_get_monotonic_time() - searched) / G_USEC_PER_SEC;
    return true;
}
