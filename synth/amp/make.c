/* The planners of pipelines: AMP's search (NeurIPS'22, Algorithm 1), annealed placements,
 * Megatron's heuristics, and strategies at random.
 *
 * The search orders candidates by predicted time; programs are made for the first ones and
 * simulated, and the fastest that fits is the plan. The paper runs the candidates in this last
 * step. */
#include <math.h>
#include <string.h>

#include "data/formats/export/export.h"
#include "synth/amp/amp.h"
#include "synth/amp/make.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/pipeline/strategy.h"

enum { MOST_ZERO = 3 };

typedef struct {
    const Question *question;
    Answer *answer;
    AmpOptions search;
    uint32_t n_most; /* candidates, if all fitted */
    Plan *plan;
    AnswerAside best;
    double off; /* least time of a program over the predicted one */
} Trials;

static AmpOptions search_options(const PlannerOptions *options)
{
    const AmpPlanOptions *amp = &options->amp;
    const Strategy *asked = &options->strategy;
    return (AmpOptions){.faithful = amp->cost == AMP_COST_FAITHFUL,
                        .schedule = (Schedule)asked->schedule,
                        .chunks =
                            asked->virtual_stages ? asked->virtual_stages : amp->chunks,
                        .recompute = asked->recompute,
                        .zero = asked->zero,
                        .zero_ranks = asked->zero_ranks,
                        .hosts = {.offload = asked->offload},
                        .seed = options->seed,
                        .draws = amp->rank,
                        .steps = amp->steps,
                        .pp = asked->pp,
                        .dp = asked->dp,
                        .tmp = amp->tmp ? amp->tmp : asked->tp,
                        .mbs = amp->mbs ? amp->mbs : asked->micro_batch,
                        .most_tmp = amp->most_tmp,
                        .domino = amp->placement == AMP_PLACEMENT_DOMINO};
}

static GArray *find_candidates(Trials *t, AmpMethod method, GError **error)
{
    const char *file = t->question->options->amp.profile;
    g_autoptr(LayerProfile) profile = *file ? layer_profile_read(file, error) : NULL;
    if (*file && !profile)
        return NULL;
    const ClusterView *view = t->question->view;
    g_autoptr(AmpCluster) cluster = synth_amp_cluster(view, error);
    if (cluster && t->search.faithful && !synth_amp_connect(cluster, view, error))
        return NULL;
    const bool along =
        !profile &&
        g_strcmp0(t->question->options->strategy.sequence_parallel, "on") == 0;
    g_autoptr(AmpModel) model =
        !cluster ? NULL
        : along  ? synth_amp_model_along_sequence(t->question->graph, view, error)
                 : synth_amp_model(t->question->graph, view, profile, error);
    return model ? synth_amp_search(model, cluster, &t->search, method, &t->n_most, error)
                 : NULL;
}

/* Equal shares for all devices of a replica, and for all replicas. Takes the program over. */
static bool put_program(const Trials *t, Program *program, const Strategy *strategy,
                        GError **error)
{
    g_autofree double *even = ratios_even(t->question->view);
    plan_set(t->plan, t->question->graph, t->question->view, program, even);
    t->plan->strategy = *strategy;
    return answer_complete(t->answer, t->plan, t->question, error);
}

/* A candidate as the strategy by which planner manual makes it. */
static Strategy strategy_of(const Trials *t, const AmpStrategy *s)
{
    const uint32_t of_stage = s->dp * s->tmp;
    Strategy strategy;
    strategy_init(&strategy);
    strategy.pp = s->pp;
    strategy.dp = s->dp;
    strategy.tp = s->tmp;
    strategy.micro_batch = s->mbs;
    strategy.schedule = t->search.schedule;
    strategy.virtual_stages = s->chunks;
    strategy.recompute = t->search.recompute;
    strategy.zero_ranks = t->question->options->strategy.zero_ranks;
    strategy.offload = t->question->options->strategy.offload;
    if (s->dp > 1 || strategy.offload) /* else it has no effect */
        strategy.zero = t->search.zero;
    if (s->tmp > 1)
        strategy.sequence_parallel = t->question->options->strategy.sequence_parallel;
    strategy.cuts = synth_strategy_list(s->first + 1, s->pp * s->chunks - 1);
    strategy.ranks = strategy_ranks_text(s->device, of_stage, s->pp, of_stage);
    return strategy;
}

/* The candidate's program, made by its strategy where the strategy has more keys than the search
 * chooses. */
static Program *amp_program_of(const Trials *t, const AmpCandidate *candidate,
                               const Strategy *strategy, GError **error)
{
    const Graph *graph = t->question->graph;
    const ClusterView *view = t->question->view;
    if (strategy->zero == 0 && !strategy->sequence_parallel)
        return synth_amp_program(graph, view, &t->search, &candidate->strategy, error);
    g_auto(StrategyLayout) layout = {0};
    return strategy_lay_out(strategy, graph, view->n_devices, &layout, error)
               ? synth_strategy_briefly(graph, view, &(StrategyPipelines){1, &layout},
                                        error)
               : NULL;
}

/* Whether the framework that is asked for runs the candidate; *error gets the first refusal. */
static bool is_for(const Trials *t, const AmpCandidate *candidate, GError **error)
{
    const char *target = planner_options_target(t->question->options);
    const Graph *graph = t->question->graph;
    const ClusterView *view = t->question->view;
    g_auto(StrategyLayout) layout = {0};
    if (!target)
        return true;
    const Strategy strategy = strategy_of(t, &candidate->strategy);
    return strategy_lay_out(&strategy, graph, view->n_devices, &layout, error) &&
           export_check(target, &layout, graph, view, error);
}

/* Simulates a candidate, which becomes the best if it fits and is faster, or is the first. */
static bool try_candidate(Trials *t, const AmpCandidate *candidate, GError **error)
{
    const Strategy strategy = strategy_of(t, &candidate->strategy);
    Program *program = amp_program_of(t, candidate, &strategy, error);
    if (!program || !put_program(t, program, &strategy, error))
        return false;
    if (plan_is_better(t->plan, t->best.plan))
        answer_set_aside(t->answer, t->plan, t->question, &t->best);
    return true;
}

/* Whether bounds of candidates hold: where only some stages cut tensors along the sequence, they
 * know all-reduces that the program has not. */
static bool bounds_hold(const Question *question)
{
    const char *sequence = question->options->strategy.sequence_parallel;
    return !sequence || (strcmp(sequence, "on") == 0 && !*question->options->amp.profile);
}

/* The time from which on a plan is of no use; INFINITY where bounds do not hold. */
static double upper_of(const Question *question, const Answer *answer)
{
    return bounds_hold(question) ? answer->upper_s : INFINITY;
}

/* Whether a bound shows that the candidate is not faster than a plan that is known elsewhere. */
static bool is_lost(const Trials *t, const AmpCandidate *candidate)
{
    return candidate->least_s >= upper_of(t->question, t->answer);
}

/* Whether one shows that it is not faster than the best one; or, short of all effort, the predicted
 * time does, which is off by about the same factor for all, or shows that it is no use. */
static bool is_beaten(const Trials *t, const AmpCandidate *candidate)
{
    static const double about = 0.8;
    const Plan *best = t->best.plan;
    const double best_s = best && best->feasible ? best->iteration_time_s : INFINITY,
                 predicted_s = about * t->off * candidate->cost.total_s;
    const bool short_of_all = t->question->options->work > 0 && !t->search.faithful;
    return (best && short_of_all && predicted_s >= fmin(best_s, t->answer->upper_s)) ||
           (bounds_hold(t->question) && candidate->least_s >= best_s);
}

/* Tries the cuts of others of the first `n` candidates on those that come close to the best, of
 * which took_s has the seconds. A candidate's own cuts are the best by T (amp.h), which is not the
 * time: others may be faster, and without them a better machine may get a slower plan. */
static bool mix_cuts(Trials *t, const GArray *candidates, const double *took_s, guint n,
                     GError **error)
{
    static const double close = 1.05;
    const AmpCandidate *all = (const AmpCandidate *)(const void *)candidates->data;
    const bool open = t->question->planner->variant == AMP_SEARCH && !t->search.faithful,
               found = t->best.plan && t->best.plan->feasible;
    const double most_s = open && found ? close * t->best.plan->iteration_time_s : 0;
    for (guint i = 0; i < n; i++)
        for (guint j = 0; j < n && took_s[i] <= most_s; j++) {
            AmpCandidate mixed = all[i];
            const AmpStrategy *own = &all[i].strategy, *other = &all[j].strategy;
            const uint32_t stages = own->pp * own->chunks;
            mixed.strategy.first = other->first;
            if (other->pp * other->chunks == stages &&
                memcmp(own->first, other->first, stages * sizeof *own->first) != 0 &&
                is_for(t, &mixed, NULL) && !try_candidate(t, &mixed, error))
                return false;
        }
    return true;
}

/* Tries the first `trials` candidates, and more until one fits, without those that cannot be of
 * use; or only the candidate of the requested rank. */
static bool run_trials(Trials *t, const GArray *candidates, GError **error)
{
    const AmpPlanOptions *amp = &t->question->options->amp;
    if (amp->rank > t->n_most)
        return refuse(error, "option 'rank': expected one of %u strategies, got %u",
                      t->n_most, amp->rank);
    if (amp->rank > candidates->len)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "option 'rank': of %u strategies %u are proposed and fit "
                           "the memory, got %u",
                           t->n_most, candidates->len, amp->rank);
    if (amp->rank)
        return try_candidate(t, &g_array_index(candidates, AmpCandidate, amp->rank - 1),
                             error);
    bool lost = false;
    g_autoptr(GError) refusal = NULL;
    g_autofree double *took_s = g_new(double, candidates->len);
    guint i = 0;
    for (guint tried = 0;
         i < candidates->len && (tried < MAX(amp->trials, 1) ||
                                 !((t->best.plan && t->best.plan->feasible) || lost));
         i++) {
        const AmpCandidate *candidate = &g_array_index(candidates, AmpCandidate, i);
        took_s[i] = INFINITY;
        if (!is_for(t, candidate, refusal ? NULL : &refusal))
            continue;
        tried++;
        lost |= is_lost(t, candidate);
        if (is_lost(t, candidate) || is_beaten(t, candidate))
            continue;
        if (!try_candidate(t, candidate, error))
            return false;
        took_s[i] = t->plan->iteration_time_s;
        t->off = fmin(t->off, took_s[i] / candidate->cost.total_s);
    }
    if (!mix_cuts(t, candidates, took_s, i, error))
        return false;
    if (!t->best.plan && refusal) {
        g_propagate_error(error, g_steal_pointer(&refusal));
        return kilter_prefix(
            error,
            "none of %u strategies that fit is for it (--planner auto may have others): ",
            candidates->len);
    }
    if (!t->best.plan && t->answer->beaten)
        *t->answer->beaten = true;
    return t->best.plan ||
           kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "no strategy is faster than %g s, which a known plan takes",
                       t->answer->upper_s);
}

static AmpMethod method_of(const Question *question)
{
    const AmpMethod method = (AmpMethod)question->planner->variant;
    return method == AMP_MEGATRON_LAYERS &&
                   question->options->amp.balance == AMP_BALANCE_PARAMETERS
               ? AMP_MEGATRON_PARAMETERS
               : method;
}

/* Searches, and tries what is found. */
static bool amp_try(Trials *t, GError **error)
{
    const gint64 start = g_get_monotonic_time();
    g_autoptr(GArray) candidates = find_candidates(t, method_of(t->question), error);
    t->plan->search_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return candidates && run_trials(t, candidates, error);
}

/* Where a framework runs none of the strategies, those with states divided among replicas come
 * next, unless the user says which, or auto, which tries them by itself. */
bool amp_make(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    Trials t = {.question = question,
                .answer = answer,
                .search = search_options(question->options),
                .off = INFINITY,
                .plan = plan};
    uint64_t work = 0;
    t.search.work = &work;
    /* a rank counts all strategies */
    if (question->options->amp.rank == 0 && isfinite(upper_of(question, answer)))
        t.search.upper_s = answer->upper_s;
    t.search.beaten = answer->beaten;
    bool done = amp_try(&t, error);
    const bool open = planner_options_target(question->options) && !answer->unbounded &&
                      planner_options_is_default(question->options, "zero");
    for (uint32_t zero = 1; open && !done && zero <= MOST_ZERO; zero++) {
        g_autoptr(GError) none = NULL;
        t.search.zero = zero;
        done = amp_try(&t, &none);
        if (done)
            g_clear_error(error);
    }
    plan->search_labels = work; /* cells of tables, which repeat unlike seconds */
    if (done)
        answer_put_back(answer, plan, question, &t.best);
    answer_aside_clear(&t.best);
    return done;
}
