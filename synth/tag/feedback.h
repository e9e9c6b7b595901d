/* The features that running a strategy gives beside its time: TAG's runtime feedback (Sec. 4.2.1
 * and Table 1), as `flow` on an ideal crossbar has it. Private to synth/tag. */
#pragma once

#include "synth/tag/tag.h"

/* Times are parts of the iteration's. */
typedef struct {
    uint32_t n_groups, n_sets;
    double *makespan; /* [op group]: from its first op's start to its last op's end */
    /* [op group]: mean time from the end of an op to the start of a sum or transfer of its
     * result */
    double *wait;
    double *busy; /* [device set]: mean of its devices, in which they compute */
    /* [device set]: the largest peak of its devices, as a part of their memory */
    double *memory;
    /* [set * n_sets + set]: in which transfers go there or sums run in both; at most 1 */
    double *link;
} TagFeedback;

/* Runs the program, of all groups of the space. */
TagFeedback *tag_feedback_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                              const Program *program);
AUTOPTR(tag_feedback_free, TagFeedback)
