/* The program checker: collectives and transfers. */
#include "data/program/check.h"

#include "data/program/nesting.h"

/* Checks a move of the sum accumulated so far to another instance. */
static bool check_moves(Check *check)
{
    const Instr *instr = check_current(check);
    const size_t where = check_place(check, instr->group, instr->tensor, instr->from);
    uint32_t *added = &check->added[where * FORM_MAX + form_inside(instr->from)];
    const uint32_t n = *added;
    if (!check_is_sum(check, instr->tensor) || n == 0)
        return check_wrong(check, "%s has come to nothing that moves",
                           tensor_name(check, instr->tensor));
    *added = 0;
    check->held[where] &= (uint8_t) ~(1u << form_inside(instr->from));
    check_add_to(check, instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group,
                 instr->tensor, instr->to, n);
    return true;
}

/* Checks a collective over replicas: partial tensors are summed, whole or by parts, or parts are
 * gathered. */
static bool check_across(Check *check)
{
    const Instr *instr = check_current(check);
    const Form to = form_replicas(instr->to), from = form_replicas(instr->from);
    const bool sums = instr->collective == COLLECTIVE_ALL_REDUCE
                          ? instr->from == instr->to
                          : collective_converts(instr->collective, FORM_REDUCE, to);
    if (form_inside(instr->from) != form_inside(instr->to) ||
        form_shards(instr->from) != form_shards(instr->to) ||
        !(sums || (instr->collective != COLLECTIVE_ALL_REDUCE &&
                   collective_converts(instr->collective, from, to))))
        return check_wrong(check,
                           "expected an all_reduce that keeps the form, or a conversion "
                           "over the replicas");
    const uint32_t n_parts =
        check->program->n_groups ? group_parts(&check->program->group[instr->group]) : 1;
    if (instr->server > n_parts || (instr->server && instr->from != instr->to))
        return check_wrong(check, "the group has %u replica%s, got server %u", n_parts,
                           n_parts == 1 ? "" : "s", instr->server - 1);
    if (instr->moves && instr->collective != COLLECTIVE_ALL_REDUCE && sums)
        return check_moves(check);
    if (instr->moves)
        return check_wrong(check, "only what is scattered moves");
    if (!check_held(check, instr->tensor, instr->from))
        return false;
    if (sums != check_is_partial(check, instr->tensor, instr->from))
        return check_wrong(check, "%s is %spartial over the replicas",
                           tensor_name(check, instr->tensor), sums ? "not " : "");
    check_make(check, instr->tensor, instr->to, false);
    return true;
}

static bool check_moved(const Check *check)
{
    const Instr *instr = check_current(check);
    const uint16_t to_group =
        instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
    return check_tensor(check, instr->tensor) && check_group(check, to_group) &&
           check_form(check, instr->tensor, instr->from) &&
           check_form(check, instr->tensor, instr->to) &&
           check_axes(check, instr->group, instr->tensor, instr->from) &&
           check_axes(check, to_group, instr->tensor, instr->to) &&
           check_microbatch(check, check->batch &&
                                       form_is_gather(check->batch->form[instr->tensor]));
}

/* Whether a form cuts one dim over shards and positions, and the conversion is over the axis that
 * cuts it first (data/plan/plan.h): the parts that it joins would not be neighbours. */
static bool crosses_nesting(const Check *check, FormAxis axis, Form form)
{
    const Form both = form_inside(form);
    const bool nested = form_is_gather(both) && form_shards(form) == both;
    if (!nested || axis == AXIS_REPLICAS)
        return false;
    const Instr *instr = check_current(check);
    const bool shards_first = !nesting_starts_inside(check->program, check->graph,
                                                     instr->group, instr->tensor, form);
    return shards_first == (axis == AXIS_SHARDS);
}

bool check_collective(Check *check)
{
    const Instr *instr = check_current(check);
    if (!check_moved(check))
        return false;
    if (instr->across)
        return check_across(check);
    const FormAxis axis = instr_axis(instr);
    const bool on_shards = axis == AXIS_SHARDS;
    if (!collective_converts(instr->collective, form_on(axis, instr->from),
                             form_on(axis, instr->to)) ||
        (on_shards && form_inside(instr->from) != form_inside(instr->to)) ||
        form_replicas(instr->from) != form_replicas(instr->to))
        return check_wrong(check, "no such conversion");
    if (crosses_nesting(check, axis, instr->from) ||
        crosses_nesting(check, axis, instr->to))
        return check_wrong(check,
                           "that dim is divided over shards and positions, and not "
                           "over these last");
    if (instr->moves && instr->collective != COLLECTIVE_REDUCE_SCATTER &&
        instr->collective != COLLECTIVE_GROUPED_REDUCE_SCATTER)
        return check_wrong(check, "only what is scattered moves");
    if (instr->moves)
        return check_moves(check);
    if (!check_held(check, instr->tensor, instr->from))
        return false;
    check_make(check, instr->tensor, instr->to,
               check_is_partial(check, instr->tensor, instr->from));
    return true;
}

/* Checks the forms of a regroup over the shards (data/program/program.h); sets whether its result
 * is partial. */
static bool check_regroup(Check *check)
{
    const Instr *instr = check_current(check);
    const DeviceGroup *from = &check->program->group[instr->group];
    const DeviceGroup *to = &check->program->group[instr->to_group];
    const uint32_t a = group_shards(from), b = group_shards(to);
    const Form parts = check->batch->form[instr->tensor];
    const bool sum = instr->moves ? check_has_replicas(check, instr->group)
                                  : check_is_partial(check, instr->tensor, instr->from);
    Form want = FORM_IDENTITY, have = FORM_IDENTITY;
    if (form_is_gather(parts)) {
        want = a == 1 ? parts : FORM_IDENTITY;
        have = b == 1 ? parts : FORM_IDENTITY;
    } else if (sum || form_shards(instr->from) == FORM_REDUCE) {
        have = a > 1 ? FORM_REDUCE : FORM_IDENTITY;
        want = b > 1 ? FORM_REDUCE : FORM_IDENTITY;
    }
    const bool fits = a > b ? a % b == 0 : b % a == 0;
    const bool parts_fit = !form_is_gather(parts) || a == 1 || b == 1;
    const bool sums_fit = want != FORM_REDUCE || b > a;
    if (!fits || !parts_fit || !sums_fit || (sum && b < a) ||
        form_shards(instr->from) != have || form_shards(instr->to) != want ||
        form_inside(instr->from) != form_inside(instr->to) ||
        form_replicas(instr->from) || form_replicas(instr->to))
        return check_wrong(check, "no such conversion from %u shards to %u", a, b);
    if (instr->moves)
        return check_moves(check);
    check_make_at(check, check_place(check, instr->to_group, instr->tensor, instr->to),
                  instr->to, sum && group_parts(to) > 1);
    return true;
}

/* Checks a transfer that joins the replicas of a larger group, or leaves it. */
static bool check_joins(Check *check)
{
    const Instr *instr = check_current(check);
    const DeviceGroup *from = &check->program->group[instr->group];
    const DeviceGroup *to = &check->program->group[instr->to_group];
    const uint32_t first =
        instr->moves ? group_find_replicas(to, from) : group_find_replicas(from, to);
    if (!check->batch || first == UINT32_MAX || instr->from != instr->to ||
        form_replicas(instr->from) || form_is_gather(check->batch->form[instr->tensor]))
        return check_wrong(check, "expected a whole tensor, and a group whose replicas "
                                  "are neighbours in the other");
    const bool partial = check_is_partial(check, instr->tensor, instr->from);
    const size_t where = check_place(check, instr->group, instr->tensor, instr->from);
    const bool held = check->held[where] >> form_inside(instr->from) & 1u;
    if (instr->moves ? held && check_has_replicas(check, instr->group) && !partial
                     : partial)
        return check_wrong(check, "%s is %spartial over the replicas",
                           tensor_name(check, instr->tensor), partial ? "" : "not ");
    const size_t target = check_place(check, instr->to_group, instr->tensor, instr->to);
    if (!instr->moves) {
        check_make_at(check, (uint32_t)target, instr->to, false);
        return true;
    }
    uint32_t *joined = &check->joined[target * FORM_MAX + form_inside(instr->to)];
    if (!check_moves(check))
        return false;
    if (first != *joined % to->n_replicas)
        return check_wrong(check, "expected replica %u to join next, got %u",
                           *joined % to->n_replicas, first);
    *joined += from->n_replicas;
    return !(check->held[target] >> form_inside(instr->to) & 1u) ||
           *joined % to->n_replicas == 0 ||
           check_wrong(check, "%s is complete without %u of the replicas",
                       tensor_name(check, instr->tensor),
                       to->n_replicas - *joined % to->n_replicas);
}

bool check_transfer(Check *check)
{
    const Instr *instr = check_current(check);
    if (check->n_groups == 1)
        return check_wrong(check, "a program of one group has no transfers");
    if (!check_moved(check))
        return false;
    if (instr->to_group == instr->group)
        return check_wrong(check, "expected another group");
    if (!instr->moves && !check_held(check, instr->tensor, instr->from))
        return false;
    if (instr->across)
        return check_joins(check);
    if (instr_regroups(check->program, instr) && check->batch)
        return check_regroup(check);
    const DeviceGroup *from = &check->program->group[instr->group];
    const DeviceGroup *to = &check->program->group[instr->to_group];
    if (instr->moves || form_outer(instr->from) != form_outer(instr->to) ||
        form_shards(instr->from) == FORM_REDUCE || form_replicas(instr->from) ||
        (form_outer(instr->from) && group_shards(from) != group_shards(to)))
        return check_wrong(check, "what is cut over shards stays so");
    if ((form_inside(instr->from) == FORM_REDUCE) !=
        (form_inside(instr->to) == FORM_REDUCE))
        return check_wrong(check, "partial sums stay partial sums");
    if (form_inside(instr->from) == FORM_REDUCE && from->n_devices != to->n_devices)
        return check_wrong(check, "partial sums of %u devices cannot go to %u",
                           from->n_devices, to->n_devices);
    const bool partial = check_is_partial(check, instr->tensor, instr->from);
    if (partial &&
        (from->n_replicas != to->n_replicas || group_shards(from) != group_shards(to)))
        return check_wrong(check, "what is partial over %u replicas cannot go to %u",
                           group_parts(from), group_parts(to));
    check_make_at(check, check_place(check, instr->to_group, instr->tensor, instr->to),
                  instr->to, partial);
    return true;
}
