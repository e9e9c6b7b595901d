/* The states of the joint search (synth/joint/states.h). */
#include "synth/joint/states.h"

void joint_states_clear(JointStates *states)
{
    g_clear_pointer(&states->next, g_free);
    g_clear_pointer(&states->left, g_free);
}

/* Fills the row of a state that has used[kind] units; step[kind]: weight of a unit in a state's
 * number. */
static void fill_row(JointStates *states, const JointProblem *p, uint32_t state,
                     const uint32_t *used, const uint32_t *step)
{
    for (uint32_t g = 0; g < p->n_groups; g++) {
        const uint32_t *use = p->group[g].use;
        uint32_t to = state;
        bool has = true;
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            has &= used[k] + use[k] <= p->units[k];
            to += use[k] * step[k];
        }
        states->next[(size_t)state * p->n_groups + g] = has ? to : JOINT_NO_STATE;
    }
}

/* One state per combination of used units. */
static void fill_all(JointStates *states, const JointProblem *p, const double *value)
{
    g_autofree uint32_t *step = g_new(uint32_t, p->n_kinds),
                        *used = g_new(uint32_t, p->n_kinds);
    uint32_t n = 1;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        step[k] = n;
        n *= p->units[k] + 1;
    }
    states->n = n;
    states->next = g_new(uint32_t, (size_t)n * MAX(p->n_groups, 1));
    states->left = g_new0(double, n);
    for (uint32_t state = 0; state < n; state++) {
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            used[k] = state / step[k] % (p->units[k] + 1);
            states->left[state] += value[k] * (p->units[k] - used[k]);
        }
        fill_row(states, p, state, used, step);
    }
}

/* --- one kind after the other --- */

/* The place of a kind in the order. */
static uint32_t place_of(const uint32_t *order, uint32_t kind)
{
    uint32_t place = 0;
    while (order[place] != kind)
        place++;
    return place;
}

/* The state that a group leads to from one that has `used` units of the kind at `place`; first:
 * [place] the state with no unit of its kind. */
static uint32_t follow(const JointProblem *p, const JointGroup *g, const uint32_t *order,
                       const uint32_t *first, uint32_t place, uint32_t used)
{
    uint32_t begin = p->n_kinds, end = 0, n = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const uint32_t at = place_of(order, k);
        if (g->use[k] == 0)
            continue;
        begin = MIN(begin, at);
        end = MAX(end, at);
        n++;
    }
    const bool adjacent = n > 0 && end - begin + 1 == n;
    if (!adjacent || begin < place ||
        (begin == place && used + g->use[order[place]] > p->units[order[place]]))
        return JOINT_NO_STATE;
    return first[end] + g->use[order[end]] + (end == place ? used : 0);
}

/* One state per kind and number of used units of it, where kinds follow one another. */
static void fill_ordered(JointStates *states, const JointProblem *p,
                         const uint32_t *order, const double *value)
{
    g_autofree uint32_t *first = g_new(uint32_t, p->n_kinds);
    double left = 0;
    states->n = 0;
    for (uint32_t at = 0; at < p->n_kinds; at++) {
        first[at] = states->n;
        states->n += p->units[order[at]] + 1;
        left += value[order[at]] * p->units[order[at]];
    }
    states->next = g_new(uint32_t, (size_t)states->n * MAX(p->n_groups, 1));
    states->left = g_new(double, states->n);
    for (uint32_t at = 0; at < p->n_kinds; at++) {
        const uint32_t kind = order[at];
        for (uint32_t used = 0; used <= p->units[kind]; used++) {
            const uint32_t state = first[at] + used;
            states->left[state] = left - value[kind] * used;
            for (uint32_t g = 0; g < p->n_groups; g++)
                states->next[(size_t)state * p->n_groups + g] =
                    follow(p, &p->group[g], order, first, at, used);
        }
        left -= value[kind] * p->units[kind];
    }
}

void joint_states_init(JointStates *states, const JointProblem *p, const uint32_t *order,
                       const double *value)
{
    g_assert(p->n_kinds > 0);
    if (order)
        fill_ordered(states, p, order, value);
    else
        fill_all(states, p, value);
}

/* --- orders of kinds --- */

/* Makes the next permutation of 0 .. n - 1; false after the last one. */
static bool permute(uint32_t *place, uint32_t n)
{
    uint32_t i = n - 1, j = n - 1;
    while (i > 0 && place[i - 1] > place[i])
        i--;
    if (i == 0)
        return false;
    while (place[j] < place[i - 1])
        j--;
    const uint32_t swapped = place[i - 1];
    place[i - 1] = place[j];
    place[j] = swapped;
    for (uint32_t a = i, b = n - 1; a < b; a++, b--) {
        const uint32_t moved = place[a];
        place[a] = place[b];
        place[b] = moved;
    }
    return true;
}

/* Seconds of a unit of the kind for all layers. */
static double unit_s(const JointProblem *p, uint32_t kind)
{
    double sum = 0;
    for (uint32_t l = 0; l < p->n_layers; l++)
        sum += p->least_s[kind * p->n_layers + l];
    return sum;
}

uint32_t *synth_joint_orders(const JointProblem *p, uint32_t most, uint32_t *n_orders)
{
    const uint32_t n = p->n_kinds;
    g_autofree uint32_t *place = g_new(uint32_t, n), *by_speed = g_new(uint32_t, n);
    uint32_t *order = g_new(uint32_t, (size_t)most * n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = k;
        for (; at > 0 && unit_s(p, by_speed[at - 1]) < unit_s(p, k); at--)
            by_speed[at] = by_speed[at - 1];
        by_speed[at] = k;
    }
    for (uint32_t k = 0; k < n; k++)
        place[k] = k;
    *n_orders = 0;
    do {
        if (place[0] > place[n - 1]) /* the reverse of one before */
            continue;
        for (uint32_t way = 0; way < 2 && *n_orders < most; way++, (*n_orders)++)
            for (uint32_t k = 0; k < n; k++)
                order[*n_orders * n + k] = by_speed[place[way ? n - 1 - k : k]];
    } while (permute(place, n) && *n_orders < most);
    return order;
}
