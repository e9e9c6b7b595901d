/* The program checker: walks a program once and believes nothing. It knows the rules that follow from the op
 * table and the conversions that collectives make, and nothing of how planners search. */
#include "data/program.h"

#include "data/error.h"

#include <stdarg.h>

typedef struct {
    const Program *program;
    const Graph *graph;
    uint32_t at;   /* instruction being checked */
    uint8_t *held; /* [tensor]: bit f: the devices hold it in form f */
    Form *rest;    /* [tensor]: form it was loaded in */
    bool *loaded;  /* [tensor] */
    bool *ran;     /* [op] */
    GError **error;
} Check;

G_STATIC_ASSERT(FORM_MAX <= 8);

static const Instr *current(const Check *check)
{
    return &check->program->instr[check->at];
}

/* "instruction 12 (text): reason" */
static bool wrong(const Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool wrong(const Check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *text = instr_text(current(check), check->graph);
    return kilter_fail(check->error, KILTER_ERROR_FAILED, "instruction %u (%s): %s",
                       check->at, text, reason);
}

static const char *tensor_name(const Check *check, TensorId tensor)
{
    return graph_tensor(check->graph, tensor)->name;
}

static bool check_tensor(const Check *check, TensorId tensor)
{
    if (tensor < graph_n_tensors(check->graph))
        return true;
    return wrong(check, "the graph has %u tensors", graph_n_tensors(check->graph));
}

/* The tensor can be in that form: a sharded dim exists and can be cut. */
static bool check_form(const Check *check, TensorId id, Form form)
{
    const Tensor *tensor = graph_tensor(check->graph, id);
    if (form >= FORM_MAX)
        return wrong(check, "%s: unknown form %u", tensor->name, form);
    if (!form_is_gather(form))
        return true;
    if (form_dim(form) >= tensor->rank)
        return wrong(check, "%s has %u dims, none is dim %u", tensor->name, tensor->rank,
                     form_dim(form));
    if (tensor->units[form_dim(form)] < 2)
        return wrong(check, "dim %u of %s cannot be sharded", form_dim(form),
                     tensor->name);
    return true;
}

static bool check_held(const Check *check, TensorId tensor, Form form)
{
    char text[FORM_TEXT];
    if (check->held[tensor] >> form & 1u)
        return true;
    return wrong(check, "%s|%s was not made before", tensor_name(check, tensor),
                 form_text(form, text));
}

static void make(Check *check, TensorId tensor, Form form)
{
    check->held[tensor] |= (uint8_t)(1u << form);
}

static bool check_load(Check *check)
{
    const Instr *instr = current(check);
    if (!check_tensor(check, instr->tensor) ||
        !check_form(check, instr->tensor, instr->to))
        return false;
    if (graph_tensor(check->graph, instr->tensor)->producer != GRAPH_NONE)
        return wrong(check, "only inputs, parameters and optimizer states are loaded");
    if (instr->to == FORM_REDUCE)
        return wrong(check, "nothing lies at rest as partial sums");
    if (check->loaded[instr->tensor])
        return wrong(check, "%s is loaded twice", tensor_name(check, instr->tensor));
    check->loaded[instr->tensor] = true;
    check->rest[instr->tensor] = instr->to;
    make(check, instr->tensor, instr->to);
    return true;
}

static bool check_compute(Check *check)
{
    const Instr *instr = current(check);
    if (instr->op >= graph_n_ops(check->graph))
        return wrong(check, "the graph has %u ops", graph_n_ops(check->graph));
    const Op *op = graph_get_op(check->graph, instr->op);
    if (check->ran[instr->op])
        return wrong(check, "op %s runs twice", op->name);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!check_form(check, op->in[i], instr->form[i]) ||
            !check_held(check, op->in[i], instr->form[i]))
            return false;
    for (uint32_t o = 0; o < op->n_out; o++)
        if (!check_form(check, op->out[o], instr->form[op->n_in + o]))
            return false;
    Rule rule;
    if (!op_rule_find(check->graph, instr->op, instr->form, &rule))
        return wrong(check, "not a rule of %s", op->name);
    check->ran[instr->op] = true;
    for (uint32_t o = 0; o < op->n_out; o++)
        make(check, op->out[o], instr->form[op->n_in + o]);
    return true;
}

static bool check_collective(Check *check)
{
    const Instr *instr = current(check);
    if (!check_tensor(check, instr->tensor) ||
        !check_form(check, instr->tensor, instr->from) ||
        !check_form(check, instr->tensor, instr->to))
        return false;
    if (!collective_converts(instr->collective, instr->from, instr->to))
        return wrong(check, "no such conversion");
    if (!check_held(check, instr->tensor, instr->from))
        return false;
    make(check, instr->tensor, instr->to);
    return true;
}

static bool check_instr(Check *check)
{
    const Instr *instr = current(check);
    if (instr->group != 0 || instr->microbatch != 0)
        return wrong(check, "expected group 0 and microbatch 0, got %u and %u",
                     instr->group, instr->microbatch);
    if (instr->stream > 1)
        return wrong(check, "expected stream 0 or 1, got %u", instr->stream);
    switch (instr->kind) {
    case INSTR_LOAD:
        return check_load(check);
    case INSTR_COMPUTE:
        return check_compute(check);
    case INSTR_COLLECTIVE:
        return check_collective(check);
    case INSTR_TRANSFER:
        return wrong(check, "a program of one group has no transfers");
    }
    return wrong(check, "unknown kind of instruction");
}

/* Every op ran, the loss is there, and what the update writes lies where its old value lay. */
static bool check_complete(const Check *check)
{
    const Graph *graph = check->graph;
    char text[FORM_TEXT];
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (!check->ran[id])
            return kilter_fail(check->error, KILTER_ERROR_FAILED,
                               "the program is not complete: op %s never runs",
                               graph_get_op(graph, id)->name);
    TensorId loss = graph_loss(graph);
    if (loss != GRAPH_NONE &&
        !(check->held[loss] & (1u << FORM_IDENTITY | 1u << FORM_REDUCE)))
        return kilter_fail(check->error, KILTER_ERROR_FAILED,
                           "the program is not complete: expected %s|identity or "
                           "%s|reduce",
                           tensor_name(check, loss), tensor_name(check, loss));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        TensorId next = graph_updated(graph, t);
        if (next == GRAPH_NONE || (check->held[next] >> check->rest[t] & 1u))
            continue;
        return kilter_fail(check->error, KILTER_ERROR_FAILED,
                           "the program is not complete: expected %s|%s, the form in "
                           "which %s rests",
                           tensor_name(check, next), form_text(check->rest[t], text),
                           tensor_name(check, t));
    }
    return true;
}

bool program_check(const Program *program, const Graph *graph, GError **error)
{
    g_autofree uint8_t *held = g_new0(uint8_t, graph_n_tensors(graph));
    g_autofree Form *rest = g_new0(Form, graph_n_tensors(graph));
    g_autofree bool *loaded = g_new0(bool, graph_n_tensors(graph));
    g_autofree bool *ran = g_new0(bool, graph_n_ops(graph));
    Check check = {.program = program,
                   .graph = graph,
                   .held = held,
                   .rest = rest,
                   .loaded = loaded,
                   .ran = ran,
                   .error = error};
    for (check.at = 0; check.at < program->n; check.at++)
        if (!check_instr(&check))
            return false;
    return check_complete(&check);
}
