/* The cheapest strategy by dynamic programming, given a cost for each op group's action, and for
 * each pair of actions of groups that are neighbours in a tree. Private to synth/tag. */
#pragma once

#include "synth/tag/search.h"

typedef struct {
    uint32_t n, n_actions;
    uint32_t *parent; /* [group]: GRAPH_NONE for a root */
    uint32_t *order;  /* groups, parents before children */
    double *alone;    /* [group * n_actions + action] */
    /* [(group * n_actions + the parent's action) * n_actions + action]; NULL: 0 */
    double *pair;
    double *cost;     /* [group * n_actions + action]: scratch */
    uint16_t *choice; /* [group * n_actions + the parent's action]: scratch */
} TagTree;

/* A spanning forest of the groups, which prefers edges with more bytes between groups. pairs:
 * whether pairs have costs. */
TagTree *tag_tree_new(const TagWork *work, uint32_t n_actions, bool pairs);
AUTOPTR(tag_tree_free, TagTree)

/* Of two groups that are neighbours the child; GRAPH_NONE if they are not neighbours. */
uint32_t tag_tree_child(const TagTree *tree, uint32_t a, uint32_t b);

/* The least cost of strategies with these actions where they are decided (TAG_UNDECIDED). best:
 * out, [group], a strategy with that cost; or NULL. */
double tag_tree_least(TagTree *tree, const uint16_t *action, uint16_t *best);
