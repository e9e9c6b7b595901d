/* Views: the elements of a tensor of the graph in the dims that ONNX gives them (private to data).
 *
 * Exporters write transposes and reshapes wherever PyTorch has them; most only say how the next op
 * reads its operand. So a value is kept as the tensor that has its elements, `base`, and how its
 * dims are made of those of the base. A dim of the base is a row-major product of atoms, and each
 * dim of the view is a list of atoms:
 *
 *     base [b, s, 2304], atoms b, s, T = 3, h = 12, d = 64:   view [b, h, s, d] with T fixed at 0: the queries of GPT-2
 *
 * An atom that repeats has its elements once in the base, whose dims it is behind: keys that
 * several heads of queries read.
 *
 * Reshapes split and regroup atoms, transposes permute dims, slices fix an atom: no op. view_settle
 * makes the ops that bring the elements into the order that an op needs.
 *
 * Sizes are those at the file's own batch. Dims of 1 have no atoms, but the one of the samples
 * always has one. */
#pragma once

#include "data/formats/onnx/onnx.h"

enum { VIEW_ATOMS = 12, VIEW_NO_PRODUCT = UINT32_MAX };

typedef struct {
    uint64_t size;
    uint8_t dim; /* of the base */
    bool batch;  /* the samples: the base has as many as the model's batch */
    bool fixed;  /* only element `at` is left */
    bool repeats;
    uint32_t at;
} Atom;

typedef struct {
    uint8_t n, atom[VIEW_ATOMS];
} ViewDim;

typedef struct {
    bool known;
    TensorId base;    /* GRAPH_NONE: of the pending product, */
    uint32_t product; /* by its number; VIEW_NO_PRODUCT */
    uint32_t base_rank;
    uint32_t n_atoms;
    Atom atom[VIEW_ATOMS]; /* in the base's order */
    uint32_t rank;
    ViewDim dim[ONNX_MAX_RANK];
    double scale; /* the value is the base's times this */
    /* so many elements of each head are turned by their place; 0: none */
    uint32_t rotary;
    /* the value that is the weight of an RMS norm of each head; ONNX_NONE: none */
    uint32_t norm;
} View;

/* The base as it is: sizes at the file's batch, of which the first is the samples if `batch`. */
View view_of(TensorId base, uint32_t rank, const uint64_t *dim, bool batch);

uint64_t view_size(const View *view, uint32_t dim);
/* The atoms that stand for samples are nowhere in the dims: all samples have the same. */
bool view_is_shared(const View *view);

/* Cuts an atom in an outer one of that size and an inner one. */
bool view_split_atom(View *view, uint8_t atom, uint64_t outer);
/* Puts the samples, which all have the same, in dim 0 of 1. False: that is not so. */
bool view_set_batch(View *view);
/* A dim of 1 as one of so many equal elements. */
bool view_repeat(View *view, uint32_t dim, uint64_t size);
/* All elements are those of the base, each once and as it is. */
bool view_is_plain(const View *view);

/* False: the atoms do not allow it. */
bool view_reshape(View *view, uint32_t rank, const uint64_t *dim);
bool view_permute(View *view, const uint32_t *from);
/* Elements first to first + n of a dim. */
bool view_take(View *view, uint32_t dim, uint64_t first, uint64_t n);
void view_drop(View *view, uint32_t dim); /* of size 1 */

/* Whether both are halves of like bases in the same dims, and not the same half. */
bool view_other_half(const View *a, const View *b);
/* Takes the atoms that are fixed out of the base, too. */
void view_drop_fixed(View *view);

/* The same elements of like bases in the same dims. */
bool view_same(const View *a, const View *b);

/* Whether the last dim of the view is the last `n` dims of the base. */
bool view_ends_like_base(const View *view, uint32_t n);

/* Steps that bring a base into another order; each is an op of the table. */
typedef struct {
    OpKind kind;
    uint32_t cut; /* SPLIT*: atoms of the dim that go to the first part */
} ViewStep;
enum { VIEW_MOST_STEPS = 16 };

/* The steps after which the base's dims are the view's, or with `last` at least its last one is.
 * Returns how many, or -1. view_step does one to the view. */
int view_steps(const View *view, bool last, ViewStep step[VIEW_MOST_STEPS]);
void view_step(View *view, ViewStep step, TensorId base);
