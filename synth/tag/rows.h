/* The rows of TAG's bound (synth/tag/search.h): loads of devices and times of paths, and their weights. Private to
 * synth/tag. */
#ifndef KILTER_SYNTH_TAG_ROWS_H
#define KILTER_SYNTH_TAG_ROWS_H

#include "synth/tag/tree.h"

enum {
    MOST_PATHS = 6,
    MOST_PAIRS = 128 /* actions, above which transfers between groups are left out */
};

struct TagBound {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    TagTree *tree;
    uint32_t n_devices; /* rows of devices; then of paths */
    uint32_t n_rows, n_paths;
    double *load;    /* [(op group * n_actions + action) * n_rows + row] */
    double *mean;    /* [op * n_actions + action] */
    uint16_t *place; /* [op * n_actions + action]: device group */
    double *least;   /* [op]: of the actions */
    double *slow,
        *sums; /* [op group * n_actions + action]: of ops on their slowest devices, of all-reduces */
    double *pair[MOST_PATHS]; /* as the tree's; NULL: 0 */
    double *weight;           /* [row], sums to 1 */
    double *until;            /* [op]: scratch */
    double *scratch;          /* [row] */
    OpId *before;             /* [op]: scratch */
    uint16_t *now;            /* [op group]: scratch */
    GArray *seen;             /* strategies that were least, n_groups each */
    uint32_t *
        switched; /* [op group]: rounds in which its action was another one than before */
};

/* All but the weights; the rows are those of devices and the longest paths of the least times, and of data
 * parallelism. */
TagBound *tag_rows_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                       TagObjective objective);

/* Makes the longest path of a strategy a row, with as much weight as any. */
void tag_rows_add_path(TagBound *bound, const uint16_t *action);

/* The longest path; undecided groups take the least. Seconds. */
double tag_rows_longest(TagBound *bound, const uint16_t *action);

/* The rows' times of a strategy that is decided, [row]. */
void tag_rows_of(const TagBound *bound, const uint16_t *action, double *row);

/* Gives the tree the costs under the weights. */
void tag_rows_weigh(TagBound *bound);

/* The most that devices have to do of the groups that are decided. */
double tag_rows_decided(TagBound *bound, const uint16_t *action);

/* Keeps strategies that are best if all is done in turn, but for a part of the all-reduces, for the
 * search. */
void tag_rows_serial(TagBound *bound);

/* Improves the weights for the strategies with these actions; the tree keeps their costs. Returns the bound. */
double tag_weights_find(TagBound *bound, const uint16_t *action, uint32_t rounds);

#endif
