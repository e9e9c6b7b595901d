/* The batch as an outer axis: the form of each tensor when the batch is cut into microbatches and
 * over replicas.
 *
 * The forms follow from the op table by the rules of sharding (data/graph/rule.h), with the parts
 * of the batch in the role of devices. Dim 0 of the first input is the batch; the other inputs
 * follow from the ops that use them first; parameters and optimizer states are in Identity form. A
 * tensor used by an op without a rule for partial sums (an update) has to be summed before. */
#pragma once

#include "data/program/program.h"

typedef struct {
    uint32_t units; /* equal pieces into which the batch can be cut */
    Form *form;     /* [tensor]: its form when made. Gather(d): dim d is the batch */
    /* [op]: the loop over the batch; -1: the op runs once, not on parts of the batch */
    int8_t *loop;
    /* the first op that runs on parts of the batch and reads a sum over all of it, such as the
     * statistics of a batch norm, or GRAPH_NONE. With such an op the batch can be cut over
     * replicas, but not into microbatches */
    OpId reads_sum;
} BatchForms;

/* The forms of a batch that is cut. KILTER_ERROR_INPUT names an op that cannot run on parts of the
 * batch. */
BatchForms *batch_forms_new(const Graph *graph, GError **error);
/* The same for a batch cut into microbatches, possibly a single one, for which a batch of one piece
 * suffices. KILTER_ERROR_INPUT also if an op reads a sum. */
BatchForms *batch_forms_of_microbatches(const Graph *graph, GError **error);
/* The forms of a program's batch, into *batch; NULL if the program does not cut it. Of shards that
 * share all of it, a batch of one piece suffices. KILTER_ERROR_INPUT as batch_forms_new. */
bool batch_forms_of_program(const Program *program, const Graph *graph,
                            BatchForms **batch, GError **error);
AUTOPTR(batch_forms_free, BatchForms)

/* --- numbers for the instances of a program --- */

/* A *place* is a (group, microbatch, tensor, forms over shards and replicas) that the program
 * refers to. Each place has FORM_MAX forms over the positions, so an instance is place * FORM_MAX +
 * form_inside(form). Places of a microbatch are neighbours, as it uses them one after the other;
 * those of tensors without parts stand last. */
typedef struct {
    uint32_t n_places, n_tensors, n_microbatches;
    uint32_t n_parted, n_whole; /* places of each microbatch, and of none */
    const BatchForms *batch;    /* NULL: the batch is not cut */
    /* [group * n_tensors + tensor]: the number of its place in plain forms among those of a
     * microbatch, or of none; or GRAPH_NONE */
    uint32_t *first;
    uint32_t *row; /* likewise: 1 + its row in `outer`; 0: it has plain forms only */
    GArray *outer; /* [row * FORM_OUTERS + form_outer]: as `first` */
} Instances;

/* `batch` must outlive the instances. Groups or ids that do not exist are ignored. */
Instances *instances_new(const Program *program, const Graph *graph,
                         const BatchForms *batch);
AUTOPTR(instances_free, Instances)

/* Whether the tensor has one instance per microbatch instead of a single one of PROGRAM_WHOLE. */
static inline bool instances_has_parts(const Instances *instances, TensorId tensor)
{
    return instances->batch && form_is_gather(instances->batch->form[tensor]);
}

/* The place of an instance; GRAPH_NONE if the program has none. `microbatch` is ignored if the
 * tensor has no parts. */
uint32_t instances_place(const Instances *instances, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
/* The tensor's least place in any form. */
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

/* As instr_uses and instr_makes. A load makes instances of all microbatches: this returns the first
 * microbatch's, and each further one's place is n_parted behind. */
uint32_t instances_uses(const Instances *instances, const Graph *graph,
                        const Instr *instr, PlacedOperand use[OP_MAX_IN]);
uint32_t instances_makes(const Instances *instances, const Graph *graph,
                         const Instr *instr, PlacedOperand make[OP_MAX_OUT]);
/* The number of instances that an instruction makes of each tensor. */
uint32_t instances_made(const Instances *instances, const Instr *instr);

/* The number of the operand's instance: place * FORM_MAX + form_inside(form). */
static inline size_t placed_cell(const PlacedOperand *operand)
{
    return (size_t)operand->place * FORM_MAX + form_inside(operand->form);
}
