/* TAG's searches for a strategy. Part of synth's public interface, included by synth/synth.h.
 *
 *     best    uniform strategies, then group by group in the order of cost, then local moves with
 *             restarts: one group, runs of neighbours, one action for another everywhere
 *     mcts    TAG's tree search (Sec. 4.2.4): depth i decides group i, undecided groups take the first
 *             one's action; vertices are chosen by
 *
 *                 Q + c G sqrt(sum of N) / (1 + N),   c = sqrt(actions / 10),
 *
 *             G = 1 / actions, or by its network (synth/tag/net.h),
 *
 *             with the reward t_DP / t - 1, above 1 to the fourth root, -1 without memory (its artifact);
 *             all children are made at once. By option finished vertices leave the tree, which otherwise
 *             soon visits nothing else.
 *     chain   FlexFlow's (MLSys'19, Sec. 6): a Markov chain from data parallelism, one group's action drawn
 *             anew at a time, taken with probability exp(-(t' - t) / (t_DP / 100))
 *     exact   branch and bound with the bound below: the optimum, if it closes
 *
 * What is evaluated once is remembered; `evaluations` counts different strategies.
 *
 * The bound. For all strategies of the space and any schedule the time is at least
 *
 *     sum_r w_r row_r(y) at the strategy y that makes it least, for any weights w_r >= 0 with sum 1
 *
 * A row is a device, on which op group i under action s computes and takes part in all-reduces for load(i, s, r)
 * seconds (by `flow` these are two rows), or a path through the graph: the means of its ops, and transfers where ops that
 * follow one another are on different device groups, of op groups that are the same or neighbours in a spanning tree. So the
 * least strategy is found exactly, by dynamic programming over that tree (synth/tag/tree.h). mean: of the times of the op's
 * replicas, weighted by their shares of the batch: a sample may pass slow devices in one group and fast ones in the next, and
 * the slowest sample's way takes at least as long as they do on average. Of what every device does in
 * full (DUPLICATE, updates) the least. What makes a parameter's gradient takes the all-reduce in
 * addition. Links that are shared, and memory, are left out. In a partial strategy decided groups have one action, and
 * the longest of all paths is a bound, too. */
#ifndef KILTER_SYNTH_TAG_SEARCH_H
#define KILTER_SYNTH_TAG_SEARCH_H

#include "synth/tag/net.h"
#include "synth/tag/sfb_graph.h"
#include "synth/tag/tag.h"

typedef enum { TAG_BEST, TAG_MCTS, TAG_EXACT, TAG_CHAIN } TagMethod;
typedef enum { TAG_BY_STAGE, TAG_BY_FLOW } TagObjective;

typedef struct {
    TagMethod method;
    TagObjective objective;
    uint32_t evaluations;   /* at most; 0: as many as it takes (exact) */
    bool leave;             /* mcts: finished vertices leave the tree */
    const TagNet *net;      /* mcts: its priors; NULL: uniform ones */
    GPtrArray *lessons;     /* mcts: NetLesson, out, of vertices with at least */
    uint32_t lesson_visits; /* so many visits; NULL */
    uint64_t seed;
    gint64 deadline_us; /* by g_get_monotonic_time(); 0: never */
} TagSearch;

typedef struct {
    uint16_t *action; /* [op group]: the best strategy that fits, or that lacks least */
    double time_s, stage_s, flow_s;
    bool fits;
    bool optimal;         /* proved (exact) */
    uint32_t evaluations; /* different strategies */
    uint32_t iterations;  /* of mcts and chain */
    uint32_t
        to_beat_dp; /* iterations, or evaluations, until one was faster than data parallelism; 0: none */
} TagResult;

void tag_result_clear(TagResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TagResult, tag_result_clear)

/* quick: of the space's device groups, by number. start: [n_starts * op groups], strategies that are
 * tried first; NULL. */
void synth_tag_search(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      const TagSearch *search, const uint16_t *start, uint32_t n_starts,
                      TagResult *result);

/* Duplicates ops of the placement by sufficient factor broadcasting (synth/tag/sfb.h), where that makes
 * it faster and no more memory lacks; returns how many. */
uint32_t synth_tag_factors(const TagSpace *space, const TagWork *work, SimQuick *quick,
                           TagObjective objective, TagPlacement *placement);

/* --- one strategy --- */

typedef struct TagEvaluator TagEvaluator;
TagEvaluator *tag_evaluator_new(const TagSpace *space, const TagWork *work,
                                SimQuick *quick, TagObjective objective);
void tag_evaluator_free(TagEvaluator *evaluator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TagEvaluator, tag_evaluator_free)

typedef struct {
    double time_s; /* by the objective */
    double
        lacks; /* bytes, summed over devices; 0: it fits. Not looked at if the time is not below what was asked */
} TagScore;

/* Memory is looked at if the time is below `below_s`. */
TagScore tag_evaluate(TagEvaluator *evaluator, const uint16_t *action, double below_s);
uint32_t tag_evaluations(const TagEvaluator *evaluator);
SimQuickTimes tag_times(TagEvaluator *evaluator, const uint16_t *action);

/* a before b: what fits, then time; of what does not fit what lacks less. */
static inline bool tag_is_better(TagScore a, TagScore b)
{
    if ((a.lacks > 0) != (b.lacks > 0))
        return b.lacks > 0;
    return a.lacks > 0 ? a.lacks < b.lacks : a.time_s < b.time_s;
}

/* --- the bound --- */

typedef struct TagBound TagBound;
TagBound *tag_bound_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                        TagObjective objective);
void tag_bound_free(TagBound *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TagBound, tag_bound_free)

/* The same by branch and bound on op groups' actions, with weights of their own in each branch: of all strategies that are
 * faster than best_s, and best_s if there is none. branches: how many are looked at, at most. */
double tag_bound_branch(TagBound *bound, double best_s, uint32_t branches);
/* The strategies that were least under the weights tried, [n * op groups]; returns n. */
uint32_t tag_bound_seen(const TagBound *bound, const uint16_t **strategy);

enum { TAG_UNDECIDED = UINT16_MAX };
/* Of all strategies with these actions, [op group], where they are decided. Seconds. */
double tag_bound(TagBound *bound, const uint16_t *action);

#endif
