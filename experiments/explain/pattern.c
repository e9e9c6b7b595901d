/* Which known pattern an op with a weight follows; see explain.h. */
#include "experiments/explain/pattern.h"

#include "data/base/free.h"

#include <string.h>

/* Whether the input has a loop that no other input has, so that the op does more than scale or
 * shift by it. */
static bool contracts(const Op *op, const OpSpace *space, uint32_t input)
{
    for (uint32_t l = 0; l < space->n_loops; l++) {
        const bool others = any_of(i, op->n_in,
                                   i != input && !(space->added >> i & 1u) &&
                                       space_driven_dim(space, i, l) >= 0);
        if (!others && space_driven_dim(space, input, l) >= 0)
            return true;
    }
    return false;
}

bool pattern_weight(const Graph *graph, OpId id, uint32_t *weight)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    graph_op_space(graph, id, &space);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER &&
            !(space.added >> i & 1u) && contracts(op, &space, i)) {
            *weight = i;
            return true;
        }
    return false;
}

/* The input that is not a parameter: the activation that flows through. */
static uint32_t flowing_input(const Graph *graph, const Op *op)
{
    uint32_t i = 0;
    while (i + 1 < op->n_in && graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER)
        i++;
    return i;
}

static const char *pattern_of_loop(const Graph *graph, OpId id, uint32_t weight, int loop)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    graph_op_space(graph, id, &space);
    uint32_t x = flowing_input(graph, op);
    bool in_w = space_driven_dim(&space, weight, (uint32_t)loop) >= 0;
    bool in_x = space_driven_dim(&space, x, (uint32_t)loop) >= 0;
    bool in_y = space_driven_dim(&space, op->n_in, (uint32_t)loop) >= 0;
    if (!in_w)
        return space.dim_loop[x][0] == loop ? PATTERN_DATA : "sequence parallel";
    if (in_x)
        return in_y ? "expert parallel" : "row parallel";
    return in_y ? "column parallel" : "vocabulary parallel";
}

/* The separate computation of op `id`'s part of the weight's gradient, if there is one. */
static const Instr *gradient_instr(const PatternForms *forms, OpId id, uint32_t weight)
{
    TensorId gradient = graph_contribution(forms->graph, id, weight);
    if (gradient == GRAPH_NONE)
        return NULL;
    OpId producer = graph_tensor(forms->graph, gradient)->producer;
    return producer == GRAPH_NONE ? NULL : forms->compute[producer];
}

/* The level of ZeRO; 0: the weight's tensors are sharded only as its use shards them. */
static int zero_level(const PatternForms *forms, TensorId weight)
{
    if (form_is_gather(forms->rest[weight]))
        return forms->used[weight] & ~(1u << forms->rest[weight]) ? 3 : 0;
    if (!form_is_gather(forms->moment[weight]))
        return 0;
    TensorId gradient = graph_gradient(forms->graph, weight);
    if (gradient != GRAPH_NONE && forms->divided[weight])
        return forms->divided[gradient] ? 2 : 1;
    return gradient != GRAPH_NONE && (forms->held[gradient] & 1u << FORM_IDENTITY) ? 1
                                                                                   : 2;
}

char *pattern_name(const PatternForms *forms, OpId id, uint32_t weight)
{
    const Instr *forward = forms->compute[id];
    const Op *op = graph_get_op(forms->graph, id);
    const char *name = PATTERN_REPLICATED;
    Rule rule;
    if (op_rule_find(forms->graph, id, forward->form, &rule)) {
        if (rule.loop >= 0)
            name = pattern_of_loop(forms->graph, id, weight, rule.loop);
        else if (forward->form[op->n_in] == FORM_REDUCE)
            name = "partial sums";
    }
    const Instr *backward = gradient_instr(forms, id, weight);
    if (strcmp(name, PATTERN_DATA) == 0 && backward &&
        op_rule_find(forms->graph, backward->op, backward->form, &rule) &&
        rule.loop < 0 &&
        backward->form[graph_get_op(forms->graph, backward->op)->n_in] == FORM_IDENTITY)
        name = "SFB";
    int zero = zero_level(forms, op->in[weight]);
    return zero ? g_strdup_printf("%s with ZeRO-%d", name, zero) : g_strdup(name);
}

/* --- the forms of a program's tensors --- */

/* The form in which replicas divide the state, or, if they do not, the form within a replica. */
static Form plain_form(Form form)
{
    return form_is_gather(form_shards(form)) ? form_shards(form) : form_inside(form);
}

static void note_compute(PatternForms *forms, const Instr *instr)
{
    const Op *op = graph_get_op(forms->graph, instr->op);
    forms->compute[instr->op] = instr;
    for (uint32_t i = 0; i < op->n_in && op->pass != PASS_UPDATE; i++)
        forms->used[op->in[i]] |= 1u << form_inside(instr->form[i]);
    for (uint32_t i = 0; i < op->n_out; i++) {
        forms->made[op->out[i]] = instr->form[op->n_in + i];
        forms->held[op->out[i]] |= 1u << form_inside(instr->form[op->n_in + i]);
    }
}

PatternForms *pattern_forms_new(const Program *program, const Graph *graph)
{
    uint32_t n = graph_n_tensors(graph);
    PatternForms *forms = g_new0(PatternForms, 1);
    forms->graph = graph;
    forms->compute = g_new0(const Instr *, graph_n_ops(graph));
    forms->rest = g_new0(Form, n);
    forms->made = g_new0(Form, n);
    forms->moment = g_new0(Form, n);
    forms->used = g_new0(uint32_t, n);
    forms->held = g_new0(uint32_t, n);
    forms->divided = g_new0(bool, n);
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind == INSTR_COMPUTE) {
            note_compute(forms, instr);
            continue;
        }
        const Tensor *tensor = graph_tensor(graph, instr->tensor);
        forms->held[instr->tensor] |= 1u << form_inside(instr->to);
        forms->divided[instr->tensor] |= instr->moves;
        if (instr->kind == INSTR_LOAD)
            forms->rest[instr->tensor] = forms->made[instr->tensor] =
                plain_form(instr->to);
        if (instr->kind == INSTR_LOAD && tensor->role == ROLE_OPTIMIZER) {
            forms->moment[tensor->of] = plain_form(instr->to);
            forms->divided[tensor->of] |= form_is_gather(form_shards(instr->to));
        }
    }
    return forms;
}

FREE_DEFINE(pattern_forms_free, PatternForms, forms,
            free_each(forms->compute, forms->rest, forms->made, forms->moment,
                      forms->used, forms->held, forms->divided));
