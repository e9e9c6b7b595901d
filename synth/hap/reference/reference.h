/* The reference search: HAP's Fig. 10 on explicit triples (private to synth). See synth_reference()
 * in synth/synth.h. */
#pragma once

#include "synth/hap/search.h"
#include "synth/spmd/assignment.h"

/* A forward triple with its adjoint backward, priced. Loads of inputs and parameters are fused into
 * it: they are free in any form and leave no property, as they have one consumer each. */
typedef struct {
    Triple triple;
    uint32_t n_before, n_after;
    uint32_t before[OP_MAX_IN], after[OP_MAX_OUT]; /* properties */
    /* A property that the triple takes away: the op not yet computed, or the tensor not yet
     * communicated. */
    uint32_t token;
    uint32_t n_backward;
    Rule backward[MAX_BACKWARD]; /* [i]: of the i-th op of backward_ops() */
    /* seconds of the collective and its adjoint, or of synchronizing the gradients of the op's
     * parameters */
    double comm_s;
    Times forward, back, update; /* work; for a collective its inner communication */
} Fused;

/* Properties are numbered: the i-th tensor that forward ops make has `i * FORM_MAX + form`; one
 * token per tensor follows, then one per op. */
typedef struct {
    const Pricer *pricer;
    uint32_t n_ops, n_tensors;
    TensorId *tensor; /* [n_tensors] */
    /* [graph's tensor]: its index here; GRAPH_NONE if no forward op makes it */
    uint32_t *index;
    uint32_t goal;  /* loss | Reduce */
    GArray *fused;  /* Fused */
    GArray **users; /* [property]: uint32_t, the triples that need it */
    double *least;  /* [op * n_classes + class]: the least that the op adds */
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

/* NULL (KILTER_ERROR_FAILED) if a parameter has several consumers, or an op has no triple with an
 * adjoint. */
ReferenceTheory *reference_theory_new(const Pricer *pricer, GError **error);
void reference_theory_free(ReferenceTheory *theory);

/* The comparison by which a program is worse than a program with at least its properties (Fig. 10,
 * lines 9 and 12). */
typedef enum {
    REFERENCE_SCALAR, /* as published: by the time to the last synchronization point */
    /* sound: compares the open stages too, so that no completion is faster */
    REFERENCE_LABELS,
} ReferencePruning;

bool reference_search(const Graph *graph, const ClusterView *view, const double *ratio,
                      ReferencePruning pruning, SynthResult *result, GError **error);

/* The program of the chosen triples, in forward order, and their backward. `rest`: [tensor], the
 * form in which a parameter rests and is updated; NULL: the form in which it is read. */
Program *reference_emit(const ReferenceTheory *theory, uint32_t n,
                        const Fused *const *chosen, const Form *rest, GError **error);
