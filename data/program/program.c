/* Programs: building, text and operands of instructions. */
#include "data/program/program.h"

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

Program *program_new(void)
{
    Program *program = g_new0(Program, 1);
    program->n_microbatches = 1;
    return program;
}

Program *program_copy_groups(const Program *program)
{
    Program *copy = program_new();
    copy->n_microbatches = program->n_microbatches;
    copy->left_out = program->left_out;
    copy->successive = program->successive;
    for (uint32_t g = 0; g < program->n_groups; g++) {
        program_add_group(copy, program->group[g].n_replicas, program->group[g].n_devices,
                          program->group[g].device);
        copy->group[g].n_shards = program->group[g].n_shards;
    }
    return copy;
}

Program *program_copy(const Program *program)
{
    Program *copy = program_copy_groups(program);
    copy->instr = g_memdup2(program->instr, program->n * sizeof *program->instr);
    copy->n = copy->capacity = program->n;
    return copy;
}

FREE_DEFINE(program_free, Program, program, g_free(program->instr),
            program_groups_free(program->group, program->n_groups));

/* --- groups --- */

uint16_t program_add_group(Program *program, uint32_t n_replicas, uint32_t n_devices,
                           const uint32_t *device)
{
    g_assert(program->n_groups < UINT16_MAX && n_replicas > 0 && n_devices > 0);
    program->group = g_renew(DeviceGroup, program->group, program->n_groups + 1);
    program->group[program->n_groups] = (DeviceGroup){
        n_replicas, n_devices,
        g_memdup2(device, (size_t)n_replicas * n_devices * sizeof *device), 1, 0};
    return (uint16_t)program->n_groups++;
}

bool group_is_alike(const DeviceGroup *a, const DeviceGroup *b)
{
    return a->n_replicas == b->n_replicas && a->n_devices == b->n_devices &&
           memcmp(a->device, b->device,
                  (size_t)a->n_replicas * a->n_devices * sizeof *a->device) == 0;
}

uint16_t program_add_shards(Program *program, uint16_t group, uint32_t n_shards)
{
    g_assert(group < program->n_groups && n_shards > 0);
    g_assert(program->group[group].n_replicas % n_shards == 0);
    for (uint32_t g = 0; g < program->n_groups; g++)
        if (group_shards(&program->group[g]) == n_shards &&
            group_is_alike(&program->group[g], &program->group[group]))
            return (uint16_t)g;
    const DeviceGroup of = program->group[group];
    const uint16_t added =
        program_add_group(program, of.n_replicas, of.n_devices, of.device);
    program->group[added].n_shards = n_shards;
    return added;
}

static DeviceGroup all_devices(uint32_t n_devices)
{
    DeviceGroup group = {1, n_devices, g_new(uint32_t, n_devices), 1, 0};
    for (uint32_t j = 0; j < n_devices; j++)
        group.device[j] = j;
    return group;
}

DeviceGroup *program_groups(const Program *program, uint32_t n_devices, uint32_t *n)
{
    *n = MAX(1, program->n_groups);
    DeviceGroup *group = g_new(DeviceGroup, *n);
    if (program->n_groups == 0)
        group[0] = all_devices(n_devices);
    items_at (const DeviceGroup, from, g, program->group, program->n_groups) {
        group[g] = *from;
        group[g].device =
            g_memdup2(from->device,
                      (size_t)from->n_replicas * from->n_devices * sizeof *from->device);
    }
    return group;
}

void program_groups_free(DeviceGroup *group, uint32_t n)
{
    free_column(group, n, device);
    g_free(group);
}

bool program_cuts_batch(const Program *program)
{
    return any_of(g, program->n_groups, program->group[g].n_replicas > 1) ||
           program->n_microbatches > 1;
}

bool program_is_spmd(const Program *program)
{
    return program->n_groups == 0 && program->n_microbatches == 1;
}

bool program_check_devices(const Program *program, uint32_t n_devices, GError **error)
{
    KILTER_ASSERT(n_devices > 0);
    items_at (const DeviceGroup, group, g, program->group, program->n_groups) {
        for (size_t i = 0; i < (size_t)group->n_replicas * group->n_devices; i++)
            if (group->device[i] >= n_devices)
                return refuse(error, "group %u has device %u, there are %u devices", g,
                              group->device[i], n_devices);
    }
    return true;
}

/* --- instructions --- */

void program_append(Program *program, Instr instr)
{
    KILTER_ASSERT(program->n <= program->capacity);
    if (program->n == program->capacity) {
        program->capacity = program->capacity ? 2 * program->capacity : FIRST_CAPACITY;
        program->instr = g_renew(Instr, program->instr, program->capacity);
    }
    program->instr[program->n++] = instr;
}

void program_load(Program *program, TensorId tensor, Form form)
{
    program_append(program, (Instr){.kind = INSTR_LOAD, .tensor = tensor, .to = form});
}

void program_compute(Program *program, OpId op, const Form *form, uint32_t n_operands)
{
    g_assert(n_operands <= OP_MAX_OPERANDS);
    Instr instr = {.kind = INSTR_COMPUTE, .op = op};
    for (uint32_t i = 0; i < n_operands; i++)
        instr.form[i] = form[i];
    program_append(program, instr);
}

void program_collective(Program *program, Collective kind, TensorId tensor, Form from,
                        Form to)
{
    KILTER_ASSERT(kind < COLLECTIVES && from < FORM_MAX && to < FORM_MAX);
    program_append(program, (Instr){.kind = INSTR_COLLECTIVE,
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

static void append_place(GString *text, const Instr *instr)
{
    const bool transfer = instr->kind == INSTR_TRANSFER;
    if (!transfer && !instr->group && !instr->microbatch)
        return;
    g_string_append_printf(text, " [group %u", instr->group);
    if (transfer)
        g_string_append_printf(text, " to %u", instr->to_group);
    if (instr->microbatch != PROGRAM_WHOLE)
        g_string_append_printf(text, ", microbatch %u", instr->microbatch);
    g_string_append_c(text, ']');
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
        g_string_append_printf(text, " <- %s%s%s", via, instr->across ? " across" : "",
                               instr->moves ? " moves" : "");
        if (instr->server)
            g_string_append_printf(text, " by server %u", instr->server - 1);
        g_string_append_c(text, '(');
        append_instance(text, graph, instr->tensor, instr->from);
        g_string_append_c(text, ')');
        break;
    }
    append_place(text, instr);
    return g_strdup(text->str);
}

uint32_t instr_uses(const Instr *instr, const Graph *graph, Operand use[OP_MAX_IN])
{
    KILTER_ASSERT(instr->kind <= INSTR_TRANSFER);
    if (instr->kind == INSTR_LOAD)
        return 0;
    use[0] = (Operand){instr->tensor, instr->from};
    if (instr->kind != INSTR_COMPUTE)
        return 1;
    const Op *op = graph_get_op(graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++)
        use[i] = (Operand){op->in[i], instr->form[i]};
    return op->n_in;
}

uint32_t instr_makes(const Instr *instr, const Graph *graph, Operand make[OP_MAX_OUT])
{
    KILTER_ASSERT(instr->kind <= INSTR_TRANSFER);
    if (instr->kind == INSTR_COLLECTIVE && instr->across && instr->from == instr->to)
        return 0;
    make[0] = (Operand){instr->tensor, instr->to};
    if (instr->kind != INSTR_COMPUTE)
        return 1;
    const Op *op = graph_get_op(graph, instr->op);
    for (uint32_t o = 0; o < op->n_out; o++)
        make[o] = (Operand){op->out[o], instr->form[op->n_in + o]};
    return op->n_out;
}

FormAxis instr_axis(const Instr *instr)
{
    return instr->across                                        ? AXIS_REPLICAS
           : form_shards(instr->from) != form_shards(instr->to) ? AXIS_SHARDS
                                                                : AXIS_POSITIONS;
}

bool instr_regroups(const Program *program, const Instr *instr)
{
    if (instr->kind != INSTR_TRANSFER || instr->group >= program->n_groups ||
        instr->to_group >= program->n_groups)
        return false;
    const DeviceGroup *from = &program->group[instr->group],
                      *to = &program->group[instr->to_group];
    if (instr->across)
        return true;
    return group_shards(from) != group_shards(to) && group_is_alike(from, to);
}

uint32_t group_find_replicas(const DeviceGroup *whole, const DeviceGroup *part)
{
    const size_t n = part->n_devices, bytes = part->n_replicas * n * sizeof *part->device;
    const uint32_t shards = group_shards(part);
    if (whole->n_devices != n || group_shards(whole) != shards)
        return UINT32_MAX;
    for (uint32_t r = 0; r + part->n_replicas <= whole->n_replicas; r += shards)
        if (memcmp(part->device, &whole->device[r * n], bytes) == 0)
            return r;
    return UINT32_MAX;
}
