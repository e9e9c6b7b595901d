/* FlexFlow's search: a Markov chain over the op groups' actions. */
#include <math.h>

#include "synth/tag/search_state.h"

static bool is_taken(TagState *t, TagScore next, TagScore now, double heat_s)
{
    if (tag_is_better(next, now))
        return true;
    return next.lacks <= now.lacks &&
           g_rand_double(t->rand) < exp(-(next.time_s - now.time_s) / heat_s);
}

void tag_search_chain(TagState *t)
{
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        action[i] = (uint16_t)tag_data_parallel(t->space);
    TagScore now = tag_state_try(t, action, INFINITY);
    const double heat_s = t->search->heat * now.time_s;
    /* As in the paper proposals are counted, also of strategies evaluated before. */
    while (t->result->iterations++ < t->search->evaluations &&
           (t->search->deadline_us == 0 ||
            g_get_monotonic_time() < t->search->deadline_us)) {
        const uint32_t at = (uint32_t)g_rand_int_range(t->rand, 0, (gint32)t->n);
        const uint16_t before = action[at];
        action[at] = (uint16_t)g_rand_int_range(t->rand, 0, (gint32)t->space->n_actions);
        const TagScore next = tag_state_try(t, action, INFINITY);
        if (is_taken(t, next, now, heat_s))
            now = next;
        else
            action[at] = before;
    }
}
