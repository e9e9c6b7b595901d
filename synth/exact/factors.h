/* Factors of the relaxed cost, and the min-plus elimination of their choices (private to synth).
 *
 * The relaxed cost of a transition is a sum of factors, each of which depends on few choices. An
 * arc is the least sum over all choices that its two states leave open. Elimination takes the
 * choices one after the other: the factors that a choice occurs in are added up, and the least over
 * it is a new factor over the remaining choices. */
#ifndef KILTER_SYNTH_EXACT_FACTORS_H
#define KILTER_SYNTH_EXACT_FACTORS_H

#include "synth/exact/transition.h"

/* Reads and saved forms of an input that occur together, priced from each form that it is held
 * in. */
typedef struct {
    Times s[FORM_MAX];          /* [form's number]; INFINITY if it cannot be */
    uint8_t after[FORM_MAX][2]; /* see choices_after */
} Ask;

/* The factors of one input: its asks, and the conversion of its contribution to the form of the
 * sum. */
typedef struct {
    Index keys; /* reads and saved forms -> */
    Ask *ask;
    Times contribution[FORM_MAX][FORM_MAX]; /* [made][gradient's number] */
} Input;

/* Choices that a factor's row stands for. */
typedef struct {
    uint32_t ask[TRANSITION_IN];
    Form makes[TRANSITION_IN];
    Form out[TRANSITION_OUT];
    /* Forms of dy that the backward reads, of outputs whose dy is itself a contribution; else 0. */
    FormSet shared[TRANSITION_OUT];
} Row;

/* A factor that elimination makes. */
typedef struct {
    Index keys; /* of rows */
    GArray
        *row; /* Row; the first one of those that are equal but for what was eliminated */
    uint32_t *merged; /* [row of the factor before]: the row here that it is part of */
    double *s;        /* costs of one device class, while arcs are priced */
} Factor;

/* The rows of a group: of the factor without dy's forms, and of the factor over these. */
typedef struct {
    uint32_t row, wanted;
} Member;

typedef struct Elimination {
    const Choices *c;
    uint32_t
        h; /* the device class whose costs are filled in; rows are the same for all */
    uint32_t n_dy; /* arrivals of all outputs' gradients, the last one innermost */
    Input input[TRANSITION_IN];
    Index wanted;   /* forms of dy that the backward reads -> */
    Index shared;   /* Row.shared -> */
    Member *member; /* [group] */
    Factor no_dy;   /* s [row * n_dy + dy] */
    Factor
        no_second; /* s [((row * states + state) * afters + after) * n_dy + dy]: of the second input */
    Factor
        no_contribution; /* s [(((gradient * states + state) * rows + row) * afters + after) * n_dy + dy]: of the first
                               input's gradient and the second input */
    uint32_t
        *outputs_to; /* [row of no_contribution * n_dy + dy]: the outputs' part of `to` */
    /* While arcs are priced: */
    double *wanted_s; /* [(class * wanted + wanted) * n_dy + dy] */
    /* [(((class * shared + shared) * n_gradients0 + g0) * n_gradients1 + g1) * n_dy + dy]; NULL if
     * no input gets dy itself */
    double *alias_s;
    double *zeros; /* [n_dy] */
    double *arc_s; /* [to] */
} Elimination;

/* Sets of forms of both outputs as a key. */
static inline uint64_t pack_dy(const FormSet forms[TRANSITION_OUT])
{
    G_STATIC_ASSERT(TRANSITION_OUT == 2 && sizeof(FormSet) == 1);
    return forms[0] | (uint64_t)forms[1] << 8;
}

/* Number of output `o`'s arrival in the number of all outputs' arrivals. */
static inline uint32_t arrival(const Elimination *e, uint32_t dy, uint32_t o)
{
    const uint32_t inner = e->c->out[1].n_gradients;
    return o == 0 ? dy / inner : dy % inner;
}

/* Prices the factors for all device classes: asks, contributions, wanted_s, alias_s. */
void price_factors(Elimination *e);

#endif
