/* SPMD programs for stages of the planner joint, by HAP's planner (private to synth). The programs
 * of a group are looked for once a promise may win there. */
#pragma once

#include "synth/answer/answer.h"
#include "synth/joint/joint.h"

typedef struct JointHap JointHap;
/* The answer gives the deadline. */
JointHap *joint_hap_new(const Question *question, const Answer *answer);
AUTOPTR(joint_hap_free, JointHap)

/* The equal pieces of the batch that microbatches divide: groups of samples that an op joins are
 * one; 1: it cannot be cut. */
uint32_t joint_hap_pieces(const JointHap *hap);

/* Settles a group: adds the entries of its program for shares as they are, and of one that does not
 * cut the batch. */
void joint_hap_settle(JointHap *hap, JointMenu *menu, JointProblem *problem,
                      uint32_t group);
/* Adds entries of the program for rounded shares, which takes longer, to a settled group, unless it
 * has them. Returns the first of these; n_entries if there are none. */
uint32_t joint_hap_polish(JointHap *hap, JointMenu *menu, JointProblem *problem,
                          uint32_t group);
