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
    /* what shards divide (synth/pipeline_shards.c); NULL: nothing */
    Form *need,
        *gives; /* [op * OP_MAX_IN + input], [op * OP_MAX_OUT + output]: over the shards */
    Form *made;            /* [tensor]: as it is held */
    uint8_t *view, *home;  /* [op], [tensor]: VIEW_STAGE or VIEW_EXPERTS; always there */
    uint16_t *experts;     /* [group]: the group of its experts */
    uint32_t n_tokens;     /* of a sequence */
    GHashTable *converted; /* what was converted for an op, to 1 + the pass */
    /* sharded states (synth/pipeline_states.c); NULL: none */
    Form *state;      /* [tensor]: over the shards, of parameters that are divided */
    uint16_t *states; /* [group]: the group of its states */
    uint32_t *
        direct; /* [parameter]: instruction that makes the gradient as the update takes it */
    uint32_t *gathered; /* [instr]: pass in which what it loads was gathered last */
    bool *summed;       /* [instr], of updates: the gradient is there */
    bool *whole;        /* [parameter]: its gradient is summed; always there */
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

/* Writes an instruction. */
static inline void pipeline_append(Builder *b, Instr instr, uint32_t group,
                                   uint32_t microbatch)
{
    instr.group = (uint16_t)group;
    instr.microbatch = (uint16_t)microbatch;
    program_append(b->program, instr);
}

static inline bool pipeline_is_update(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    return instr->kind == INSTR_COMPUTE &&
           graph_get_op(b->graph, instr->op)->pass == PASS_UPDATE;
}

/* --- what shards divide --- */

/* Of a stage, or the same devices as the group in which experts are divided. */
enum { VIEW_STAGE, VIEW_EXPERTS };

/* KILTER_ERROR_INPUT if the graph or the batch cannot be divided so. */
bool pipeline_find_shards(Builder *b, GError **error);
uint32_t pipeline_view(const Builder *b, uint32_t group, uint8_t view);
/* The whole form of a tensor that is held in `inside` over the positions. */
Form pipeline_made(const Builder *b, TensorId tensor, Form inside);

/* A conversion over the shards of a group; the other name of a tensor in a group of the same devices. */
void pipeline_convert(Builder *b, uint32_t group, TensorId tensor, Form inside, Form from,
                      Form to, uint32_t microbatch);
void pipeline_regroup(Builder *b, uint32_t from_group, uint32_t to_group, TensorId tensor,
                      Form from, Form to, uint32_t microbatch);

/* Instruction `i` of the inner program, with the conversions that its operands need. */
void pipeline_run(Builder *b, uint32_t i, uint32_t microbatch);

/* --- sharded states --- */

/* What is divided, in what form; once places are known. */
void pipeline_find_states(Builder *b);
bool pipeline_divides(const Builder *b, TensorId parameter);

/* A load, where the states of what it loads lie. */
void pipeline_load(Builder *b, uint32_t i);
/* What instruction `i` uses of divided parameters is gathered, once a pass; and that of the layer that
 * begins at `at` in a stage's phase, and of the one after it. */
void pipeline_gather_for(Builder *b, uint32_t i);
void pipeline_gather_ahead(Builder *b, Phase phase, uint32_t stage, uint32_t at);
/* Gradients of the layer that ends at `at` in a stage's backward go to their shards. */
void pipeline_scatter_behind(Builder *b, uint32_t stage, uint32_t at);
/* The gradient of update `i` is summed whole, in the form of the parameter. */
void pipeline_sum_whole(Builder *b, uint32_t i);
/* The gradient of update `i` is summed in shards; the update, whose states are divided. */
void pipeline_sum_states(Builder *b, uint32_t i);
void pipeline_update_states(Builder *b, uint32_t i);

/* Finds the phase, stage and layer of every instruction, what groups need of one another, and what
 * is computed again. */
void pipeline_find_places(Builder *b);

#endif
