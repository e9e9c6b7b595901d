/* The state graph of a model, over which the search walks (private to synth).
 *
 * Cut i lies before forward op i. A state of a cut gives, for every tensor alive there (made by an
 * earlier op, read by a later one), its form and the form in which its gradient is accumulated.
 * Arcs of the op's choices lead to the next cut. The relaxation counts only one device class's
 * computation, so that stages add up: for each class the least cost to the end (h) is exact for the
 * relaxed problem, and a lower bound for the true one.
 *
 * h is found for all states of a cut at once, from the last cut on: an arc moves the inputs of its
 * op and leaves the other tensors alone, so it is taken for all of their states together. Repeated
 * layers cost nothing: the same op applied to the same costs gives the same h up to a constant,
 * which after the first few layers of a kind is true of all further ones. */
#pragma once

#include "synth/hap/exact/transition.h"

enum { MAX_LIVE = 10 }; /* tensors alive at a cut: 8^10 states number in 32 bits */

/* How an op moves states: a state of its cut is in * n_others + other, where `in` is the state of
 * its inputs and `other` that of the other live tensors; a state of the next cut is after[to] +
 * other_after[other]. */
typedef struct {
    Choices *choices;
    uint32_t n_others;
    uint32_t *after, *other_after;
    bool in_order; /* other_after[other] == other */
} Move;

/* Relaxed costs to the end from all states of a cut. */
typedef struct {
    uint32_t n;
    double *s;        /* [class * n + state] */
    const Move *move; /* the move by which they were found */
} Costs;

typedef struct {
    uint32_t n_live;
    TensorId live[MAX_LIVE];
    uint32_t stride[MAX_LIVE]; /* weight of the tensor's number in a state's number */
    uint32_t n_states;
    const Move *move;   /* the next op's move; NULL at the end */
    const Costs *costs; /* h, up to */
    Times offset;       /* an offset to be added */
} Cut;

typedef struct {
    const Pricer *pricer;
    uint32_t n_ops;      /* forward ops; the last one makes the loss */
    Cut *cut;            /* [n_ops + 1] */
    GHashTable *choices; /* description -> Choices, shared by ops that look alike */
    GHashTable *moves;   /* description -> Move */
    /* at the present prices: */
    GHashTable *known; /* costs after a move -> costs before it */
    GPtrArray *costs;  /* Costs */
    uint64_t n_states;
    gint64 deadline_us; /* as in SynthOptions */
    bool late;          /* the deadline has passed; later results are invalid */
} States;

/* Whether the deadline has passed; it stays so. */
bool states_late(States *states);

/* The state graph at the pricer's prices, which must outlive its use. KILTER_ERROR_FAILED for
 * graphs outside the space. */
States *states_new(const Pricer *pricer, GError **error);
void states_free(States *states);

/* Takes the prices of another pricer of the same graph and pins, which must charge for memory if
 * and only if the first one does; forgets everything found at the old prices. */
void states_price(States *states, const Pricer *pricer);

/* Finds h of all states. KILTER_ERROR_FAILED where they are too many for its numbers. */
bool states_relax(States *states, GError **error);

/* The least costs before a move, from those after it: [class * n_after + state after], [class *
 * states before + state]. Each arc from a state of the op's inputs is taken for all states of the
 * other tensors. */
void move_take_arcs(const Move *move, const double *after, uint32_t n_after,
                    double *before);

/* h of a state; INFINITY if the end cannot be reached from it. */
static inline double states_rest(const States *states, uint32_t cut, uint32_t state,
                                 uint32_t h)
{
    const Cut *c = &states->cut[cut];
    return c->costs->s[h * c->n_states + state] + c->offset.s[h];
}
