/* Branch and bound over op groups in the order of cost; children are visited in the order of their
 * bounds. */
#include <math.h>
#include <stdlib.h>

#include "data/base/order.h"
#include "synth/tag/search_state.h"

typedef struct {
    double bound;
    uint16_t action;
} Child;

static ORDER_DEFINE(compare, Child, ASCENDING(bound), ASCENDING(action));

/* Whether no strategy with this bound can be better than the best known, or none fits. */
static bool bound_is_hopeless(const TagState *t, double bound)
{
    return isinf(bound) || (t->best_score.lacks <= 0 && bound >= t->best_score.time_s);
}

/* Searches below a partial strategy. False if evaluations or time ran out. */
static bool branch(TagState *t, TagBound *bound, uint16_t *action, uint32_t depth)
{
    KILTER_ASSERT(depth <= t->n);
    if (depth == t->n) {
        if (tag_state_is_over(t))
            return false;
        tag_state_try(t, action, INFINITY);
        return true;
    }
    const uint32_t group = t->by_cost[depth];
    g_autofree Child *child = g_new(Child, t->space->n_actions);
    bool whole = true;
    for (uint32_t s = 0; s < t->space->n_actions; s++) {
        action[group] = (uint16_t)s;
        child[s] = (Child){tag_bound(bound, action), (uint16_t)s};
    }
    qsort(child, t->space->n_actions, sizeof *child, compare);
    for (uint32_t s = 0; whole && s < t->space->n_actions; s++) {
        if (bound_is_hopeless(t, child[s].bound))
            break;
        action[group] = child[s].action;
        whole = branch(t, bound, action, depth + 1);
    }
    action[group] = TAG_UNDECIDED;
    return whole;
}

void tag_search_exact(TagState *t)
{
    g_autoptr(TagBound) bound =
        tag_bound_new(t->space, t->work, t->quick, t->search->objective, SIM_SUMS_EACH);
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    for (uint32_t s = 0; s < t->space->n_actions && !tag_state_is_over(t); s++) {
        for (uint32_t i = 0; i < t->n; i++)
            action[i] = (uint16_t)s;
        tag_state_try(t, action, INFINITY);
    }
    for (uint32_t i = 0; i < t->n; i++)
        action[i] = TAG_UNDECIDED;
    t->result->optimal = branch(t, bound, action, 0) && t->best_score.lacks <= 0;
}
