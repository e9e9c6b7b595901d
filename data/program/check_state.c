/* The instances that groups hold while a program is checked, and the names that an instruction may
 * use. */
#include "data/program/check.h"

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/text.h"

bool check_wrong(const Check *check, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    g_autofree char *text = instr_text(check_current(check), check->graph);
    return kilter_fail(check->error, KILTER_ERROR_FAILED, "instruction %u (%s): %s",
                       check->at, text, reason);
}

bool check_tensor(const Check *check, TensorId tensor)
{
    if (tensor < graph_n_tensors(check->graph))
        return true;
    return check_wrong(check, "the graph has %u tensors", graph_n_tensors(check->graph));
}

/* The tensor can be in that form: a sharded dim exists and can be cut. */
bool check_form(const Check *check, TensorId id, Form form)
{
    const Tensor *tensor = graph_tensor(check->graph, id);
    if (form_inside(form) >= FORM_MAX || form_shards(form) >= FORM_MAX)
        return check_wrong(check, "%s: unknown form %u", tensor->name, form);
    const FormAxis last = form_outer(form) ? AXIS_REPLICAS : AXIS_POSITIONS;
    for (FormAxis axis = AXIS_POSITIONS; axis <= last; axis++) {
        const Form over = form_on(axis, form);
        if (!form_is_gather(over))
            continue;
        if (form_dim(over) >= tensor->rank)
            return check_wrong(check, "%s has %u dims, none is dim %u", tensor->name,
                               tensor->rank, form_dim(over));
        if (tensor->units[form_dim(over)] < 2)
            return check_wrong(check, "dim %u of %s cannot be sharded", form_dim(over),
                               tensor->name);
    }
    return true;
}

bool check_has_replicas(const Check *check, uint32_t group)
{
    return group < check->program->n_groups &&
           group_parts(&check->program->group[group]) > 1;
}

/* The group of an instruction has the axes that its forms are over. A dim is cut over at most two
 * axes, the batch's parts and the replicas counting as one. */
bool check_axes(const Check *check, uint32_t group, TensorId id, Form form)
{
    if (!form_outer(form))
        return true;
    const Tensor *tensor = graph_tensor(check->graph, id);
    if (form_shards(form) && (group >= check->program->n_groups ||
                              group_shards(&check->program->group[group]) == 1))
        return check_wrong(check, "%s: the group has no shards", tensor->name);
    const Form parts = check->batch ? check->batch->form[id] : FORM_IDENTITY;
    if (form_replicas(form) &&
        (!check_has_replicas(check, group) || form_is_gather(parts) || !check->batch))
        return check_wrong(check, "%s is not cut over replicas", tensor->name);
    const Form whole = form_is_gather(parts) ? parts : form_replicas(form);
    if (form_is_gather(whole) && form_shards(form) == whole && form_inside(form) == whole)
        return check_wrong(check, "dim %u of %s is cut three times", form_dim(whole),
                           tensor->name);
    if (form_replicas(form) && (form_replicas(form) == form_inside(form) ||
                                form_replicas(form) == form_shards(form)))
        return check_wrong(check, "dim %u of %s is cut over replicas, and once more",
                           form_dim(form_replicas(form)), tensor->name);
    return true;
}

/* Whether the tensor is a sum over the batch that the group adds up. */
bool check_is_sum(const Check *check, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(check->graph));
    return check->batch && check->batch->form[tensor] == FORM_REDUCE;
}

uint32_t check_place(const Check *check, uint32_t group, TensorId tensor, Form form)
{
    KILTER_ASSERT(group < check->n_groups);
    return instances_place(check->instances, group, check_current(check)->microbatch,
                           tensor, form);
}

bool check_held(const Check *check, TensorId tensor, Form form)
{
    char text[FORM_TEXT];
    if (check->held[check_place(check, check_current(check)->group, tensor, form)] >>
            form_inside(form) &
        1u)
        return true;
    return check_wrong(check, "%s|%s was not made before", tensor_name(check, tensor),
                       form_text(form, text));
}

bool check_is_partial(const Check *check, TensorId tensor, Form form)
{
    return check->partial[check_place(check, check_current(check)->group, tensor,
                                      form)] >>
               form_inside(form) &
           1u;
}

void check_make_at(Check *check, uint32_t where, Form form, bool partial)
{
    const uint8_t bit = (uint8_t)(1u << form_inside(form));
    check->held[where] |= bit;
    check->partial[where] =
        (uint8_t)(partial ? check->partial[where] | bit : check->partial[where] & ~bit);
}

void check_make(Check *check, TensorId tensor, Form form, bool partial)
{
    check_make_at(check, check_place(check, check_current(check)->group, tensor, form),
                  form, partial);
}

bool check_microbatch(const Check *check, bool has_parts)
{
    const uint32_t n = check->program->n_microbatches;
    const uint16_t microbatch = check_current(check)->microbatch;
    if (n == 1)
        return microbatch == 0 || microbatch == PROGRAM_WHOLE ||
               check_wrong(check, "the program has 1 microbatch, got microbatch %u",
                           microbatch);
    if (has_parts)
        return microbatch < n ||
               check_wrong(check, "expected a microbatch from 0 to %u", n - 1);
    return microbatch == PROGRAM_WHOLE ||
           check_wrong(check, "expected the whole batch, got microbatch %u", microbatch);
}

bool check_group(const Check *check, uint16_t group)
{
    return group < check->n_groups ||
           check_wrong(check, "the program has %u group%s, got group %u", check->n_groups,
                       check->n_groups == 1 ? "" : "s", group);
}

void check_add_to(Check *check, uint32_t group, TensorId tensor, Form form, uint32_t n)
{
    KILTER_ASSERT(n > 0 && n <= check->program->n_microbatches);
    const size_t where = check_place(check, group, tensor, form);
    uint32_t *added = &check->added[where * FORM_MAX + form_inside(form)];
    *added += n;
    if (*added == check->program->n_microbatches)
        check_make_at(check, (uint32_t)where, form,
                      check_has_replicas(check, group) && !form_replicas(form));
}
