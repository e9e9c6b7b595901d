/* The state while a pipeline's program is built (private to synth). */
#ifndef KILTER_SYNTH_PIPELINE_BUILD_H
#define KILTER_SYNTH_PIPELINE_BUILD_H

#include "synth/pipeline.h"

/* When an instruction of the inner program runs. */
typedef enum {
    EARLY,   /* once: what needs nothing but loads */
    FORWARD, /* once a microbatch */
    BACKWARD,
    LATE /* once: what needs sums over the batch */
} Phase;

typedef struct {
    Phase phase;
    uint32_t stage, layer;
    uint32_t unit; /* of what is computed again together, from 1; 0: it is not */
} Place;

/* Instructions of a unit, in Builder.unit: those of a layer, or a single one. */
typedef struct {
    uint32_t first, end;
    bool single;
    uint32_t done; /* the last pass in which it was computed again */
} Again;

/* An operand that a group needs from another one. */
typedef struct {
    uint32_t maker; /* instruction of the inner program */
    TensorId tensor;
    Form form;
    uint16_t group, to_group;
} Need;

typedef struct {
    const Program *inner;
    const Graph *graph;
    const SynthPipeline *pipeline;
    BatchForms *batch;
    Place *place;    /* [instr of the inner program] */
    uint32_t *maker; /* [instr * OP_MAX_IN + operand] */
    /* [instr]: the forward instruction that has kept something for it beside tensors; UINT32_MAX: none */
    uint32_t *keeper;
    GArray *needs;   /* Need, by maker */
    uint32_t *first; /* [instr]: its needs; n + 1 of them */
    bool *sent;      /* [need], of the late ones */
    uint32_t *unit;  /* instructions by (phase, stage), in order, */
    uint32_t *begin; /* [phase * n_stages + stage] */
    GArray *again;   /* Again; the first one is not used */
    bool *read;      /* [tensor]: a forward op reads it */
    uint32_t pass;   /* how many stages have begun their backward on a microbatch */
    /* [group * n_tensors + tensor]: bit f: form f is partial over the replicas */
    uint8_t *partial;
    Program *program;
} Builder;

static inline uint16_t group_at(const Builder *b, uint32_t i)
{
    KILTER_ASSERT(b->place[i].stage < b->pipeline->n_stages);
    return (uint16_t)(b->place[i].stage % b->pipeline->n_groups);
}

static inline uint8_t *partial_of(const Builder *b, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(group < b->pipeline->n_groups && tensor < graph_n_tensors(b->graph));
    return &b->partial[(size_t)group * graph_n_tensors(b->graph) + tensor];
}

static inline bool makes_sums(const Builder *b, const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE)
        return false;
    const Op *op = graph_get_op(b->graph, instr->op);
    return b->batch->form[op->out[0]] == FORM_REDUCE && b->batch->loop[instr->op] >= 0;
}

/* Finds the phase, stage and layer of every instruction, what groups need of one another, and what
 * is computed again. */
void pipeline_find_places(Builder *b);

#endif
