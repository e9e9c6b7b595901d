/* Forms and rules: how a distributed tensor relates to its reference tensor, and the forms of
 * outputs that an op makes from forms of inputs (HAP Sec. 4.2). Rules follow from the op table
 * alone; see data/graph/op.h.
 *
 * Where devices lie in several axes (data/program/program.h: positions, shards, replicas) a tensor
 * has a form over each of them. All three fit in one Form: a plain Form is the form over the
 * positions, and is Identity over the other axes. */
#pragma once

#include "data/graph/graph.h"

typedef uint8_t Form;
enum {
    FORM_IDENTITY = 0, /* every device holds the whole tensor */
    FORM_REDUCE = 1,   /* the devices' tensors sum to the tensor */
    FORM_GATHER0 = 2,  /* device j holds a slice along dim 0; dim d is FORM_GATHER0 + d */
    FORM_MAX = FORM_GATHER0 + TENSOR_MAX_RANK,
};

G_STATIC_ASSERT(FORM_MAX <= 8);

/* The form over the positions takes three bits, over the shards three more, over the replicas,
 * where only dims 1 to 3 are cut, two. */
static inline Form form_inside(Form form)
{
    return form & 7;
}
static inline Form form_shards(Form form)
{
    return form >> 3 & 7;
}
static inline Form form_replicas(Form form)
{
    return form >> 6 ? (Form)(FORM_GATHER0 + (form >> 6)) : (Form)FORM_IDENTITY;
}
static inline Form form_over(Form inside, Form shards, Form replicas)
{
    return (Form)(inside | shards << 3 |
                  (replicas > FORM_GATHER0 ? (replicas - FORM_GATHER0) << 6 : 0));
}
/* The form over shards and replicas; 0 for a plain form. */
static inline uint32_t form_outer(Form form)
{
    return form >> 3;
}
enum { FORM_OUTERS = 32 };

static inline Form form_gather(uint32_t dim)
{
    return (Form)(FORM_GATHER0 + dim);
}
/* Both speak of the positions. */
static inline bool form_is_gather(Form form)
{
    return form_inside(form) >= FORM_GATHER0;
}
static inline uint32_t form_dim(Form form)
{
    return form_inside(form) - FORM_GATHER0;
}

/* Writes "identity", "reduce" or "gather(1)"; for a form that is not plain also the forms over
 * shards and replicas, as in "gather(1)/gather(0)/identity". text: a buffer of FORM_TEXT bytes,
 * which is returned. */
enum { FORM_TEXT = 32 };
const char *form_text(Form form, char buffer[FORM_TEXT]);
bool form_parse(const char *text, Form *form);

/* One way to run an op on every device: {in forms} op {out forms}. */
typedef struct {
    Form form[OP_MAX_OPERANDS]; /* inputs, then outputs */
    int8_t loop;    /* sharded loop, or -1 if every device does all of the work */
    uint32_t units; /* of the sharded loop; 0 when loop is -1 */
    double flops_replicated; /* FLOPs that each device does in full */
    double flops_sharded;    /* FLOPs that are divided by the loop's ratios */
} Rule;

/* At most one replicated rule, one per linear group, one per shardable loop. */
enum { OP_MAX_RULES = 1 + 4 + OP_MAX_LOOPS };

/* All rules of op `id`; returns their number. */
uint32_t op_rules(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES]);

/* The same, and rules that cut a loop of a single piece, which only one device gets. */
uint32_t op_rules_of_one(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES]);

/* The rules for shards: all rules, and one that divides queries; returns their number. */
uint32_t op_shard_rules(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES + 1]);

/* The operand whose form tells which part of operand `operand` a device reads or writes: the
 * operand itself, or, if it is looked up by indices that are cut, the indices. */
uint32_t op_cut_with(const Op *op, const Form *form, uint32_t operand);

/* The rule of an op of a sealed graph with exactly these forms over the positions, false if there
 * is none; the other functions look at the forms over the shards and over the replicas. */
bool op_rule_find(const Graph *graph, OpId id, const Form *form, Rule *rule);
bool op_rule_of_shards(const Graph *graph, OpId id, const Form *form, Rule *rule);
bool op_rule_of_replicas(const Graph *graph, OpId id, const Form *form, Rule *rule);
