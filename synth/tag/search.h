/* TAG's searches for a strategy. Part of synth's public interface, included by synth/synth.h.
 *
 *     best    uniform strategies, then group by group in the order of cost, then local moves with
 *             restarts: one group, runs of neighbours, one action for another everywhere
 *     mcts    TAG's tree search (Sec. 4.2.4): depth i decides group i, undecided groups take the
 *             first one's action; vertices are chosen by
 *
 *                 Q + c G sqrt(sum of N) / (1 + N),   c = sqrt(actions / 10),
 *
 *             G = 1 / actions, or by its network (synth/tag/net.h),
 *
 *             with the reward t_DP / t - 1, its fourth root above 1, -1 if it does not fit
 *             (TAG's artifact); all children are made at once. With `leave` finished vertices leave
 *             the tree, which otherwise soon visits nothing else. With `leaves` = K > 1 it goes in
 *             rounds: K leaves are chosen one after the other, each visit counting as a reward of -1
 *             until it is known, and then evaluated by any number of threads; what is found
 *             depends on K, not on the threads
 *     chain   FlexFlow's search (MLSys'19, Sec. 6): a Markov chain from data parallelism; one
 *             group's action is drawn anew at a time and accepted with probability exp(-(t' - t) /
 *             (t_DP / 100))
 *     exact   branch and bound with the bound below: the optimum, if it closes
 *
 * Results of evaluations are kept; `evaluations` counts different strategies.
 *
 * The bound. For all strategies of the space and any schedule the time is at least
 *
 *     sum_r w_r row_r(y) at the strategy y that makes it least, for any weights w_r >= 0 with sum 1
 *
 * A row is a device, on which op group i under action s computes and takes part in all-reduces for
 * load(i, s, r) seconds (for `flow` these are two rows), or a path through the graph: the mean
 * times of its ops, what devices do between two of them because they work in order (for `stage`
 * this includes all-reduces, synth/tag/paths.c), and the transfers between consecutive ops on
 * different device groups, if their op groups are equal or neighbours in a spanning tree. Therefore
 * the minimal strategy is found exactly, by dynamic programming over that tree (synth/tag/tree.h).
 * The mean time of an op is over its replicas, weighted by their shares of the batch: a sample may
 * pass slow devices in one group and fast devices in the next, and the slowest sample takes at
 * least the average. For work that every device does in full (DUPLICATE, updates) it is the least
 * time. An op that makes a parameter's gradient takes the all-reduce in addition. Shared links are
 * left out; of memory only what rests between iterations counts, and rules out branches. In a
 * partial strategy decided groups have one action, and the longest of all paths is a bound, too. */
#pragma once

#include "synth/tag/net.h"
#include "synth/tag/sfb_graph.h"
#include "synth/tag/tag.h"

typedef struct TagState TagState; /* synth/tag/search_state.h */

/* TAG_OWN: a search of the caller's. */
typedef enum { TAG_BEST, TAG_MCTS, TAG_EXACT, TAG_CHAIN, TAG_OWN } TagMethod;
typedef enum { TAG_BY_STAGE, TAG_BY_FLOW } TagObjective;

typedef struct {
    TagMethod method;
    TagObjective objective;
    uint32_t evaluations; /* at most so many; 0: no limit (exact) */
    bool leave;           /* mcts: finished vertices leave the tree */
    bool by_gradients;    /* largest first; undecided groups copy the last */
    /* chain: the part of data parallelism's time by which a strategy is worse that is taken with
     * probability 1/e */
    double heat;
    uint32_t leaves;  /* mcts: of a round; 0 and 1: one after the other */
    uint32_t threads; /* mcts: that evaluate them, at most; 0: the number of processors */
    const TagNet *net;            /* mcts: gives the priors; NULL: uniform priors */
    void (*own)(TagState *state); /* TAG_OWN */
    /* mcts: out, NetLesson of vertices with at least lesson_visits visits; or NULL */
    GPtrArray *lessons;
    uint32_t lesson_visits; /* see `lessons` */
    bool until_beaten;      /* ends as soon as a strategy beats data parallelism */
    uint64_t seed;
    gint64 deadline_us; /* by g_get_monotonic_time(); 0: never */
} TagSearch;

typedef struct {
    /* [op group]: the best strategy that fits, or the one that lacks least */
    uint16_t *action;
    double time_s, stage_s, flow_s;
    bool fits;
    bool optimal;         /* proved (exact) */
    uint32_t evaluations; /* different strategies */
    uint32_t iterations;  /* iterations of mcts and chain */
    /* iterations, or evaluations, until a strategy beat data parallelism; 0: none did */
    uint32_t to_beat_dp;
} TagResult;

AUTOCLEAR(tag_result_clear, TagResult)

/* quick: made for the space's device groups, by number. start: [n_starts * op groups], strategies
 * to try first; or NULL. */
void synth_tag_search(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      const TagSearch *search, const uint16_t *start, uint32_t n_starts,
                      TagResult *result);

/* Duplicates ops of the placement by sufficient factor broadcasting (synth/tag/sfb.h), where this
 * makes it faster and no more memory is missing; returns their number. by_paper: each gradient
 * alone, by the paper's formula. */
uint32_t synth_tag_factors(const TagSpace *space, const TagWork *work, SimQuick *quick,
                           TagObjective objective, bool by_paper,
                           TagPlacement *placement);

/* --- one strategy --- */

typedef struct TagEvaluator TagEvaluator;
TagEvaluator *tag_evaluator_new(const TagSpace *space, const TagWork *work,
                                SimQuick *quick, TagObjective objective);
AUTOPTR(tag_evaluator_free, TagEvaluator)

typedef struct {
    double time_s; /* seconds by the objective */
    double
        /* missing bytes, summed over devices; 0: it fits. Not computed if the time is not below the
         * limit asked for */
        lacks;
} TagScore;

/* Evaluates a strategy; its memory only if the time is below `below_s`. */
TagScore tag_evaluate(TagEvaluator *evaluator, const uint16_t *action, double below_s);
/* Evaluates n strategies [n * op groups] with their memory, on that many threads at most (0: the
 * number of processors), for tag_evaluate to know them. */
void tag_evaluate_ahead(TagEvaluator *evaluator, const uint16_t *action, uint32_t n,
                        uint32_t threads);
uint32_t tag_evaluations(const TagEvaluator *evaluator);
/* The strategy's program, of all groups of the space. */
Program *tag_program(TagEvaluator *evaluator, const uint16_t *action);
SimQuickTimes tag_times(TagEvaluator *evaluator, const uint16_t *action);

/* The bytes that a program lacks, summed over devices. peak: scratch, [device]. */
double tag_lacking(const ClusterView *view, SimQuick *quick, const Program *program,
                   uint64_t *peak);

/* Whether a is better than b: a strategy that fits comes first, then the faster one; of two that do
 * not fit, the one that lacks fewer bytes. */
static inline bool tag_is_better(TagScore a, TagScore b)
{
    if ((a.lacks > 0) != (b.lacks > 0))
        return b.lacks > 0;
    return a.lacks > 0 ? a.lacks < b.lacks : a.time_s < b.time_s;
}

/* --- the bound --- */

typedef struct TagBound TagBound;
/* The strategies that the bound is on: those that sum each gradient on its own (SIM_SUMS_EACH);
 * strategies that fuse gradients in buckets of any kind, too, where paths include no all-reduces
 * between ops (SIM_SUMS_FUSED); strategies with sufficient factors as well, which need no sums
 * (SIM_SUMS_FREE). The prices of `quick` are reset afterwards. */
TagBound *tag_bound_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                        TagObjective objective, SimQuickSums sums);
AUTOPTR(tag_bound_free, TagBound)

/* The same by branch and bound on op groups' actions, with weights of their own in each branch: a
 * bound on all strategies that fit and are faster than best_s, and best_s if there is none.
 * branches: the most branches to visit. */
double tag_bound_branch(TagBound *bound, double best_s, uint32_t branches);
/* strategy: out, the strategies that were minimal under the weights tried, [n * op groups]; returns
 * n. */
uint32_t tag_bound_seen(const TagBound *bound, const uint16_t **strategy);

enum { TAG_UNDECIDED = UINT16_MAX };
/* A bound in seconds on all strategies that fit and have these actions [op group] where they are
 * decided; infinite if none can fit. */
double tag_bound(TagBound *bound, const uint16_t *action);
