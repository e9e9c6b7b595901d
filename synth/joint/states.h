/* The states of the dynamic program over suffixes of a pipeline: which units its stages have
 * (private to synth/joint). State 0 has none. */
#pragma once

#include "synth/joint/joint.h"

enum { JOINT_NO_STATE = UINT32_MAX };

typedef struct {
    uint32_t n;
    /* [state * n_groups + group]: the state with the group's units, too; JOINT_NO_STATE if it lacks
     * them */
    uint32_t *next;
    double *left; /* [state]: value of the units that are left */
} JointStates;

/* The states of a problem: one per combination of used units, or, with an order of kinds (else
 * NULL), one per kind and number of used units of it. value: [kind] of a unit. */
void joint_states_init(JointStates *states, const JointProblem *problem,
                       const uint32_t *order, const double *value);
void joint_states_clear(JointStates *states);
