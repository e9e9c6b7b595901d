/* Transitions: every way to run one forward op together with its backward ops (private to synth).
 *
 * At a cut of the forward order a live tensor is in one form, and its gradient will be accumulated in another. A
 * transition takes the op's inputs from their states to its outputs' states and says what that adds to the iteration.
 * They are enumerated in three steps, each keeping only what nothing dominates:
 *
 *     half     rules of the op and its backward ops, and where its parameters live
 *     body     the same with the forms in which the gradients of the outputs arrive
 *     transition  the same from given states of the inputs
 *
 * Halves and bodies do not depend on the inputs' states, so an op has them once; ops that look alike share them. */
#ifndef KILTER_SYNTH_TRANSITION_H
#define KILTER_SYNTH_TRANSITION_H

#include "synth/op_view.h"

/* State of one live tensor. */
typedef struct {
    Form form, gradient;
} Held;

/* What a choice costs, as far as the open stages see it. Communication adds up wherever it happens; computation goes to the
 * forward's end, to the backward's front in two portions with a step after each, and to the final stage. */
enum { CLOSES_FORWARD = 1, CLOSES_LATE = 2, CLOSES_EARLY = 4, CLOSES_FINAL = 8 };
typedef struct {
    uint8_t closes; /* which of the steps hold a priced collective */
    double comm_s;  /* communication, and the charge for memory */
    /* Added to the forward's first stage: inner communication of parameters. */
    Times initial;
    /* Appended to the forward's open stage, after its step closed the one before. */
    Times forward;
    /* Put before the backward's open stage: accumulation; then the contributions' step. */
    Times late;
    /* Put before that: the backward ops; then the step of dy and saved tensors. */
    Times early;
    /* Added to the final stage, */
    Times update;
    /* and to the one that updated values are communicated in. */
    Times tail;
} Cost;

typedef struct {
    /* Seconds that it adds if only this class's computation counts and no stage waits. */
    double relaxed_s[PRICE_MAX_CLASSES];
    Held out[TRANSITION_OUT];     /* of the op's outputs */
    Form in_after[TRANSITION_IN]; /* forms that the activation inputs are in afterwards */
    uint8_t forward_rule, backward_rule[MAX_BACKWARD], plan[OP_MAX_IN];
    Cost cost;
} Transition;

/* Bodies of an op, and transitions by input state, filled as they are asked for. */
typedef struct Choices Choices;
Choices *choices_new(const Pricer *pricer, OpView *view);
void choices_free(Choices *choices);

/* All transitions from input states `in` that no other one dominates; owned by `choices`. */
const GArray *choices_from(Choices *choices, const Held in[TRANSITION_IN]);

/* Least relaxed cost of any transition of the op, whatever its inputs' states. */
double choices_least(const Choices *choices, uint32_t class_index);

/* Writes a chosen transition of `view` (whose choices may have come from an op that looks alike) into an assignment. */
void transition_apply(const Pricer *pricer, OpView *view, const Held in[TRANSITION_IN],
                      const Transition *transition, Assignment *assignment);

#endif
