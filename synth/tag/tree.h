/* The cheapest strategy under costs of each op group's action, and of pairs of actions of groups that are neighbours in a
 * tree, by dynamic programming. Private to synth/tag. */
#ifndef KILTER_SYNTH_TAG_TREE_H
#define KILTER_SYNTH_TAG_TREE_H

#include "synth/tag/search.h"

typedef struct {
    uint32_t n, n_actions;
    uint32_t *parent; /* [group], of a root GRAPH_NONE */
    uint32_t *order;  /* groups, parents before children */
    double *alone;    /* [group * n_actions + action] */
    double *
        pair; /* [(group * n_actions + the parent's action) * n_actions + action]; NULL: 0 */
    double *cost;     /* [group * n_actions + action]: scratch */
    uint16_t *choice; /* [group * n_actions + the parent's action]: scratch */
} TagTree;

/* A spanning forest by the bytes between groups, the most bytes first. pairs: whether pairs have costs. */
TagTree *tag_tree_new(const TagWork *work, uint32_t n_actions, bool pairs);
void tag_tree_free(TagTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TagTree, tag_tree_free)

/* The child of two groups that are neighbours, or GRAPH_NONE. */
uint32_t tag_tree_child(const TagTree *tree, uint32_t a, uint32_t b);

/* The least cost of strategies with these actions where they are decided (TAG_UNDECIDED). best: out, [group],
 * one that has it; NULL. */
double tag_tree_least(TagTree *tree, const uint16_t *action, uint16_t *best);

#endif
