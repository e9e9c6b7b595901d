#include "data/program.h"

enum { FIRST_CAPACITY = 64 };

Program *program_new(void)
{
    return g_new0(Program, 1);
}

Program *program_copy(const Program *program)
{
    Program *copy = program_new();
    copy->instr = g_memdup2(program->instr, program->n * sizeof *program->instr);
    copy->n = copy->capacity = program->n;
    return copy;
}

void program_free(Program *program)
{
    if (!program)
        return;
    g_free(program->instr);
    g_free(program);
}

static void append(Program *program, Instr instr)
{
    if (program->n == program->capacity) {
        program->capacity = program->capacity ? 2 * program->capacity : FIRST_CAPACITY;
        program->instr = g_renew(Instr, program->instr, program->capacity);
    }
    program->instr[program->n++] = instr;
}

void program_load(Program *program, TensorId tensor, Form form)
{
    append(program, (Instr){.kind = INSTR_LOAD, .tensor = tensor, .to = form});
}

void program_compute(Program *program, OpId op, const Form *form, uint32_t n_operands)
{
    g_assert(n_operands <= OP_MAX_OPERANDS);
    Instr instr = {.kind = INSTR_COMPUTE, .op = op};
    for (uint32_t i = 0; i < n_operands; i++)
        instr.form[i] = form[i];
    append(program, instr);
}

void program_collective(Program *program, Collective kind, TensorId tensor, Form from,
                        Form to)
{
    append(program, (Instr){.kind = INSTR_COLLECTIVE,
                            .stream = kind < (Collective)COLLECTIVES_PRICED,
                            .collective = kind,
                            .tensor = tensor,
                            .from = from,
                            .to = to});
}

/* --- text --- */

static void append_instance(GString *text, const Graph *graph, TensorId tensor, Form form)
{
    char buffer[FORM_TEXT];
    if (tensor < graph_n_tensors(graph))
        g_string_append(text, graph_tensor(graph, tensor)->name);
    else
        g_string_append_printf(text, "tensor #%u", tensor);
    g_string_append_printf(text, "|%s", form_text(form, buffer));
}

static void append_operands(GString *text, const Graph *graph, const TensorId *tensor,
                            const Form *form, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            g_string_append(text, ", ");
        append_instance(text, graph, tensor[i], form[i]);
    }
}

static void append_compute(GString *text, const Instr *instr, const Graph *graph)
{
    if (instr->op >= graph_n_ops(graph)) {
        g_string_append_printf(text, "op #%u", instr->op);
        return;
    }
    const Op *op = graph_get_op(graph, instr->op);
    append_operands(text, graph, op->out, instr->form + op->n_in, op->n_out);
    g_string_append_printf(text, " <- %s(", op_kind_name(op->kind));
    append_operands(text, graph, op->in, instr->form, op->n_in);
    g_string_append_c(text, ')');
}

char *instr_text(const Instr *instr, const Graph *graph)
{
    g_autoptr(GString) text = g_string_new("");
    const char *via = instr->kind == INSTR_TRANSFER ? "transfer"
                      : instr->collective < COLLECTIVES
                          ? collective_name(instr->collective)
                          : "unknown";
    switch (instr->kind) {
    case INSTR_COMPUTE:
        append_compute(text, instr, graph);
        break;
    case INSTR_LOAD:
        append_instance(text, graph, instr->tensor, instr->to);
        g_string_append(text, " <- load");
        break;
    case INSTR_COLLECTIVE:
    case INSTR_TRANSFER:
        append_instance(text, graph, instr->tensor, instr->to);
        g_string_append_printf(text, " <- %s(", via);
        append_instance(text, graph, instr->tensor, instr->from);
        g_string_append_c(text, ')');
        break;
    }
    return g_strdup(text->str);
}
