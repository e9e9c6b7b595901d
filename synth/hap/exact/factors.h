/* Factors of the relaxed cost, and the min-plus elimination of their choices (private to synth).
 *
 * The relaxed cost of a transition is a sum of factors, each of which depends on few choices. An
 * arc is the least sum over all choices that its two states leave open. Elimination takes the
 * choices one after the other: the factors that a choice occurs in are added up, and the minimum
 * over it is a new factor of the remaining choices. */
#pragma once

#include "synth/hap/exact/transition.h"

/* An ask: reads and saved forms of an input that occur together, priced from each form in which it
 * is held. */
typedef struct {
    Times s[FORM_MAX];          /* [form's number]; INFINITY if impossible */
    uint8_t after[FORM_MAX][2]; /* see choices_after */
} Ask;

/* The factors of one input: its asks, and the conversion of its contribution to the form of the
 * sum. */
typedef struct {
    Index keys; /* reads and saved forms -> */
    Ask *ask;
    Times contribution[FORM_MAX][FORM_MAX]; /* [made][gradient's number] */
} Input;

/* The choices that a factor's row stands for. */
typedef struct {
    uint32_t ask[TRANSITION_IN];
    Form makes[TRANSITION_IN];
    Form out[TRANSITION_OUT];
    /* [output] forms of dy that the backward reads if dy is itself a contribution; else 0 */
    FormSet shared[TRANSITION_OUT];
} Row;

/* A factor that an elimination makes. */
typedef struct {
    Index keys; /* of rows */
    /* Row; the first of the rows that differ only in the eliminated choice */
    GArray *row;
    uint32_t *merged; /* [row of the factor before]: the row here that contains it */
    double *s;        /* costs of one device class, while arcs are priced */
} Factor;

/* The rows of a group: in the factor without dy's forms, and in the factor over them. */
typedef struct {
    uint32_t row, wanted;
} Member;

typedef struct Elimination {
    const Choices *c;
    uint32_t n_dy; /* arrivals of all outputs' gradients, the last one innermost */
    /* forms that each input can be in afterwards, as far as they matter */
    uint32_t n_afters[TRANSITION_IN];
    /* costs of `lanes` device classes lie beside one another: those from class h on, which are
     * filled in; rows are the same for all */
    uint32_t lanes, h;
    Input input[TRANSITION_IN];
    Index wanted;   /* forms of dy that the backward reads -> number */
    Index shared;   /* Row.shared -> number */
    Member *member; /* [group] */
    Factor no_dy;   /* s [(row * n_dy + dy) * lanes] */
    /* s [(((row * states + state) * afters + after) * n_dy + dy) * lanes]: of the second input */
    Factor no_second;
    /* s [((((gradient * states + state) * rows + row) * afters + after) * n_dy + dy) * lanes]: of
     * the first input's gradient and the second input */
    Factor no_contribution;
    uint32_t *row_shared; /* [row of no_contribution]: number of Row.shared */
    uint32_t n_out;       /* states of the outputs that live on */
    /* [row of no_contribution * n_dy + dy]: the outputs' part of `to` */
    uint32_t *outputs_to;
    /* set while arcs are priced, by class in bundles of `lanes`: */
    double *wanted_s; /* [((bundle * wanted + wanted) * n_dy + dy) * lanes] */
    /* [((((bundle * shared + shared) * n_gradients0 + g0) * n_gradients1 + g1) * n_dy + dy) *
     * lanes]; NULL if no input gets dy itself */
    double *alias_s;
    double *arc_s; /* [((after0 * n_afters1 + after1) * n_out + output) * lanes] */
} Elimination;

/* Packs sets of forms of both outputs into a key. */
static inline uint64_t pack_dy(const FormSet forms[TRANSITION_OUT])
{
    G_STATIC_ASSERT(TRANSITION_OUT == 2 && sizeof(FormSet) == 1);
    return forms[0] | (uint64_t)forms[1] << 8;
}

/* The number of output `o`'s arrival, as a digit of the number of all outputs' arrivals. */
static inline uint32_t arrival(const Elimination *e, uint32_t dy, uint32_t o)
{
    const uint32_t inner = e->c->out[1].n_gradients;
    return o == 0 ? dy / inner : dy % inner;
}

/* Prices the factors for all device classes: asks, contributions, wanted_s, alias_s. */
void price_factors(Elimination *e);
