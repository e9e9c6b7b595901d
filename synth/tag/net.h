/* TAG's network (Sec. 4.2): op groups and device sets as one heterogeneous graph, attention between
 * them, and a score for each action of the next op group. Part of synth's public interface,
 * included by synth/synth.h.
 *
 *     h_v      = tanh(W x_v)                                       groups and sets have their own W
 *     h'_v     = h_v + tanh(b + sum over heads h of O_h times the sum over kinds k of edges of
 *                attention_hk(v))            in each layer; with one head without O
 *     score_a  = w tanh(U mean of h over the action's sets + V h of the next + X x_a + c) + Y x_a
 *     prior    = softmax of the scores
 *
 * attention_hk(v): over the edges of the kind that lead to v, softmax of leaky(p h_v + q W h_u + r
 * e), of W h_u + W' e. Kinds: a tensor forward, a tensor backward, placement (from groups to sets,
 * from sets to groups), links. This is as published except for the size (TAG has 4 layers, 4 heads
 * and a width of 256) and the features of an action: its option, its time and its all-reduces'. */
#pragma once

#include "synth/tag/tag.h"

/* Seconds are divided by data parallelism's time, bytes by their sum, speeds by the largest. */
enum {
    /* time, parameters, bytes out; decided, next; options AR, PS, other; and, when the strategy
     * runs, its makespan and the wait before its results are sent */
    NET_GROUP = 10,
    /* devices / 8, speed, memory, inner and outer bandwidth; 1; and, when the strategy runs, the
     * parts of the time and of the memory that are used */
    NET_SET = 8,
    NET_LINK =
        2, /* bandwidth; the part of the time in which it is used when the strategy runs */
    NET_ACTION =
        7, /* options; part of all devices; logs of its time and its all-reduces' time */
    NET_PLACED = 2 /* whether the strategy places the group on the set; its time there */
};

/* Where the views have what running the strategy says. */
enum {
    NET_GROUP_MAKESPAN = 8,
    NET_GROUP_WAIT = 9,
    NET_SET_BUSY = 6,
    NET_SET_MEMORY = 7,
    NET_LINK_BUSY = 1
};

/* A vertex of the tree search as the network sees it. */
typedef struct {
    uint32_t n_groups, n_sets, n_actions, n_flows;
    uint32_t next;               /* the group whose action is to be chosen */
    double *group;               /* [n_groups * NET_GROUP] */
    double *set;                 /* [n_sets * NET_SET] */
    double *action;              /* [n_actions * NET_ACTION], of the next group */
    double *member;              /* [n_actions * n_sets]: 1 / sets of the action, or 0 */
    uint32_t *from, *to;         /* [n_flows]: groups */
    double *flow;                /* [n_flows]: bytes */
    uint32_t *of_group, *of_set; /* [n_groups * n_sets] */
    double *placed;              /* [n_groups * n_sets * NET_PLACED] */
    uint32_t *link_from, *link_to; /* [n_sets * n_sets] */
    double *link;                  /* [n_sets * n_sets * NET_LINK] */
} NetView;

void net_view_free(NetView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NetView, net_view_free)

/* A vertex that was visited often, and the part of the visits that each action got. */
typedef struct {
    NetView *view;
    double *target; /* [n_actions] */
} NetLesson;

typedef struct {
    uint32_t layers, heads, width;
} NetShape;

/* That of the bundled networks. */
static const NetShape NET_SHAPE = {2, 1, 32};

/* A layer has W, W', p, q, r for each head and kind of edges, then the biases of groups and of
 * sets. */
typedef struct {
    NetShape shape;
    uint32_t n;
    double *weight; /* [n] */
} TagNet;

/* All weights are 0. */
TagNet *tag_net_empty(NetShape shape);
AUTOPTR(tag_net_free, TagNet)

/* Reads a text file: comments that tell the weights' origin, a line "shape LAYERS HEADS WIDTH"
 * (without it NET_SHAPE), then the weights in order. KILTER_ERROR_INPUT names the line. */
TagNet *tag_net_read(const char *file, GError **error);

/* Computes the priors. prior: out, [n_actions], sums to 1. */
void tag_net_priors(const TagNet *net, const NetView *view, double *prior);

/* Computes the scores, [n_actions], from which the priors are made; returns their place on the tape
 * (synth/tag/tape.h). */
struct Tape;
uint32_t tag_net_scores(const TagNet *net, const NetView *view, struct Tape *tape);
