/* The program checker: walks a program once and trusts nothing. It knows the rules that follow from
 * the op table and the conversions of collectives, and nothing about planners' searches. */
#include "data/program/check.h"

#include "data/base/error.h"

static bool check_load(Check *check)
{
    const Instr *instr = check_current(check);
    if (!check_tensor(check, instr->tensor) ||
        !check_form(check, instr->tensor, instr->to) || !check_microbatch(check, false))
        return false;
    if (graph_tensor(check->graph, instr->tensor)->producer != GRAPH_NONE)
        return check_wrong(check,
                           "only inputs, parameters and optimizer states are loaded");
    if (!check_axes(check, instr->group, instr->tensor, instr->to))
        return false;
    if (form_inside(instr->to) == FORM_REDUCE || form_shards(instr->to) == FORM_REDUCE)
        return check_wrong(check, "nothing lies at rest as partial sums");
    const size_t at =
        (size_t)instr->group * graph_n_tensors(check->graph) + instr->tensor;
    if (check->loaded[at])
        return check_wrong(check, "%s is loaded twice",
                           tensor_name(check, instr->tensor));
    check->loaded[at] = true;
    check->rest[at] = instr->to;
    const uint32_t first =
        instances_place(check->instances, instr->group, 0, instr->tensor, instr->to);
    const uint32_t n = instances_has_parts(check->instances, instr->tensor)
                           ? check->program->n_microbatches
                           : 1;
    for (uint32_t i = 0; i < n; i++)
        check_make_at(check, first + i * check->instances->n_parted, instr->to, false);
    return true;
}

/* Checks that an op that is not cut with the batch has a rule for inputs that are partial over the
 * replicas; *partial gets whether its outputs are partial, too. */
static bool check_partial(const Check *check, const Op *op, bool *partial)
{
    const Instr *instr = check_current(check);
    Rule rule[OP_MAX_RULES];
    const uint32_t n = op_rules(check->graph, instr->op, rule);
    for (uint32_t r = 0; r < n; r++) {
        bool fits = rule[r].loop < 0;
        for (uint32_t i = 0; fits && i < op->n_in; i++)
            fits = rule[r].form[i] == (check_is_partial(check, op->in[i], instr->form[i])
                                           ? FORM_REDUCE
                                           : FORM_IDENTITY);
        if (!fits)
            continue;
        *partial = rule[r].form[op->n_in] == FORM_REDUCE;
        return true;
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        if (check_is_partial(check, op->in[i], instr->form[i]))
            return check_wrong(check, "%s is partial over the replicas",
                               tensor_name(check, op->in[i]));
    return check_wrong(check, "it does not run on the whole batch");
}

/* Adds a microbatch to the sums that the op makes. */
static bool add_sums(Check *check, const Op *op, bool again)
{
    const Instr *instr = check_current(check);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Form form = instr->form[op->n_in + o];
        if (!check_is_sum(check, op->out[o])) {
            check_make(check, op->out[o], form, false);
            continue;
        }
        if (again)
            return check_wrong(check, "%s has this microbatch already",
                               tensor_name(check, op->out[o]));
        check_add_to(check, instr->group, op->out[o], form, 1);
    }
    return true;
}

static bool check_operands(const Check *check, const Op *op)
{
    const Instr *instr = check_current(check);
    uint32_t outer = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!check_form(check, op->in[i], instr->form[i]) ||
            !check_axes(check, instr->group, op->in[i], instr->form[i]) ||
            !check_held(check, op->in[i], instr->form[i]))
            return false;
    for (uint32_t o = 0; o < op->n_out; o++)
        if (!check_form(check, op->out[o], instr->form[op->n_in + o]) ||
            !check_axes(check, instr->group, op->out[o], instr->form[op->n_in + o]))
            return false;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
        outer |= form_outer(instr->form[i]);
    Rule rule;
    if (!op_rule_find(check->graph, instr->op, instr->form, &rule))
        return check_wrong(check, "not a rule of %s", op->name);
    return !outer ||
           (op_rule_of_shards(check->graph, instr->op, instr->form, &rule) &&
            op_rule_of_replicas(check->graph, instr->op, instr->form, &rule)) ||
           check_wrong(check, "not a rule of %s over shards and replicas", op->name);
}

static bool check_compute(Check *check)
{
    const Instr *instr = check_current(check);
    if (instr->op >= graph_n_ops(check->graph))
        return check_wrong(check, "the graph has %u ops", graph_n_ops(check->graph));
    const Op *op = graph_get_op(check->graph, instr->op);
    const bool cut = check->batch && check->batch->loop[instr->op] >= 0;
    if (!check_microbatch(check, cut) || !check_operands(check, op))
        return false;
    bool partial = false;
    if (check->batch && !cut && !check_partial(check, op, &partial))
        return false;
    for (uint32_t i = 0; cut && i < op->n_in; i++)
        if (check_is_partial(check, op->in[i], instr->form[i]))
            return check_wrong(check, "%s is partial over the replicas",
                               tensor_name(check, op->in[i]));
    const uint32_t n = check->program->n_microbatches;
    bool *ran =
        &check->ran[(size_t)instr->op * n + (cut && n > 1 ? instr->microbatch : 0)];
    const bool again = *ran;
    *ran = true;
    if (cut)
        return add_sums(check, op, again);
    for (uint32_t o = 0; o < op->n_out; o++)
        check_make(check, op->out[o], instr->form[op->n_in + o], partial);
    return true;
}

static bool check_instr(Check *check)
{
    const Instr *instr = check_current(check);
    if (!check_group(check, instr->group))
        return false;
    if (instr->stream > 1)
        return check_wrong(check, "expected stream 0 or 1, got %u", instr->stream);
    if (instr->server && !(instr->kind == INSTR_COLLECTIVE && instr->across))
        return check_wrong(check, "only an all_reduce across replicas has a server");
    switch (instr->kind) {
    case INSTR_LOAD:
        return check_load(check);
    case INSTR_COMPUTE:
        return check_compute(check);
    case INSTR_COLLECTIVE:
        return check_collective(check);
    case INSTR_TRANSFER:
        return check_transfer(check);
    }
    return check_wrong(check, "unknown kind of instruction");
}

/* Checks that groups have devices, each once. */
static bool program_check_groups(const Program *program, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    items_at (const DeviceGroup, group, g, program->group, program->n_groups) {
        const size_t n = (size_t)group->n_replicas * group->n_devices;
        g_hash_table_remove_all(seen);
        for (size_t i = 0; i < n; i++)
            if (!g_hash_table_add(seen, GUINT_TO_POINTER(group->device[i])))
                return kilter_fail(error, KILTER_ERROR_FAILED,
                                   "group %u has device %u twice", g, group->device[i]);
        if (n == 0)
            return kilter_fail(error, KILTER_ERROR_FAILED, "group %u has no devices", g);
        if (group->n_replicas % group_shards(group) != 0)
            return kilter_fail(error, KILTER_ERROR_FAILED,
                               "group %u has %u replicas: %u shards do not divide them",
                               g, group->n_replicas, group->n_shards);
    }
    return true;
}

static bool check_cut(const Program *program, const BatchForms *batch, GError **error)
{
    if (program->n_microbatches > 1 && batch && batch->reads_sum != GRAPH_NONE)
        return kilter_fail(
            error, KILTER_ERROR_FAILED,
            "op %u reads a sum over the batch: expected 1 microbatch, got %u",
            batch->reads_sum, program->n_microbatches);
    if (program->n_microbatches >= 1 && program->n_microbatches < PROGRAM_WHOLE &&
        (!batch || batch->units % program_parts(program) == 0))
        return true;
    return kilter_fail(error, KILTER_ERROR_FAILED,
                       "%u pieces of the batch cannot be cut in %u equal microbatches",
                       batch ? batch->units : 1, program->n_microbatches);
}

bool program_check(const Program *program, const Graph *graph, GError **error)
{
    g_autoptr(BatchForms) batch = NULL;
    if (!program_check_groups(program, error))
        return false;
    if (!batch_forms_of_program(program, graph, &batch, error) ||
        !check_cut(program, batch, error))
        return false;
    g_autoptr(Instances) instances = instances_new(program, graph, batch);
    const uint32_t n_groups = MAX(1, program->n_groups), n = instances->n_places;
    const size_t at_rest = (size_t)n_groups * graph_n_tensors(graph);
    g_autofree uint8_t *held = g_new0(uint8_t, n);
    g_autofree uint8_t *partial = g_new0(uint8_t, n);
    g_autofree uint32_t *added = g_new0(uint32_t, (size_t)n * FORM_MAX);
    g_autofree uint32_t *joined = g_new0(uint32_t, (size_t)n * FORM_MAX);
    g_autofree Form *rest = g_new0(Form, at_rest);
    g_autofree bool *loaded = g_new0(bool, at_rest);
    g_autofree bool *ran =
        g_new0(bool, (size_t)graph_n_ops(graph) * program->n_microbatches);
    Check check = {.program = program,
                   .graph = graph,
                   .n_groups = n_groups,
                   .batch = batch,
                   .instances = instances,
                   .held = held,
                   .partial = partial,
                   .added = added,
                   .joined = joined,
                   .rest = rest,
                   .loaded = loaded,
                   .ran = ran,
                   .error = error};
    for (check.at = 0; check.at < program->n; check.at++)
        if (!check_instr(&check))
            return false;
    return check_complete(&check);
}
