/* The state of building a pipeline's program (private to synth). */
#pragma once

#include "data/program/batch.h"
#include "synth/pipeline/pipeline.h"

/* When an instruction of the inner program runs. */
typedef enum {
    EARLY,   /* once: needs nothing but loads */
    FORWARD, /* once per microbatch */
    BACKWARD,
    WEIGHTS, /* once per microbatch: the part of a backward that no other stage waits for */
    LATE,    /* once: needs sums over the batch */
    RECEIVED /* never: a cut that the transfer of its tensor makes */
} Phase;

typedef struct {
    Phase phase;
    uint32_t stage, layer;
    uint32_t unit; /* the unit with which it is computed again, from 1; 0: none */
} Place;

/* A unit of recomputation, a layer or a single instruction: its range in Builder.unit. */
typedef struct {
    uint32_t first, end;
    bool single;
    uint32_t done; /* the last pass in which it was recomputed */
    /* it is recomputed in backward passes: what waits for its turn finds it there */
    bool kept;
} Again;

/* An operand that a group needs from another group. */
typedef struct {
    uint32_t maker; /* instruction of the inner program */
    TensorId tensor;
    Form form, to; /* there and here */
    uint16_t group, to_group;
} Need;

/* An operand that an instruction of the inner program uses, and the instruction that makes it. */
typedef struct {
    Operand of;
    uint32_t maker;
} Use;

typedef struct {
    const Program *inner;
    const Graph *graph;
    const SynthPipeline *pipeline;
    uint32_t n_microbatches; /* of all pipelines */
    BatchForms *batch;
    Place *place;     /* [instr of the inner program] */
    Use *use;         /* by instr */
    uint32_t *use_at; /* [instr + 1]: range of its uses */
    /* [instr]: the forward instruction that keeps data beside tensors for it; UINT32_MAX: none */
    uint32_t *keeper;
    GArray *needs;     /* Need, by maker */
    uint32_t *first;   /* [instr + 1]: range of its needs */
    bool *sent;        /* [need]: a late need was sent */
    uint32_t *unit;    /* instructions by (phase, stage), in order */
    uint32_t *begin;   /* [phase * n_stages + stage]: first in `unit` */
    GArray *again;     /* Again; element 0 is not used */
    bool *read;        /* [tensor]: a forward op reads it */
    RecomputeWay *way; /* [op]: how it runs again; NULL: none does */
    bool *kept; /* [tensor]: its readers in the backward do not make its op run again */
    Phase running;  /* the phase of the present pass */
    uint32_t pass;  /* the number of backward passes begun, of a stage on a microbatch */
    uint32_t piece; /* how many passes of the present step came before it */
    /* [group * n_tensors + tensor]: bit f: form f is partial over the replicas */
    uint8_t *partial;
    Program *program;
    /* forms over the shards (synth/pipeline/shards.c); NULL: nothing is divided */
    Form *need, *gives;    /* [op * OP_MAX_IN + input], [op * OP_MAX_OUT + output] */
    Form *made;            /* [tensor]: form in which it is held */
    uint8_t *view, *home;  /* [op], [tensor]: VIEW_STAGE or VIEW_EXPERTS; always set */
    uint16_t *experts;     /* [group]: the group of its experts */
    uint32_t n_tokens;     /* tokens of a sequence */
    GHashTable *converted; /* conversion made for an op -> 1 + its pass */
    /* sharded states (synth/pipeline/states.c); NULL: none */
    Form *state;      /* [tensor]: form over the shards of a divided parameter */
    uint16_t *states; /* [group]: the group of its states */
    /* [parameter]: the instruction that makes its gradient in the update's form */
    uint32_t *direct;
    /* [instr]: the last pass in which the tensor it loads was gathered */
    uint32_t *gathered;
    bool *summed; /* [instr]: the gradient of this update is complete */
    bool *whole;  /* [parameter]: its gradient is summed; always set */
    /* uint32_t: the first instruction of each step in `program`, and of the rest */
    GArray *step;
} Builder;

/* Walks the uses of an instruction of the inner program. */
#define uses_each(item, b, i)                               \
    items_each (const Use, item, &(b)->use[(b)->use_at[i]], \
                (b)->use_at[(i) + 1] - (b)->use_at[i])

static inline uint32_t pipeline_maker(const Builder *b, uint32_t i, uint32_t k)
{
    return b->use[b->use_at[i] + k].maker;
}

AUTOCLEAR(pipeline_builder_clear, Builder)

static inline uint16_t group_at(const Builder *b, uint32_t i)
{
    KILTER_ASSERT(b->place[i].stage < b->pipeline->n_stages);
    return (uint16_t)schedule_group(b->pipeline->schedule, b->place[i].stage,
                                    b->pipeline->n_groups);
}

static inline uint8_t *partial_of(const Builder *b, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(group < b->pipeline->n_groups && tensor < graph_n_tensors(b->graph));
    return &b->partial[(size_t)group * graph_n_tensors(b->graph) + tensor];
}

/* Whether some outputs of an op that runs on parts of the batch are sums over it. */
static inline bool makes_sums(const Builder *b, const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE)
        return false;
    const Op *op = graph_get_op(b->graph, instr->op);
    const bool any = any_of(o, op->n_out, b->batch->form[op->out[o]] == FORM_REDUCE);
    return any && b->batch->loop[instr->op] >= 0;
}

/* Writes the program of a pipeline that has its n_microbatches of all `n_microbatches`. exchanges:
 * its sums over the batch have been summed over all replicas when the last microbatch has run. The
 * program is not checked. KILTER_ERROR_INPUT as synth_pipeline. */
bool pipeline_build(Builder *b, uint32_t n_microbatches, bool exchanges, GError **error);
/* Checks a program by the microbatches that are unlike each other, or else whole; one that leaves
 * microbatches out is checked where it is evaluated. */
bool pipeline_check_program(const Program *program, const Graph *graph, GError **error);

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

/* The two views of a stage's devices: as the stage's group, or as the group in which experts are
 * divided. */
enum { VIEW_STAGE, VIEW_EXPERTS };

/* Finds the forms over shards. KILTER_ERROR_INPUT if the graph or the batch cannot be divided in
 * this way. */
bool pipeline_find_shards(Builder *b, GError **error);
uint32_t pipeline_view(const Builder *b, uint32_t group, uint8_t view);
/* A form over shards in a group of the program: those without shards have all of it. */
static inline Form pipeline_over(const Builder *b, uint32_t group, Form form)
{
    return group_shards(&b->program->group[group]) > 1 ? form : FORM_IDENTITY;
}
/* The form over the shards of a group of the program in which it holds a tensor. */
static inline Form pipeline_held(const Builder *b, uint32_t group, TensorId tensor)
{
    return b->made ? pipeline_over(b, group, b->made[tensor]) : FORM_IDENTITY;
}

/* The conversion that turns a form over the shards into another one. */
Collective pipeline_conversion(Form from, Form to);

/* Whether input i of an op is weights of experts, of which each device may have some whole. */
bool pipeline_reads_experts(const Graph *graph, const Op *op, const OpSpace *space,
                            uint32_t i);

/* Whether a layer is computed again in whole. */
static inline bool pipeline_layer_again(const Builder *b, uint32_t layer)
{
    const Recompute *modes = b->pipeline->recompute;
    return modes && modes[layer] == RECOMPUTE_FULL;
}

/* Whether a tensor is computed again together with the exchanges around it. */
static inline bool pipeline_exchanged_again(const Builder *b, TensorId tensor,
                                            uint32_t layer)
{
    const Recompute *modes = b->pipeline->recompute;
    const OpId by = graph_tensor(b->graph, tensor)->producer;
    return pipeline_layer_again(b, layer) ||
           (b->way && modes[layer] & RECOMPUTE_MOE && by != GRAPH_NONE &&
            b->way[by] == RECOMPUTE_MODULE);
}

/* The first function writes a conversion over the shards of a group, the second hands a tensor over
 * to another group of the same devices. */
void pipeline_convert(Builder *b, uint32_t group, TensorId tensor, Form inside, Form from,
                      Form to, uint32_t microbatch);
void pipeline_regroup(Builder *b, uint32_t from_group, uint32_t to_group, TensorId tensor,
                      Form from, Form to, uint32_t microbatch);

/* Writes instruction `i` of the inner program, with the conversions that its operands need. */
void pipeline_run(Builder *b, uint32_t i, uint32_t microbatch);

/* --- sharded states --- */

/* Finds which states are divided, and in what form; to be called once places are known. */
void pipeline_find_states(Builder *b);
bool pipeline_divides(const Builder *b, TensorId parameter);

/* Writes a load, in the group where the states of its tensor lie. */
void pipeline_load(Builder *b, uint32_t i);
/* Gather divided parameters, once per pass: those that instruction `i` uses, or those of the layer
 * that begins at `at` in a stage's phase and of the layer after it. */
void pipeline_gather_for(Builder *b, uint32_t i);
void pipeline_gather_ahead(Builder *b, Phase phase, uint32_t stage, uint32_t at);
/* Sends the gradients of the layer that ends at `at` in a stage's phase to their shards. */
void pipeline_scatter_behind(Builder *b, Phase phase, uint32_t stage, uint32_t at);
/* Sums a tensor of a stage's group, which its shards hold in the form `over`, if replicas have
 * parts of it. */
void pipeline_sum_parts(Builder *b, uint32_t group, TensorId tensor, Form inside,
                        Form over);
/* Sums the gradient of update `i` whole, in the form of the parameter. */
void pipeline_sum_whole(Builder *b, uint32_t i);
/* The first function sums the gradient of update `i` in shards, the second writes an update whose
 * states are divided. */
void pipeline_sum_states(Builder *b, uint32_t i);
void pipeline_update_states(Builder *b, uint32_t i);

/* Finds the phase, stage and layer of every instruction, the tensors that groups need from one
 * another, and the units that are computed again. */
void pipeline_find_places(Builder *b);
