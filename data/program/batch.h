/* The batch as an outer axis: what cutting it, in microbatches and over replicas, makes of each
 * tensor.
 *
 * It follows from the op table by the rules that shardings follow from (data/graph/rule.h), with
 * the parts of the batch in the place of the devices. Dim 0 of the first input is the batch; the
 * other inputs follow from the ops that use them first; parameters and optimizer states are in
 * Identity form. A tensor that is used by an op with no rule for its partial sums (an update) has
 * to be summed before. */
#ifndef KILTER_DATA_PROGRAM_BATCH_H
#define KILTER_DATA_PROGRAM_BATCH_H

#include "data/program/program.h"

typedef struct {
    uint32_t units; /* equal pieces that the batch can be cut in */
    Form *form;     /* [tensor]: as its maker leaves it. Gather(d): dim d is the batch */
    /* [op]: the loop that is the batch; -1: the op runs once, not on parts of it */
    int8_t *loop;
    /* The first op that runs on parts of the batch and reads a sum over all of it, as the
     * statistics of a batch norm are; GRAPH_NONE. The batch is then cut over replicas, but not in
     * microbatches. */
    OpId reads_sum;
} BatchForms;

/* KILTER_ERROR_INPUT names the op that cannot run on parts of a batch. */
BatchForms *batch_forms_new(const Graph *graph, GError **error);
/* The same for a batch that is cut in microbatches, or is a single one: then a batch of one piece
 * will do. KILTER_ERROR_INPUT, too, if an op reads a sum. */
BatchForms *batch_forms_of_microbatches(const Graph *graph, GError **error);
void batch_forms_free(BatchForms *batch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BatchForms, batch_forms_free)

/* --- numbers for the instances of a program --- */

/* A *place* is a (group, microbatch, tensor, forms over shards and replicas) that the program refers to;
 * with FORM_MAX forms over the positions each, an instance is place * FORM_MAX + form_inside(form). */
typedef struct {
    uint32_t n_places, n_tensors, n_microbatches;
    const BatchForms *batch; /* NULL: the batch is not cut */
    /* [group * n_tensors + tensor]: place of its microbatch 0 in plain forms, or GRAPH_NONE */
    uint32_t *first;
    uint32_t *row; /* likewise: 1 + its row in `outer`; 0: it is only in plain forms */
    GArray *outer; /* [row * FORM_OUTERS + form_outer]: as `first` */
} Instances;

/* `batch` must outlive the instances. Instructions with groups or ids that do not exist are passed
 * over. */
Instances *instances_new(const Program *program, const Graph *graph,
                         const BatchForms *batch);
void instances_free(Instances *instances);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Instances, instances_free)

/* Whether the tensor has an instance per microbatch, rather than one of PROGRAM_WHOLE. */
static inline bool instances_has_parts(const Instances *instances, TensorId tensor)
{
    return instances->batch && form_is_gather(instances->batch->form[tensor]);
}

/* The place of an instance, whatever `microbatch` if the tensor has no parts; GRAPH_NONE if the
 * program has none. */
uint32_t instances_place(const Instances *instances, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
/* Its least place in any form. */
uint32_t instances_any_place(const Instances *instances, uint32_t group,
                             uint32_t microbatch, TensorId tensor);

/* An operand of an instruction, with the group and the place of its instance. */
typedef struct {
    TensorId tensor;
    Form form;
    uint16_t group;
    uint32_t place;
} PlacedOperand;

PlacedOperand instances_operand(const Instances *instances, uint32_t group,
                                uint32_t microbatch, Operand operand);

/* As instr_uses and instr_makes. A load makes instances of all microbatches: of the first one it is
 * given here, the places of the others follow. */
uint32_t instances_uses(const Instances *instances, const Graph *graph,
                        const Instr *instr, PlacedOperand use[OP_MAX_IN]);
uint32_t instances_makes(const Instances *instances, const Graph *graph,
                         const Instr *instr, PlacedOperand make[OP_MAX_OUT]);
/* How many instances with rising places an instruction makes of each tensor. */
uint32_t instances_made(const Instances *instances, const Instr *instr);

/* The number of the operand's instance: place * FORM_MAX + form_inside(form). */
static inline size_t placed_cell(const PlacedOperand *operand)
{
    return (size_t)operand->place * FORM_MAX + form_inside(operand->form);
}

#endif
