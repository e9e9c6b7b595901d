/* The budget of TAG's searches, the best strategy that they have met, and strategies that are
 * decided in part. */
#include "synth/tag/search_state.h"

#include <math.h>
#include <string.h>

bool tag_state_is_late(const TagState *t)
{
    return t->search->deadline_us > 0 && g_get_monotonic_time() >= t->search->deadline_us;
}

bool tag_state_is_over(const TagState *t)
{
    return (t->search->evaluations > 0 &&
            tag_evaluations(t->evaluator) >= t->search->evaluations) ||
           (t->search->until_beaten && t->result->to_beat_dp > 0) || tag_state_is_late(t);
}

TagScore tag_state_try(TagState *t, const uint16_t *action, double below_s)
{
    const TagScore score =
        tag_evaluate(t->evaluator, action, fmax(below_s, t->best_score.time_s));
    if (t->result->to_beat_dp == 0 && score.lacks <= 0 && score.time_s < t->dp_s)
        t->result->to_beat_dp = tag_evaluations(t->evaluator);
    if (tag_is_better(score, t->best_score)) {
        t->best_score = score;
        memcpy(t->best, action, t->n * sizeof *action);
    }
    return score;
}

void tag_state_complete(const TagState *t, uint16_t *action, uint32_t depth)
{
    KILTER_ASSERT(depth <= t->n);
    const uint16_t first = action[t->by_cost[0]];
    uint16_t last = first;
    for (uint32_t i = MAX(depth, 1); i < t->n; i++)
        action[t->by_cost[i]] = TAG_UNDECIDED;
    for (uint32_t i = 0; i < t->n; i++) {
        uint16_t *group = &action[t->by_place[i]];
        if (*group == TAG_UNDECIDED)
            *group = t->search->by_gradients ? last : first;
        last = *group;
    }
}

NetView *tag_state_view(const TagState *t, const NetCase *net, const uint16_t *action,
                        uint32_t depth)
{
    g_autofree uint16_t *strategy = g_memdup2(action, t->n * sizeof *action);
    g_autofree bool *decided = g_new0(bool, t->n + 1);
    if (depth == 0)
        strategy[t->by_cost[0]] = (uint16_t)tag_data_parallel(t->space);
    tag_state_complete(t, strategy, depth);
    for (uint32_t i = 0; i < depth; i++)
        decided[t->by_cost[i]] = true;
    return net_case_view(net, t->evaluator, strategy, decided, t->by_cost[depth]);
}
