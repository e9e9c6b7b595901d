/* The reference search: HAP's Fig. 10 on explicit triples (private to synth). See synth_reference()
 * in synth/synth.h. */
#ifndef KILTER_SYNTH_REFERENCE_REFERENCE_H
#define KILTER_SYNTH_REFERENCE_REFERENCE_H

#include "synth/assignment.h"

/* A forward triple with its adjoint backward, priced. Loads of inputs and parameters are fused into
 * it: they are free in any form, and with one consumer each they leave no property. */
typedef struct {
    Triple triple;
    uint32_t n_before, n_after;
    uint32_t before[OP_MAX_IN], after[OP_MAX_OUT]; /* properties */
    /* A property that the triple takes away: the op not yet computed, or the tensor not yet
     * communicated. */
    uint32_t token;
    uint32_t n_backward;
    Rule backward[MAX_BACKWARD]; /* of backward_ops() */
    /* Of the collective and its adjoint, or of the gradients of the op's parameters. */
    double comm_s;
    Times forward, back, update; /* work; of a collective the inner communication */
} Fused;

/* Properties: of the i-th tensor that forward ops make `i * FORM_MAX + form`; then a token a
 * tensor, then one per op. */
typedef struct {
    const Pricer *pricer;
    uint32_t n_ops, n_tensors;
    TensorId *tensor; /* [n_tensors] */
    uint32_t *index;  /* [graph's tensor], GRAPH_NONE where no forward op makes it */
    uint32_t goal;    /* loss | Reduce */
    GArray *fused;    /* Fused */
    GArray **users;   /* [property]: uint32_t, the triples that need it */
    double *least;    /* [op * n_classes + class]: the least that the op adds */
} ReferenceTheory;

static inline uint32_t reference_property(const ReferenceTheory *theory, TensorId tensor,
                                          Form form)
{
    return theory->index[tensor] * FORM_MAX + form;
}
static inline uint32_t reference_uncommunicated(const ReferenceTheory *theory,
                                                uint32_t tensor)
{
    return theory->n_tensors * FORM_MAX + tensor;
}
static inline uint32_t reference_uncomputed(const ReferenceTheory *theory, OpId op)
{
    return theory->n_tensors * (FORM_MAX + 1) + op;
}
static inline uint32_t reference_properties(const ReferenceTheory *theory)
{
    return theory->n_tensors * (FORM_MAX + 1) + theory->n_ops;
}

/* Gradient form of a tensor in `form`: Identity <-> Reduce, Gather(d) <-> Gather(d). */
static inline Form reference_adjoint(Form form)
{
    return form == FORM_IDENTITY ? FORM_REDUCE
           : form == FORM_REDUCE ? FORM_IDENTITY
                                 : form;
}

/* NULL (KILTER_ERROR_FAILED) if a parameter has several consumers, or an op no triple with an
 * adjoint. */
ReferenceTheory *reference_theory_new(const Pricer *pricer, GError **error);
void reference_theory_free(ReferenceTheory *theory);

/* The comparison that makes a program worse than one with at least its properties (Fig. 10, lines 9
 * and 12). */
typedef enum {
    REFERENCE_SCALAR, /* as published: its time to the last synchronization point is not lower */
    REFERENCE_LABELS, /* that no completion of it is faster: the open stages are compared too. Sound */
} ReferencePruning;

bool reference_search(const Graph *graph, const ClusterView *view, const double *ratio,
                      ReferencePruning pruning, SynthResult *result, GError **error);

/* The program of the chosen triples, in forward order, and their backward. `rest`: of parameters,
 * the form that they rest and are updated in; NULL: the one that they are read in. */
Program *reference_emit(const ReferenceTheory *theory, uint32_t n,
                        const Fused *const *chosen, const Form *rest, GError **error);

#endif
