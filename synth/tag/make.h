/* Planners in the space of TAG's strategies (private to synth). */
#ifndef KILTER_SYNTH_TAG_MAKE_H
#define KILTER_SYNTH_TAG_MAKE_H

#include "synth/question/planning.h"
#include "synth/tag/tag.h"
#include "synth/tag/search.h"

typedef struct {
    TagMethod method;
    bool factors;  /* try sufficient factor broadcasting */
    bool shares;   /* also shares by speed, beside even ones */
    bool parallel; /* also data parallelism with fused gradients */
    bool ones;     /* also single devices, beside subsets */
    bool alike;    /* search as if all devices were of the average speed */
    void (*narrow)(TagSpace *space); /* drops actions; NULL: all of them */
} TagLimits;

/* The best plan within the limits, with a bound on all strategies of the space. */
bool plan_make_in_space(const Planning *planning, const TagLimits *limits, Plan *plan,
                        GError **error);

#endif
