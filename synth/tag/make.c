/* The planner tag: op groups on subsets of the devices (TAG, TPDS 2023), and the search of its
 * baselines in the same space.
 *
 * The searches use the quick evaluator, which has neither fused gradients nor shared links. So the
 * strategies that they find, with and without sufficient factors, and data parallelism with
 * gradients one by one or fused, are also evaluated like every plan, and by `flow`; the fastest
 * becomes the plan. */
#include "synth/tag/make.h"

#include <math.h>
#include <string.h>

#include "balance/balance.h"
#include "data/base/free.h"
#include "data/plan/fidelity.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/pipeline/pipeline.h"
#include "synth/tag/case.h"
#include "synth/tag/net.h"
#include "synth/tag/pipeline.h"
#include "synth/tag/search.h"
#include "synth/tag/shares.h"

/* METIS's imbalance, TAG Sec. 5.1. */
static const double IMBALANCE = 2;

/* Of the strategies that the bound comes from the first and then each n-th are starts: neighbours
 * are alike. */
enum { BOUND_STARTS_ALL = 16, BOUND_STARTS_APART = 4 };

static const uint64_t BUCKETS[] = {0, UINT64_C(25) << 20, UINT64_C(64) << 20};

typedef struct {
    Program *program;
    double *ratio;
    uint64_t bucket_bytes;
    double time_s, flow_s; /* by the plan's evaluation, and by `flow` */
    SimQuickSums sums;     /* the bounds for this kind of sums hold for it */
    bool fits;
    bool optimal;
} Candidate;

typedef struct {
    const Question *question;
    Answer *answer;
    Plan *plan;
    const TagLimits *limits;
    TagSpace *space;
    BatchForms *batch;
    uint16_t *group;
    double *time_s;
    TagWork work;
    Recompute *modes;   /* of layers that are computed again; NULL: none are */
    TagNet *net;        /* priors of mcts; NULL: uniform */
    GArray *candidates; /* Candidate */
    double bound_s;     /* bound on all strategies at all ratios tried */
} Make;

static CLEAR_DEFINE(candidate_clear, Candidate, candidate,
                    program_free(candidate->program), g_free(candidate->ratio));

OWN_CLEAR_DEFINE(make_clear, Make, m, synth_tag_space_free(m->space),
                 batch_forms_free(m->batch), tag_net_free(m->net),
                 free_each(m->modes, m->group, m->time_s),
                 let_go(m->candidates, g_array_unref));

/* --- what is placed --- */

static bool find_groups(Make *m, SimQuick *quick, GError **error)
{
    const Graph *graph = m->question->graph;
    const TagPlanOptions *options = &m->question->options->tag;
    m->time_s = g_new0(double, graph_n_ops(graph) + 1);
    tag_mean_times(graph, m->space, quick, m->time_s);
    m->group = g_new0(uint16_t, graph_n_ops(graph) + 1);
    const uint32_t n =
        options->grouping == TAG_GROUPS_LAYERS ||
                (options->grouping == TAG_GROUPS_OWN && m->limits->method != TAG_MCTS)
            ? balance_groups_layers(graph, m->time_s, options->groups, m->group)
            : balance_groups_metis(graph, m->time_s, options->groups, IMBALANCE, m->group,
                                   error);
    m->work = (TagWork){.graph = graph,
                        .batch = m->batch,
                        .n_groups = n,
                        .group = m->group,
                        .time_s = m->time_s,
                        .recompute = m->modes};
    return n > 0;
}

/* --- candidates --- */

/* Evaluates a program and takes it over. */
static bool add_candidate(Make *m, Program *program, const double *ratio, uint64_t bucket,
                          SimQuickSums sums, GError **error)
{
    Plan *plan = m->plan;
    const ClusterView *view = m->question->view;
    Candidate candidate = {.program = program_copy(program),
                           .ratio = g_memdup2(ratio, view->n_devices * sizeof *ratio),
                           .bucket_bytes = bucket,
                           .sums = sums};
    plan->bucket_bytes = bucket;
    plan_set(plan, m->question->graph, view, program, ratio);
    bool good = answer_complete(m->answer, plan, m->question, error);
    SimOptions links;
    sim_options_init(&links);
    if (m->question->options->tag.links == TAG_LINKS_OWN)
        sim_options_set(&links, "network", "crossbar", NULL);
    g_autoptr(SimReport) report =
        good ? sim_evaluate_with(plan, m->question->graph, view,
                                 fidelity_name(FIDELITY_FLOW), &links, error)
             : NULL;
    if (!report) {
        candidate_clear(&candidate);
        return false;
    }
    candidate.time_s = plan->iteration_time_s;
    candidate.flow_s = report->iteration_time_s;
    candidate.fits =
        plan->feasible &&
        (report->feasible || m->question->options->tag.objective != TAG_OBJECTIVE_FLOW);
    g_array_append_val(m->candidates, candidate);
    return true;
}

/* Puts the program with microbatches, and with the layers that are computed again, in its place. */
static bool compute_again(const Make *m, Program **program, GError **error)
{
    if (!m->modes && tag_microbatches(m->question->options) == 1)
        return true;
    Program *again =
        synth_train(*program, m->question->graph, m->question->view->n_devices,
                    tag_microbatches(m->question->options), m->modes, error);
    program_free(*program);
    *program = again;
    return again != NULL;
}

static bool add_data_parallel(Make *m, const double *ratio, GError **error)
{
    for (uint32_t b = 0; b < G_N_ELEMENTS(BUCKETS); b++) {
        SynthResult result;
        if (m->question->options->bucket_bytes && b > 0)
            break;
        if (!synth_baseline(m->question->graph, m->question->view, ratio,
                            BASELINE_DATA_PARALLEL, &result, error) ||
            !compute_again(m, &result.program, error) ||
            !add_candidate(m, result.program, ratio,
                           m->question->options->bucket_bytes
                               ? m->question->options->bucket_bytes
                               : BUCKETS[b],
                           SIM_SUMS_FUSED, error))
            return false;
    }
    return true;
}

/* Adds the strategy's program, and one with sufficient factors if they pay; these are priced for a
 * batch that is not cut. */
static bool add_strategy(Make *m, SimQuick *quick, const uint16_t *action,
                         TagObjective objective, const double *ratio, GError **error)
{
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(m->question->graph);
    TagWork work = m->work;
    work.n_microbatches = tag_microbatches(m->question->options);
    synth_tag_place(m->space, &work, action, placement);
    for (uint32_t pass = 0; pass < 2; pass++) {
        if (pass == 1 &&
            (!m->limits->factors || work.n_microbatches > 1 ||
             synth_tag_factors(m->space, &work, quick, objective,
                               m->question->options->tag.factors == TAG_FACTORS_PAPER,
                               placement) == 0))
            return true;
        if (!add_candidate(m, synth_tag_program(m->space, &work, placement, false), ratio,
                           m->question->options->bucket_bytes,
                           pass == 1                            ? SIM_SUMS_FREE
                           : m->question->options->bucket_bytes ? SIM_SUMS_FUSED
                                                                : SIM_SUMS_EACH,
                           error))
            return false;
    }
    return true;
}

/* --- searches --- */

/* Some of the strategies that attain the bound, [n * op groups], as starts of the search. */
static uint16_t *find_starts(const Make *m, const TagBound *bound, uint32_t *n)
{
    const uint16_t *seen;
    const uint32_t n_seen = bound ? tag_bound_seen(bound, &seen) : 0;
    const size_t bytes = m->work.n_groups * sizeof *seen;
    uint16_t *start =
        g_malloc((n_seen + 2) * bytes); /* with room for those that searches find */
    *n = 0;
    for (uint32_t k = 0; k < n_seen && m->limits->method == TAG_BEST;
         k += k < BOUND_STARTS_ALL ? 1 : BOUND_STARTS_APART)
        memcpy(&start[(size_t)(*n)++ * m->work.n_groups],
               &seen[(size_t)k * m->work.n_groups], bytes);
    return start;
}

static double candidate_s(const Make *m, const Candidate *c)
{
    return m->question->options->tag.objective == TAG_OBJECTIVE_FLOW ? c->flow_s
                                                                     : c->time_s;
}

/* A strategy to try, and its time. */
typedef struct {
    Make *m;
    const double *ratio;
} Trial;

static bool try_strategy(void *context, const uint16_t *action, double *time_s,
                         GError **error)
{
    const Trial *trial = context;
    Make *m = trial->m;
    if (!add_strategy(m, NULL, action, TAG_BY_STAGE, trial->ratio, error))
        return false;
    const Candidate *last =
        &g_array_index(m->candidates, Candidate, m->candidates->len - 1);
    *time_s = last->fits ? candidate_s(m, last) : INFINITY;
    return true;
}

/* A bound on the strategies that are faster than all those found. */
static double find_bound(const Make *m, TagBound *bound)
{
    double best_s = INFINITY;
    array_each (const Candidate, c, m->candidates)
        if (c->fits)
            best_s = fmin(best_s, candidate_s(m, c));
    return tag_bound_branch(bound, best_s, m->question->options->tag.branches);
}

/* The bound, at all ratios tried, for a candidate whose sums of gradients are not one by one. */
static bool bound_wider(const Make *m, const Candidate *of, double *bound_s,
                        GError **error)
{
    const ClusterView *view = m->question->view;
    const bool by_flow = m->question->options->tag.objective == TAG_OBJECTIVE_FLOW;
    const Candidate *before = NULL;
    *bound_s = INFINITY;
    array_each (const Candidate, c, m->candidates) {
        if (before && ratios_same(c->ratio, before->ratio, view->n_devices))
            continue;
        before = c;
        g_autoptr(SimQuick) quick =
            sim_quick_new(m->question->graph, view, c->ratio, m->space->n_groups,
                          m->space->group, error);
        if (!quick)
            return false;
        g_autoptr(TagBound) bound = tag_bound_new(
            m->space, &m->work, quick, by_flow ? TAG_BY_FLOW : TAG_BY_STAGE, of->sums);
        *bound_s = fmin(*bound_s, find_bound(m, bound));
    }
    return true;
}

/* Searches at given ratios, by one measure after the other, each starting from the strategies of
 * the one before. */
static bool search_ratios(Make *m, const double *ratio, uint32_t share, GError **error)
{
    const PlannerOptions *options = m->question->options;
    const bool both = options->tag.objective == TAG_OBJECTIVE_BOTH;
    g_autofree Device *device = tag_devices_alike(m->question->view);
    ClusterView view = *m->question->view;
    view.device = m->limits->alike ? device : view.device;
    g_autoptr(SimQuick) quick = sim_quick_new(m->question->graph, &view, ratio,
                                              m->space->n_groups, m->space->group, error);
    if (!quick || (!m->group && !find_groups(m, quick, error)))
        return false;
    const bool by_flow = options->tag.objective == TAG_OBJECTIVE_FLOW;
    g_autoptr(TagBound) bound =
        m->limits->alike
            ? NULL
            : tag_bound_new(m->space, &m->work, quick,
                            by_flow ? TAG_BY_FLOW : TAG_BY_STAGE, SIM_SUMS_EACH);
    uint32_t n_starts;
    g_autofree uint16_t *start = find_starts(m, bound, &n_starts);
    for (TagObjective o = TAG_BY_STAGE; o <= TAG_BY_FLOW; o++) {
        if (!both && by_flow != (o == TAG_BY_FLOW))
            continue;
        const TagSearch search = {
            .method = m->limits->method,
            .objective = o,
            .evaluations = MAX(1, options->tag.evaluations / share / (both ? 2 : 1)),
            .leave = options->tag.leave == TAG_LEAVE_ON,
            .by_gradients = options->tag.undecided == TAG_UNDECIDED_LAST,
            .leaves = options->tag.leaves,
            .heat = options->tag.heat,
            .net = m->net,
            .seed = options->seed,
            .deadline_us = m->answer->deadline_us};
        g_auto(TagResult) result = {0};
        synth_tag_search(m->space, &m->work, quick, &search, start, n_starts, &result);
        m->plan->tries = result.iterations > 0 ? result.iterations : result.evaluations;
        m->plan->tries_to_beat_dp = result.to_beat_dp;
        if (search.method == TAG_BEST)
            memcpy(&start[(size_t)n_starts++ * m->work.n_groups], result.action,
                   m->work.n_groups * sizeof *start);
        if (!add_strategy(m, quick, result.action, o, ratio, error))
            return false;
        Candidate *last =
            &g_array_index(m->candidates, Candidate, m->candidates->len - 1);
        last->optimal = result.optimal;
    }
    const bool cut = tag_microbatches(options) > 1;
    if (bound && !cut)
        m->bound_s = fmin(m->bound_s, find_bound(m, bound));
    return !cut || !m->limits->parallel ||
           tag_try_pipelines(m->space, &m->work, try_strategy, &(Trial){m, ratio}, error);
}

/* At all ratios, with the layers computed again that `modes` says. */
static bool search_modes(Make *m, GError **error)
{
    g_autoptr(GPtrArray) shares = tag_shares(m->question, m->limits->shares, error);
    for (uint32_t i = 0; shares && i < shares->len; i++)
        if (!search_ratios(m, shares->pdata[i], shares->len, error) ||
            (m->limits->parallel && !add_data_parallel(m, shares->pdata[i], error)))
            return false;
    return shares != NULL;
}

static bool any_fits(const Make *m)
{
    return any_in(array_each (const Candidate, candidate, m->candidates),
                  candidate->fits);
}

static bool tag_search(Make *m, GError **error)
{
    const char *recompute;
    for (uint32_t i = 0;
         (recompute = tag_recompute(m->question->options, i)) && (i == 0 || !any_fits(m));
         i++) {
        g_clear_pointer(&m->modes, g_free);
        if (!tag_modes(m->question->graph, recompute, &m->modes, error))
            return false;
        m->work.recompute = m->modes;
        if (!search_modes(m, error))
            return false;
    }
    return true;
}

/* --- the plan --- */

static bool candidate_is_better(const Candidate *a, const Candidate *b)
{
    if (!b || a->fits != b->fits)
        return !b || a->fits;
    return a->time_s != b->time_s ? a->time_s < b->time_s : a->flow_s < b->flow_s;
}

/* The fastest candidate by the measure of the search: by the plan's evaluation, or by `flow`. */
static const Candidate *choose(const Make *m)
{
    Candidate *all = &g_array_index(m->candidates, Candidate, 0);
    const Candidate *best = NULL;
    for (uint32_t i = 0; i < m->candidates->len; i++) {
        if (m->question->options->tag.objective == TAG_OBJECTIVE_FLOW)
            all[i].time_s = all[i].flow_s;
        if (candidate_is_better(&all[i], best))
            best = &all[i];
    }
    return best;
}

bool tag_make_within(const Question *question, Answer *answer, const TagLimits *limits,
                     GError **error)
{
    Plan *plan = answer->plan;
    const gint64 begin = g_get_monotonic_time();
    g_auto(Make) m = {.question = question,
                      .answer = answer,
                      .plan = plan,
                      .limits = limits,
                      .bound_s = INFINITY,
                      .candidates = array_owning(Candidate, candidate_clear)};
    m.space = synth_tag_space(question->view,
                              question->options->tag.sets == TAG_SETS_KINDS, error);
    if (!m.space || !(m.batch = tag_batch(question->options, question->graph, error)))
        return false;
    if (question->options->tag.priors != TAG_PRIORS_UNIFORM &&
        !(m.net = tag_network(question->options, error)))
        return false;
    if (limits->ones)
        synth_tag_add_ones(m.space);
    if (limits->narrow)
        limits->narrow(m.space);
    if (!tag_search(&m, error))
        return false;
    const Candidate *best = choose(&m);
    plan->bucket_bytes = best->bucket_bytes;
    plan_set(plan, question->graph, question->view, program_copy(best->program),
             best->ratio);
    plan->search_time_s = (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
    if (!isinf(m.bound_s) && best->sums != SIM_SUMS_EACH &&
        !bound_wider(&m, best, &m.bound_s, error))
        return false;
    plan->lower_bound_s = isinf(m.bound_s) ? 0 : m.bound_s;
    if (plan->lower_bound_s > 0)
        plan->bound_over = g_strdup_printf(
            "strategies of these op groups on any of the device groups%s, at the ratios "
            "tried, that fit the memory%s; finer groups, sharding or a "
            "pipeline may be faster",
            best->sums == SIM_SUMS_FREE    ? ", with sufficient factors or without"
            : best->sums == SIM_SUMS_FUSED ? ", gradients in buckets of any size"
                                           : ", gradients one by one",
            question->options->strategy.recompute ? ", whatever is computed again" : "");
    plan->optimal = best->optimal;
    return answer_complete(answer, plan, question, error);
}

bool tag_make(const Question *question, Answer *answer, GError **error)
{
    const uint32_t search = question->options->search;
    const TagLimits limits = {.method = search == SEARCH_MCTS    ? TAG_MCTS
                                        : search == SEARCH_EXACT ? TAG_EXACT
                                                                 : TAG_BEST,
                              .factors =
                                  search != SEARCH_MCTS ||
                                  question->options->tag.factors == TAG_FACTORS_PAPER,
                              .shares = search != SEARCH_MCTS,
                              .parallel = search != SEARCH_MCTS,
                              .ones = search != SEARCH_MCTS};
    return tag_make_within(question, answer, &limits, error);
}
