/* The rows of TAG's bound (synth/tag/search.h): loads of devices and times of paths, and their
 * weights. Private to synth/tag. */
#pragma once

#include "synth/tag/tree.h"

enum {
    MOST_PATHS = 6,
    MOST_PAIRS = 128 /* with more actions transfers between groups are left out */
};

/* The work of an op under an action. */
typedef struct {
    uint16_t group; /* device group */
    /* computation; the mean of the replicas, or the least of devices that do all of it */
    double mean_s;
    double sum_s; /* all-reduces of gradients that it makes */
} TagPart;

/* A gradient, from the op that makes it to the update that reads it. */
typedef struct {
    OpId maker, update;
    double bytes;
} TagGradient;

/* The bytes that rest on the devices: parameters and optimizer states, where their updates run. */
typedef struct {
    const TagBound *bound; /* borrowed */
    uint32_t n_devices, n_actions;
    double *bytes; /* [(op group * n_actions + action) * n_devices + device] */
    /* [op group * (n_devices + 1) + device]: of all actions; last: on all devices */
    double *least;
    double *has;      /* [device]; last: all devices */
    double *needs;    /* [device]; last: all devices; scratch */
    GArray *gradient; /* TagGradient */
    double gradients; /* bytes of all of them, once */
} TagRoom;

struct TagBound {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    TagTree *tree;
    TagRoom *room;
    uint32_t n_devices; /* rows of devices come first, then rows of paths */
    uint32_t n_rows, n_paths;
    double *load;  /* [(op group * n_actions + action) * n_rows + row] */
    bool in_turn;  /* collectives stand in place of computation (`stage`) */
    TagPart *part; /* [op * n_actions + action] */
    double *least; /* [op]: on a path, of the actions */
    /* [tensor]: an op on the batch reads it, so that what is partial over replicas is summed
     * before; NULL: such sums cost nothing */
    bool *waited;
    double *slow,
        /* [op group * n_actions + action]: seconds of ops on their slowest devices; of
         * all-reduces */
        *sums;
    double *pair[MOST_PATHS]; /* as in the tree; NULL: 0 */
    double *weight;           /* [row], sums to 1 */
    double *until;            /* [op]: scratch */
    double *scratch;          /* [row] */
    OpId *before;             /* [op]: scratch */
    uint16_t *now;            /* [op group]: scratch */
    GArray *seen;             /* strategies that were minimal, n_groups each */
    /* [op group]: number of rounds in which its action changed */
    uint32_t *switched;
};

static inline double *tag_rows_load(const TagBound *b, uint32_t group, uint32_t action)
{
    return &b->load[((size_t)group * b->space->n_actions + action) * b->n_rows];
}

static inline TagPart *tag_rows_part(const TagBound *b, OpId op, uint32_t action)
{
    return &b->part[(size_t)op * b->space->n_actions + action];
}

/* Seconds of an op on a path. Of several outputs the path may take one that is not summed. */
static inline double tag_rows_on_path(const TagBound *b, OpId op, uint32_t action)
{
    const TagPart *part = tag_rows_part(b, op, action);
    return part->mean_s +
           (graph_get_op(b->work->graph, op)->n_out == 1 ? part->sum_s : 0);
}

/* Seconds to sum a tensor over a group's replicas, by a server or by all of them. */
static inline double tag_rows_sum_s(SimQuick *quick, uint16_t group, bool served,
                                    TensorId tensor)
{
    return served ? sim_quick_served_s(quick, group, tensor)
                  : sim_quick_sum_s(quick, group, tensor);
}

/* Seconds of the sum that a tensor's readers wait for, if it is made on the device group under the
 * action. */
static inline double tag_rows_wait(const TagBound *b, TensorId tensor, uint16_t group,
                                   uint32_t action)
{
    const bool served = b->space->action[action].option == TAG_PS &&
                        graph_tensor(b->work->graph, tensor)->role == ROLE_GRADIENT;
    if (!b->waited || !b->waited[tensor] || b->space->group[group].n_replicas == 1)
        return 0;
    return tag_rows_sum_s(b->quick, group, served, tensor);
}

TagRoom *tag_room_new(const TagBound *bound);
void tag_room_free(TagRoom *room);
/* The least bytes on each device before the first update, and, last, on all of them together.
 * Borrowed until the next call. */
const double *tag_room_needs(const TagRoom *room, const uint16_t *action,
                             uint32_t n_groups);
/* False if no strategy with these decided actions can fit. */
bool tag_room_fits(const TagRoom *room, const uint16_t *action, uint32_t n_groups);

/* Everything but the weights; the rows are the devices, and the longest paths under least times and
 * under data parallelism. */
TagBound *tag_rows_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                       TagObjective objective, bool in_turn);

/* Makes a row, of average weight, of the longest path of a strategy. */
void tag_rows_add_path(TagBound *bound, const uint16_t *action);

/* Seconds of the longest path, where undecided groups take their least times. */
double tag_rows_longest(TagBound *bound, const uint16_t *action);

/* row: out, the rows' times of a complete strategy. */
void tag_rows_of(const TagBound *bound, const uint16_t *action, double *row);

/* Sets the tree's costs under the weights. */
void tag_rows_weigh(TagBound *bound);

/* The busiest device's load in seconds by the decided groups. */
double tag_rows_decided(TagBound *bound, const uint16_t *action);

/* Keeps, for the search, strategies that are best if everything runs serially except for a part of
 * the all-reduces. */
void tag_rows_serial(TagBound *bound);
