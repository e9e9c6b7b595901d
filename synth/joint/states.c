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

void joint_states_init(JointStates *states, const JointProblem *p, const double *value)
{
    g_autofree uint32_t *step = g_new(uint32_t, p->n_kinds),
                        *used = g_new(uint32_t, p->n_kinds);
    uint32_t n = 1;
    g_assert(p->n_kinds > 0);
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
