/* Transitions: every way to run one forward op together with its backward ops (private to synth).
 *
 * At a cut of the forward order, a live tensor is in one form and its gradient will be accumulated in another. A
 * transition takes the op's inputs from their states to its outputs' states. It says what it adds to the iteration:
 * to the forward's end, to the backward's front, and to the final stage. Ops that look alike (same kind, shapes,
 * and so on) share their transitions. */
#ifndef KILTER_SYNTH_TRANSITION_H
#define KILTER_SYNTH_TRANSITION_H

#include "synth/assignment.h"

enum { TRANSITION_IN = 2, TRANSITION_OUT = 2 };

/* State of one live tensor. */
typedef struct {
    Form form, gradient;
} Held;

typedef struct {
    Held out[TRANSITION_OUT];     /* of the op's outputs */
    Form in_after[TRANSITION_IN]; /* form the activations are in afterwards */
    uint8_t forward_rule, backward_rule[MAX_BACKWARD];
    Step forward;       /* conversions before the op, */
    Times forward_work; /* its work */
    Step before; /* backward, in execution order: conversions of dy and saved tensors, */
    Times backward_work;
    Step after;         /* conversions of the contributions, */
    Times accumulation; /* and their addition */
    double final_s;     /* parameters: initial and final communication */
    Times final_work;   /* updates */
} Transition;

/* Tensors that an op and its backward ops read, as slots: its outputs, their gradients, activation inputs, and all inputs
 * by position for parameters. Graph inputs are free in every form and have none. */
enum {
    SLOT_OUT = 0,
    SLOT_DY = SLOT_OUT + TRANSITION_OUT,
    SLOT_IN = SLOT_DY + TRANSITION_OUT,
    SLOT_PARAMETER = SLOT_IN + TRANSITION_IN,
    SLOTS = SLOT_PARAMETER + OP_MAX_IN,
    SLOT_FREE = SLOTS,
};

/* A rule with its price. */
typedef struct {
    Rule rule;
    Times work;
} PricedRule;

typedef struct {
    OpId op;
    uint32_t n_in; /* inputs */
    uint8_t slot[OP_MAX_IN];
    uint8_t
        makes[OP_MAX_OUT]; /* backward: forward input whose contribution output o is */
    uint32_t n_rules;
    PricedRule rule[OP_MAX_RULES];
} OpReads;

/* What an op is to the search. */
typedef struct {
    OpId op;
    uint32_t n_in;                 /* activation inputs (those that a forward op made), */
    uint32_t input[TRANSITION_IN]; /* their positions, */
    TensorId tensor[TRANSITION_IN];
    TensorId contribution[TRANSITION_IN]; /* what is added to their gradients, */
    int8_t alias[TRANSITION_IN]; /* the output whose gradient that is itself, or -1, */
    OpId accumulation[TRANSITION_IN]; /* and the op that adds it, or GRAPH_NONE */
    Times accumulation_work[TRANSITION_IN][FORM_MAX];
    FormSet accumulates[TRANSITION_IN]; /* forms in which the sum can be kept */
    OpReads forward;
    uint32_t n_backward;
    OpReads backward[MAX_BACKWARD];
    uint32_t n_parameters;
    uint32_t parameter[OP_MAX_IN]; /* positions */
    GHashTable
        *plans[OP_MAX_IN]; /* (forms read, form made) -> ParameterPlan; by n_parameters */
} OpView;

/* NULL (KILTER_ERROR_FAILED) for graphs outside the space: a parameter with several consumers, more than two
 * activation inputs. */
OpView *op_view_new(const Pricer *pricer, OpId op, GError **error);
void op_view_free(OpView *view);

/* All transitions from input states `in` that no other one dominates; Transition elements. */
GArray *transitions(const Pricer *pricer, OpView *view, const Held in[TRANSITION_IN]);

/* Writes a chosen transition's rules and forms into an assignment. */
void transition_apply(const Pricer *pricer, OpView *view, const Held in[TRANSITION_IN],
                      const Transition *transition, Assignment *assignment);

#endif
