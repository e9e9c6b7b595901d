/* TAG (TPDS 2023), Sec. 4, and its rivals (Sec. 5.2): op groups, each on a subset of the devices,
 * with servers, duplicates and sufficient factors (Sec. 4.2.3), searched by trees (Sec. 4.3);
 * rows.h has the bound on all strategies of these groups (private to synth). */
#pragma once

#include "synth/answer/answer.h"
#include "synth/tag/search.h"
#include "synth/tag/tag.h"

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
bool tag_make_within(const Question *question, Answer *answer, const TagLimits *limits,
                     GError **error);

bool tag_make(const Question *question, Answer *answer, GError **error);
bool tag_make_dp_factors(const Question *question, Answer *answer, GError **error);
bool tag_make_flexflow(const Question *question, Answer *answer, GError **error);
bool tag_make_heterog(const Question *question, Answer *answer, GError **error);
/* Layers on single devices, as Baechi places them; planners' variants are TagListRules. */
bool tag_make_list(const Question *question, Answer *answer, GError **error);
