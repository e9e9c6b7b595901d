/* The state graph of a model: what the search walks over (private to synth).
 *
 * Cut i lies before forward op i. A state of a cut says for every tensor alive there (made by an
 * earlier op, read by a later one) in which form it is and in which its gradient is accumulated.
 * Arcs of the op's choices lead to the next cut. The relaxation counts only one device class's
 * computation, so that stages add up: for each class the least cost to the end (h) is exact for the
 * relaxed problem, and a lower bound for the true one.
 *
 * h is found for all states of a cut at once, from the last cut on: an arc moves the inputs of its
 * op and leaves the other tensors alone, so it is taken for all of their states together. Layers
 * that repeat cost nothing: h of a cut that was reached from the same costs by the same op is the
 * same, up to a constant, and after the first layers of a kind all of them come to be so. */
#ifndef KILTER_SYNTH_EXACT_STATES_H
#define KILTER_SYNTH_EXACT_STATES_H

#include "synth/exact/transition.h"

enum { MAX_LIVE = 10 }; /* tensors alive at a cut */

/* Where an op leads: a state of its cut is in * n_others + other, of its inputs and of the other
 * live tensors; a state of the next cut is after[to] + other_after[other]. */
typedef struct {
    Choices *choices;
    uint32_t n_others;
    uint32_t *after, *other_after;
} Move;

/* Relaxed costs to the end from all states of a cut. */
typedef struct {
    uint32_t n;
    double *s;        /* [class * n + state] */
    const Move *move; /* that they were found with */
} Costs;

typedef struct {
    uint32_t n_live;
    TensorId live[MAX_LIVE];
    uint32_t stride[MAX_LIVE]; /* of the tensor's number in a state's */
    uint32_t n_states;
    const Move *move;   /* of the next op; NULL at the end */
    const Costs *costs; /* h, but for */
    Times offset;       /* what is to be added */
} Cut;

typedef struct {
    const Pricer *pricer;
    uint32_t n_ops;      /* forward ops; the last one makes the loss */
    Cut *cut;            /* [n_ops + 1] */
    GHashTable *choices; /* description -> Choices, shared by ops that look alike */
    GHashTable *moves;   /* description -> Move */
    /* Of the present prices: */
    GHashTable *known; /* costs after a move -> costs before it */
    GPtrArray *costs;  /* Costs */
    uint64_t n_states;
    gint64 deadline_us; /* as in SynthOptions */
    bool late;          /* it came; what was found since is of no use */
} States;

/* Whether the deadline has come, from now on. */
bool states_late(States *states);

/* KILTER_ERROR_FAILED for graphs outside the space. The pricer has to live as long as its prices
 * are used. */
States *states_new(const Pricer *pricer, GError **error);
void states_free(States *states);

/* Takes the prices of another pricer of the same graph and pins, which like the first one charges
 * for memory or does not; forgets what the old ones led to. */
void states_price(States *states, const Pricer *pricer);

/* Finds h of all states. */
void states_relax(States *states);

/* h of a state; INFINITY if no end is reached from it. */
static inline double states_rest(const States *states, uint32_t cut, uint32_t state,
                                 uint32_t h)
{
    const Cut *c = &states->cut[cut];
    return c->costs->s[h * c->n_states + state] + c->offset.s[h];
}

#endif
