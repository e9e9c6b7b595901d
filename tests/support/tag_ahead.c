/* Looking one step ahead, for lessons: op groups in the order of cost get, one after the other, the
 * action whose strategy is fastest where the groups after it are completed as in the tree
 * search. */
#include <math.h>

#include "tests/support/tag_learning.h"

/* A strategy that is slower than the best by this part of what the best gains over the mean gets
 * 1/e of its weight. */
static const double SHARPNESS = 0.25;

/* Tries all actions of the group at `depth`; returns the best one, or UINT32_MAX if none fits.
 * reward: out, [n_actions], the speed-up over data parallelism, -1 where it does not fit. */
static uint32_t look(TagState *t, uint16_t *action, uint32_t depth, double *reward)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t s = 0; s < t->space->n_actions; s++) {
        action[t->by_cost[depth]] = (uint16_t)s;
        tag_state_complete(t, action, depth + 1);
        const TagScore score = tag_state_try(t, action, INFINITY);
        reward[s] = score.lacks > 0 ? -1 : t->dp_s / score.time_s - 1;
        if (score.lacks <= 0 && (best == UINT32_MAX || reward[s] > reward[best]))
            best = s;
    }
    return best;
}

/* Part of the weight of each action that fits; the best has the most. */
static double *weigh(const double *reward, uint32_t n, uint32_t best)
{
    double *weight = g_new0(double, n);
    double mean = 0, sum = 0;
    uint32_t fit = 0;
    for (uint32_t s = 0; s < n; s++)
        if (reward[s] > -1) {
            mean += reward[s];
            fit++;
        }
    const double unit = SHARPNESS * (reward[best] - mean / fit);
    for (uint32_t s = 0; s < n; s++) {
        if (reward[s] > -1)
            weight[s] = unit > 0 ? exp((reward[s] - reward[best]) / unit) : 1;
        sum += weight[s];
    }
    for (uint32_t s = 0; s < n; s++)
        weight[s] /= sum;
    return weight;
}

void tag_search_ahead(TagState *t)
{
    const uint32_t n = t->space->n_actions;
    g_autofree double *reward = g_new(double, n);
    g_autofree uint16_t *action = g_memdup2(t->best, t->n * sizeof *action);
    g_autoptr(NetCase) net =
        t->search->lessons
            ? net_case_new(t->space, t->work, t->quick, t->search->objective, t->dp_s)
            : NULL;
    for (uint32_t depth = 0; depth < t->n && !tag_state_is_over(t); depth++) {
        const uint32_t best = look(t, action, depth, reward);
        if (best == UINT32_MAX)
            break;
        if (net) {
            NetLesson *lesson = g_new0(NetLesson, 1);
            lesson->view = tag_state_view(t, net, action, depth);
            lesson->target = weigh(reward, n, best);
            g_ptr_array_add(t->search->lessons, lesson);
        }
        action[t->by_cost[depth]] = (uint16_t)best;
    }
}
