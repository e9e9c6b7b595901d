/* The budget of TAG's searches, and the best strategy that they have met. */
#include "synth/tag/search_state.h"

#include <math.h>
#include <string.h>

bool tag_state_is_over(const TagState *t)
{
    return (t->search->evaluations > 0 &&
            tag_evaluations(t->evaluator) >= t->search->evaluations) ||
           (t->search->deadline_us > 0 &&
            g_get_monotonic_time() >= t->search->deadline_us);
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
