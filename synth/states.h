/* The state graph of a model: what the search walks over (private to synth).
 *
 * Cut i lies before forward op i. A state of a cut says for every tensor alive there (made by an earlier op, read by a
 * later one) in which form it is and in which its gradient is accumulated. Edges are transitions. The relaxation counts
 * only one device class's computation, so that stages add up: for each class the least cost from the start (g) and to the
 * end (h) are exact for the relaxed problem, and lower bounds for the true one. */
#ifndef KILTER_SYNTH_STATES_H
#define KILTER_SYNTH_STATES_H

#include "synth/transition.h"

enum { MAX_LIVE = 10 }; /* tensors alive at a cut: 6 bits each in a 64-bit state */

typedef struct {
    uint32_t from, to;
    const Transition *transition;
} Edge;

typedef struct {
    uint32_t n_live;
    TensorId live[MAX_LIVE];
    GArray *states; /* uint64_t */
    GArray *least;  /* double [state * n_classes + class]: g */
    GArray *rest;   /* likewise: h; INFINITY where no end is reached */
    GArray *edges;  /* Edge, to the next cut, sorted by `from` */
    double floor
        [PRICE_MAX_CLASSES]; /* least cost of the ops from here on, each for itself */
    uint32_t *slot;          /* hash table over states: index + 1 */
    uint32_t n_slots;
} Cut;

typedef struct {
    Pricer *pricer;
    uint32_t n_ops;    /* forward ops; the last one makes the loss */
    Cut *cut;          /* [n_ops + 1] */
    OpView **view;     /* [op] */
    Choices **choices; /* [op], shared by ops that look alike */
    GHashTable *alike; /* description -> Choices */
    uint64_t n_states, n_edges;
    gint64 deadline_us; /* as in SynthOptions */
    bool late;          /* it came; what was found since is of no use */
} States;

/* Whether the deadline has come, from now on. */
bool states_late(States *states);

/* KILTER_ERROR_FAILED for graphs outside the space. */
States *states_new(Pricer *pricer, GError **error);
void states_free(States *states);

/* Finds all states and edges on relaxed paths of at most `upper_s`, with g; then h, and drops what is not on one. */
void states_relax(States *states, double upper_s);

/* Drops edges that are on no relaxed path of at most `upper_s`, once h is known. */
void states_prune(States *states, double upper_s);

/* The states of an op's activation inputs in a state of its cut. */
void states_inputs(const States *states, OpId op, uint64_t state, Held in[TRANSITION_IN]);

#endif
