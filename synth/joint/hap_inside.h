/* SPMD programs for stages of the planner joint, by HAP's planner (private to synth). */
#ifndef KILTER_SYNTH_JOINT_HAP_INSIDE_H
#define KILTER_SYNTH_JOINT_HAP_INSIDE_H

#include "synth/answer/answer.h"
#include "synth/joint/joint.h"

typedef struct JointHap JointHap;
/* The answer gives the deadline. */
JointHap *joint_hap_new(const Question *question, const Answer *answer);
void joint_hap_free(JointHap *hap);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JointHap, joint_hap_free)

/* A JointFinder; data: JointHap. */
bool joint_hap_find(void *data, const JointDevices *devices, JointFind find,
                    uint32_t n_microbatches, JointInside *found);

#endif
