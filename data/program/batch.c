/* The form of each tensor when the batch is cut, and numbers for the instances of a program. */
#include "data/program/batch.h"

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"

#include <string.h>

enum { UNKNOWN = FORM_MAX }; /* the form of an input that no op has used yet */

/* --- forms --- */

/* Whether the rule accepts the inputs in their forms; unknown forms match any. With `summed`,
 * partial sums count as summed. */
static bool fits(const Op *op, const Rule *rule, const Form *form, bool summed)
{
    KILTER_ASSERT(op->n_in <= OP_MAX_IN);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Form have = form[op->in[i]];
        if (rule->loop >= 0 && rule->form[i] == FORM_REDUCE)
            return false;
        if (have == UNKNOWN || have == rule->form[i])
            continue;
        if (!(summed && have == FORM_REDUCE && rule->form[i] == FORM_IDENTITY))
            return false;
    }
    return true;
}

/* Finds the rule under which an op runs; false if there is none. */
static bool batch_find_rule(const Graph *graph, OpId id, const BatchForms *batch,
                            Rule *found)
{
    KILTER_ASSERT(batch->units > 0);
    const Op *op = graph_get_op(graph, id);
    Rule rule[OP_MAX_RULES];
    const Form *form = batch->form;
    const uint32_t n =
        batch->units > 1 ? op_rules(graph, id, rule) : op_rules_of_one(graph, id, rule);
    /* First try the inputs as they are, then with sums made whole before, on the whole batch or on
     * parts of it. */
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t r = 0; r < n; r++)
            if (fits(op, &rule[r], form, pass > 0) && (pass != 1 || rule[r].loop < 0)) {
                *found = rule[r];
                return true;
            }
    return false;
}

/* Whether the op runs on parts of the batch and reads a sum over all of it. */
static bool takes_sum(const Op *op, const Rule *rule, const Form *form)
{
    for (uint32_t i = 0; rule->loop >= 0 && i < op->n_in; i++)
        if (form[op->in[i]] == FORM_REDUCE && rule->form[i] == FORM_IDENTITY)
            return true;
    return false;
}

static bool run_op(BatchForms *batch, const Graph *graph, OpId id, GError **error)
{
    KILTER_ASSERT(id < graph_n_ops(graph));
    const Op *op = graph_get_op(graph, id);
    Rule rule;
    if (!batch_find_rule(graph, id, batch, &rule))
        return refuse(error, "the batch cannot be cut: op %s does not run on parts of it",
                      op->name);
    batch->loop[id] = rule.loop;
    if (batch->reads_sum == GRAPH_NONE && takes_sum(op, &rule, batch->form))
        batch->reads_sum = id;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (batch->form[op->in[i]] == UNKNOWN)
            batch->form[op->in[i]] = rule.form[i];
    for (uint32_t o = 0; o < op->n_out; o++)
        batch->form[op->out[o]] = rule.form[op->n_in + o];
    return true;
}

/* Whether both tensors have one number or index per token, or pixel, of the same batch, or `a` has
 * indices or vectors of its samples: the sound or the images beside the words. */
static bool batch_alike(const Tensor *a, const Tensor *b)
{
    enum { INDICES = 2, VECTORS = 3 };
    return (a->dtype == b->dtype && a->rank == b->rank &&
            memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0) ||
           (a->rank >= (a->dtype == DTYPE_I64 ? INDICES : VECTORS) &&
            a->dim[0] == b->dim[0] && a->units[0] == b->units[0]);
}

/* Sets the forms of tensors without producer: the first input is cut, and so are inputs like it
 * (the positions of tokens beside the tokens). */
static void init_forms(BatchForms *batch, const Graph *graph)
{
    const Tensor *first = NULL;
    tensors_each (tensor, t, graph) {
        const bool input = tensor->role == ROLE_INPUT && tensor->rank > 0;
        batch->form[t] = tensor->role == ROLE_INPUT ? UNKNOWN : FORM_IDENTITY;
        first = first || !input ? first : tensor;
        if (input && batch_alike(tensor, first))
            batch->form[t] = form_gather(0);
    }
    batch->units = first ? first->units[0] : 0;
}

/* Checks that all tensors divide the batch into the same number of equal pieces. */
static bool check_units(const BatchForms *batch, const Graph *graph, GError **error)
{
    tensors_each (tensor, t, graph) {
        if (form_is_gather(batch->form[t]) &&
            tensor->units[form_dim(batch->form[t])] != batch->units)
            return refuse(
                error, "the batch cannot be cut: it has %u pieces, but %u in %s",
                batch->units, tensor->units[form_dim(batch->form[t])], tensor->name);
    }
    return true;
}

static BatchForms *find_forms(const Graph *graph, GError **error)
{
    g_autoptr(BatchForms) batch = g_new0(BatchForms, 1);
    batch->form = g_new(Form, graph_n_tensors(graph) + 1);
    batch->loop = g_new(int8_t, graph_n_ops(graph) + 1);
    batch->reads_sum = GRAPH_NONE;
    init_forms(batch, graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (!run_op(batch, graph, id, error))
            return NULL;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (batch->form[t] == UNKNOWN)
            batch->form[t] = FORM_IDENTITY;
    return check_units(batch, graph, error) ? g_steal_pointer(&batch) : NULL;
}

BatchForms *batch_forms_new(const Graph *graph, GError **error)
{
    g_autoptr(BatchForms) batch = find_forms(graph, error);
    if (batch && batch->units < 2)
        return refused(error,
                       "the batch cannot be cut: dim 0 of the first input is whole");
    return g_steal_pointer(&batch);
}

BatchForms *batch_forms_of_microbatches(const Graph *graph, GError **error)
{
    g_autoptr(BatchForms) batch = find_forms(graph, error);
    if (batch && batch->reads_sum != GRAPH_NONE)
        return refused(error,
                       "the batch cannot be cut: op %s does not run on parts of it",
                       graph_get_op(graph, batch->reads_sum)->name);
    return g_steal_pointer(&batch);
}

bool batch_forms_of_program(const Program *program, const Graph *graph,
                            BatchForms **batch, GError **error)
{
    bool parts = program->n_microbatches > 1;
    for (uint32_t g = 0; g < program->n_groups; g++)
        parts |= group_parts(&program->group[g]) > 1;
    *batch = parts                         ? batch_forms_new(graph, error)
             : program_cuts_batch(program) ? find_forms(graph, error)
                                           : NULL;
    return *batch || !program_cuts_batch(program);
}

FREE_DEFINE(batch_forms_free, BatchForms, batch, free_each(batch->form, batch->loop));

/* --- instances --- */

/* The memory for the place of the tensor's first instance in forms with that outer part; NULL if
 * there is none yet. */
static uint32_t *noted(const Instances *instances, uint32_t group, TensorId tensor,
                       uint32_t outer)
{
    KILTER_ASSERT(tensor < instances->n_tensors && outer < FORM_OUTERS);
    const size_t at = (size_t)group * instances->n_tensors + tensor;
    if (outer == 0)
        return &instances->first[at];
    const uint32_t row = instances->row[at];
    return row == 0 ? NULL
                    : &g_array_index(instances->outer, uint32_t,
                                     (row - 1) * FORM_OUTERS + outer);
}

static void add_row(Instances *instances, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(instances->row[(size_t)group * instances->n_tensors + tensor] == 0);
    const uint32_t none = GRAPH_NONE;
    for (uint32_t i = 0; i < FORM_OUTERS; i++)
        g_array_append_val(instances->outer, none);
    instances->row[(size_t)group * instances->n_tensors + tensor] =
        instances->outer->len / FORM_OUTERS;
}

/* Most operands have plain forms that an instruction before had. */
static inline void see(Instances *instances, uint32_t n_groups, uint32_t group,
                       TensorId tensor, Form form)
{
    KILTER_ASSERT(n_groups > 0);
    if (group >= n_groups || tensor >= instances->n_tensors)
        return;
    const uint32_t outer = form_outer(form);
    uint32_t *first = &instances->first[(size_t)group * instances->n_tensors + tensor];
    if (outer != 0 && !(first = noted(instances, group, tensor, outer))) {
        add_row(instances, group, tensor);
        first = noted(instances, group, tensor, outer);
    }
    if (*first != GRAPH_NONE)
        return;
    *first = instances_has_parts(instances, tensor) ? instances->n_parted++
                                                    : instances->n_whole++;
}

static void see_instr(Instances *instances, const Graph *graph, uint32_t n_groups,
                      const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE) {
        const bool sent = instr->kind == INSTR_TRANSFER;
        if (instr->kind != INSTR_LOAD)
            see(instances, n_groups, instr->group, instr->tensor, instr->from);
        see(instances, n_groups, sent ? instr->to_group : instr->group, instr->tensor,
            instr->to);
        return;
    }
    if (instr->op >= graph_n_ops(graph))
        return;
    const Op *op = graph_get_op(graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++)
        see(instances, n_groups, instr->group, op->in[i], instr->form[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        see(instances, n_groups, instr->group, op->out[o], instr->form[op->n_in + o]);
}

Instances *instances_new(const Program *program, const Graph *graph,
                         const BatchForms *batch)
{
    const uint32_t n_groups = MAX(1, program->n_groups);
    Instances *instances = g_new0(Instances, 1);
    instances->n_tensors = graph_n_tensors(graph);
    instances->n_microbatches = program->n_microbatches;
    instances->batch = batch;
    const size_t n = (size_t)n_groups * instances->n_tensors;
    instances->first = g_new(uint32_t, n);
    instances->row = g_new0(uint32_t, n);
    instances->outer = g_array_new(false, false, sizeof(uint32_t));
    for (size_t i = 0; i < n; i++)
        instances->first[i] = GRAPH_NONE;
    for (uint32_t i = 0; i < program->n; i++)
        see_instr(instances, graph, n_groups, &program->instr[i]);
    instances->n_places =
        instances->n_parted * program->n_microbatches + instances->n_whole;
    return instances;
}

FREE_DEFINE(instances_free, Instances, instances,
            free_each(instances->first, instances->row), g_array_unref(instances->outer));

static uint32_t place_from(const Instances *instances, uint32_t first,
                           uint32_t microbatch, TensorId tensor)
{
    if (first == GRAPH_NONE)
        return first;
    if (!instances_has_parts(instances, tensor))
        return instances->n_parted * instances->n_microbatches + first;
    return MIN(microbatch, instances->n_microbatches - 1) * instances->n_parted + first;
}

uint32_t instances_place(const Instances *instances, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form)
{
    KILTER_ASSERT(tensor < instances->n_tensors);
    const uint32_t *first = noted(instances, group, tensor, form_outer(form));
    return first ? place_from(instances, *first, microbatch, tensor) : GRAPH_NONE;
}

uint32_t instances_any_place(const Instances *instances, uint32_t group,
                             uint32_t microbatch, TensorId tensor)
{
    KILTER_ASSERT(tensor < instances->n_tensors);
    uint32_t least = GRAPH_NONE;
    for (uint32_t outer = 0; outer < FORM_OUTERS; outer++) {
        const uint32_t *first = noted(instances, group, tensor, outer);
        least = first ? MIN(least, *first) : least;
        if (outer == 0 && least != GRAPH_NONE)
            break;
    }
    return place_from(instances, least, microbatch, tensor);
}

PlacedOperand instances_operand(const Instances *instances, uint32_t group,
                                uint32_t microbatch, Operand operand)
{
    KILTER_ASSERT(form_inside(operand.form) < FORM_MAX);
    return (PlacedOperand){
        operand.tensor, operand.form, (uint16_t)group,
        instances_place(instances, group, microbatch, operand.tensor, operand.form)};
}

uint32_t instances_uses(const Instances *instances, const Graph *graph,
                        const Instr *instr, PlacedOperand use[OP_MAX_IN])
{
    Operand operand[OP_MAX_IN];
    const uint32_t n = instr_uses(instr, graph, operand);
    for (uint32_t i = 0; i < n; i++)
        use[i] =
            instances_operand(instances, instr->group, instr->microbatch, operand[i]);
    return n;
}

uint32_t instances_makes(const Instances *instances, const Graph *graph,
                         const Instr *instr, PlacedOperand make[OP_MAX_OUT])
{
    Operand operand[OP_MAX_OUT];
    const uint32_t n = instr_makes(instr, graph, operand);
    const uint32_t group = instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
    for (uint32_t o = 0; o < n; o++)
        make[o] = instances_operand(instances, group,
                                    instr->kind == INSTR_LOAD ? 0 : instr->microbatch,
                                    operand[o]);
    return n;
}

uint32_t instances_made(const Instances *instances, const Instr *instr)
{
    KILTER_ASSERT(instances->n_microbatches > 0);
    return instr->kind == INSTR_LOAD && instances_has_parts(instances, instr->tensor)
               ? instances->n_microbatches
               : 1;
}
