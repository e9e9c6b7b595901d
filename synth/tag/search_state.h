/* The state shared by TAG's searches. Private to synth/tag. */
#pragma once

#include "synth/tag/features.h"
#include "synth/tag/search.h"

struct TagState {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    const TagSearch *search;
    TagEvaluator *evaluator;
    uint32_t n;            /* op groups */
    const uint16_t *start; /* [n_starts * n] */
    uint32_t n_starts;
    uint32_t *by_cost;  /* op groups, longest or largest first */
    uint32_t *by_place; /* op groups by their first ops */
    uint16_t *best;     /* [op group] */
    TagScore best_score;
    /* seconds of data parallelism, to count until it is beaten; 0: not counted */
    double dp_s;
    GRand *rand;
    TagResult *result;
};

bool tag_state_is_late(const TagState *t);

/* Whether the evaluations or the time are used up. */
bool tag_state_is_over(const TagState *t);

/* Evaluates a strategy and keeps it if it is the best one; computes its memory if its time is below
 * `below_s`, or if it may be the best. */
TagScore tag_state_try(TagState *t, const uint16_t *action, double below_s);

/* Gives groups from `depth` on, in the order of cost, the action of the first group,
 * TAG's completion, or that of the last decided one before them in the program. */
void tag_state_complete(const TagState *t, uint16_t *action, uint32_t depth);

/* A vertex whose groups before `depth` have these actions, as the network sees it; before any is
 * decided the strategy is data parallelism. */
NetView *tag_state_view(const TagState *t, const NetCase *net, const uint16_t *action,
                        uint32_t depth);

void tag_search_tree(TagState *t);  /* synth/tag/mcts.c */
void tag_search_exact(TagState *t); /* synth/tag/exact.c */
