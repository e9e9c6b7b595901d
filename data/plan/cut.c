/* Splits of a plan: the dims that are cut, their ratios, and their rounding. */
#include "data/plan/cut.h"

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/program/nesting.h"
#include "data/program/period.h"

#include <string.h>

/* --- which splits cut an instance --- */

PlanCut plan_cut(const Program *program, const Graph *graph, const BatchForms *batch,
                 uint32_t group, uint32_t segment, TensorId tensor, Form form)
{
    KILTER_ASSERT(tensor < graph_n_tensors(graph));
    const Tensor *t = graph_tensor(graph, tensor);
    const Form outer = batch ? batch->form[tensor] : FORM_IDENTITY;
    const Form inside = form_inside(form), shards = form_shards(form),
               replicas = form_replicas(form);
    PlanCut cut = {.has_parts = form_is_gather(outer)};
    cut.to_shard = cut.has_parts && shards == outer;
    cut.to_device = cut.has_parts && inside == outer;
    cut.is_sharded = form_is_gather(shards) && !cut.to_shard;
    cut.over_replicas = form_is_gather(replicas);
    cut.is_cut = form_is_gather(form) && inside != outer;
    cut.nested = cut.is_cut && inside == shards;
    const Split key = {.segment = segment, .group = (uint16_t)group};
    cut.batch = cut.shards = cut.replicas = cut.inner = key;
    cut.batch.kind = SPLIT_BATCH;
    cut.batch.divided = cut.to_shard || cut.to_device;
    cut.shards.kind =
        cut.nested && nesting_starts_inside(program, graph, group, tensor, form)
            ? SPLIT_NESTED
            : SPLIT_SHARDS;
    cut.replicas.kind = SPLIT_REPLICAS;
    if (cut.has_parts)
        cut.batch.units = batch->units / program_parts(program);
    if (cut.is_sharded)
        cut.shards.units = t->units[form_dim(shards)];
    if (cut.over_replicas)
        cut.replicas.units = t->units[form_dim(replicas)];
    if (cut.is_cut)
        cut.inner.units = t->units[form_dim(form)];
    return cut;
}

/* Adds a split if it is new. Most splits repeat those of the last instructions, so the latest
 * splits stand last and are searched first. */
static void add_split(GArray *splits, const Split *split)
{
    enum { LATEST = 16 };
    for (uint32_t i = 1; i <= splits->len && i <= LATEST; i++) {
        Split *known = &g_array_index(splits, Split, splits->len - i);
        if (plan_compare_splits(known, split) == 0 && known->divided == split->divided) {
            *known = g_array_index(splits, Split, splits->len - 1);
            g_array_index(splits, Split, splits->len - 1) = *split;
            return;
        }
    }
    g_array_append_vals(splits, split, 1);
}

static void add_cut(const Plan *plan, const Graph *graph, const BatchForms *batch,
                    uint32_t group, uint32_t segment, TensorId tensor, Form form,
                    GArray *splits)
{
    KILTER_ASSERT(tensor < graph_n_tensors(graph));
    const bool has_parts = batch && form_is_gather(batch->form[tensor]);
    if (!has_parts && form_outer(form) == 0 && !form_is_gather(form))
        return; /* whole on every device, as most are */
    const PlanCut cut =
        plan_cut(plan->program, graph, batch, group, segment, tensor, form);
    if (cut.has_parts)
        add_split(splits, &cut.batch);
    if (cut.is_sharded)
        add_split(splits, &cut.shards);
    if (cut.over_replicas)
        add_split(splits, &cut.replicas);
    if (cut.is_cut && !cut.nested)
        add_split(splits, &cut.inner);
}

void plan_instr_splits(const Plan *plan, const Graph *graph, const BatchForms *batch,
                       const uint16_t *instance_segment, const Instr *instr,
                       GArray *splits)
{
    if (instr->kind != INSTR_COMPUTE) {
        const uint16_t *segment = &instance_segment[(size_t)instr->tensor * FORM_MAX];
        const uint16_t to_group =
            instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
        if (instr->kind != INSTR_LOAD)
            add_cut(plan, graph, batch, instr->group, segment[form_inside(instr->from)],
                    instr->tensor, instr->from, splits);
        add_cut(plan, graph, batch, to_group, segment[form_inside(instr->to)],
                instr->tensor, instr->to, splits);
        return;
    }
    const Op *op = graph_get_op(graph, instr->op);
    const uint16_t segment = plan->segment ? plan->segment[instr->op] : 0;
    for (uint32_t f = 0; f < op->n_in + op->n_out; f++) {
        const TensorId tensor = f < op->n_in ? op->in[f] : op->out[f - op->n_in];
        add_cut(plan, graph, batch, instr->group, segment, tensor, instr->form[f],
                splits);
        /* the split of the tensor's instance, if another segment cuts it */
        const uint16_t kept =
            instance_segment[(size_t)tensor * FORM_MAX + form_inside(instr->form[f])];
        if (kept != segment)
            add_cut(plan, graph, batch, instr->group, kept, tensor, instr->form[f],
                    splits);
    }
}

/* Whether the instruction needs the same splits as the last one on its op or tensor, which it
 * replaces in `last`: [op], then [tensor]. */
static bool is_known(const Program *program, uint32_t ops, uint32_t i, uint32_t *last)
{
    const Instr *instr = &program->instr[i];
    uint32_t *of = &last[instr->kind == INSTR_COMPUTE ? instr->op : ops + instr->tensor];
    const bool known = instr_alike(&program->instr[*of], instr) && *of != i;
    *of = i;
    return known;
}

GArray *plan_needed_splits(const Plan *plan, const Graph *graph, const BatchForms *batch)
{
    GArray *splits = g_array_new(false, false, sizeof(Split));
    g_autofree uint16_t *segment = plan_segments(plan->program, graph, plan->segment);
    g_autofree uint32_t *last =
        g_new0(uint32_t, (size_t)graph_n_ops(graph) + graph_n_tensors(graph));
    for (uint32_t i = 0; i < plan->program->n; i++)
        if (!is_known(plan->program, graph_n_ops(graph), i, last))
            plan_instr_splits(plan, graph, batch, segment, &plan->program->instr[i],
                              splits);
    g_array_sort(splits, plan_compare_splits);
    Split *split = (Split *)(void *)splits->data;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < splits->len; i++)
        if (kept == 0 || plan_compare_splits(&split[kept - 1], &split[i]) != 0)
            split[kept++] = split[i];
        else
            split[kept - 1].divided |= split[i].divided;
    g_array_set_size(splits, kept);
    return splits;
}

/* --- rounding --- */

/* Scales the values to sum 1; if all are 0 they become equal. */
static void normalise(double *value, uint32_t n)
{
    const double total = sum_over(double, i, n, value[i]);
    for (uint32_t i = 0; i < n; i++)
        value[i] = total > 0 ? value[i] / total : 1.0 / n;
}

/* The invariant of shares: none is negative, and they sum to 1. */
static void walk_shares(const double *share, uint32_t n)
{
    double total = 0;
    for (uint32_t i = 0; i < n; i++) {
        g_assert(share[i] >= 0 && share[i] <= 1 + 1e-9);
        total += share[i];
    }
    g_assert(total > 1 - 1e-9 && total < 1 + 1e-9);
}

double *plan_group_shares(const Plan *plan, const DeviceGroup *group, const Split *split,
                          double *replica)
{
    g_assert(group->n_devices > 0 && group->n_replicas > 0);
    const uint32_t n = group->n_devices;
    const bool batch = split->kind == SPLIT_BATCH;
    const double *row = &plan->ratio[(size_t)split->segment * plan->n_devices];
    double *share = g_new0(double, (size_t)group->n_replicas *n);
    for (uint32_t r = 0; r < group->n_replicas; r++) {
        double *own = &share[batch ? (size_t)r * n : 0];
        replica[r] = 0;
        for (uint32_t p = 0; p < n; p++) {
            own[p] += row[group->device[(size_t)r * n + p]];
            replica[r] += row[group->device[(size_t)r * n + p]];
        }
    }
    normalise(replica, group->n_replicas);
    for (uint32_t r = 0; r < group->n_replicas; r++) {
        if (batch || r == 0)
            normalise(&share[(size_t)r * n], n);
        else
            memcpy(&share[(size_t)r * n], share, n * sizeof *share);
        KILTER_WALK(walk_shares(&share[(size_t)r * n], n));
    }
    KILTER_WALK(walk_shares(replica, group->n_replicas));
    return share;
}

/* The units of each replica; shards of one part of the batch are neighbours. */
static uint32_t *round_replicas(const DeviceGroup *group, const Split *split,
                                const double *replica)
{
    KILTER_ASSERT(group->n_replicas % group_shards(group) == 0);
    const uint32_t n_shards = group_shards(group), n_parts = group_parts(group);
    uint32_t *units = g_new(uint32_t, group->n_replicas);
    g_autofree uint32_t *of_part = g_new(uint32_t, n_parts);
    g_autofree double *part = g_new0(double, n_parts);
    g_autofree double *shard = g_new(double, n_shards);
    for (uint32_t r = 0; r < group->n_replicas; r++)
        part[r / n_shards] += replica[r];
    split_round(part, n_parts, split->units, of_part);
    for (uint32_t k = 0; k < n_parts; k++) {
        memcpy(shard, &replica[k * n_shards], n_shards * sizeof *shard);
        normalise(shard, n_shards);
        split_round(shard, n_shards,
                    split->kind == SPLIT_BATCH ? of_part[k] : split->units,
                    &units[k * n_shards]);
        for (uint32_t s = 0; split->kind == SPLIT_REPLICAS && s < n_shards; s++)
            units[k * n_shards + s] = of_part[k];
    }
    return units;
}

/* Rounds over the devices of a replica first, then over the shards of each set. */
static void round_nested(const DeviceGroup *group, const Split *split,
                         const double *ratio)
{
    KILTER_ASSERT(split->kind == SPLIT_NESTED && split->units > 0);
    const uint32_t n = group->n_devices, n_shards = group_shards(group);
    g_autofree double *even = g_new(double, n_shards);
    g_autofree uint32_t *of_position = g_new(uint32_t, n);
    g_autofree uint32_t *of_shard = g_new(uint32_t, n_shards);
    for (uint32_t s = 0; s < n_shards; s++)
        even[s] = 1.0 / n_shards;
    split_round(ratio, n, split->units, of_position);
    for (uint32_t p = 0; p < n; p++) {
        split_round(even, n_shards, of_position[p], of_shard);
        for (uint32_t r = 0; r < group->n_replicas; r++)
            split->count[(size_t)r * n + p] = of_shard[r % n_shards];
    }
}

static void round_split(const Plan *plan, const DeviceGroup *group, Split *split)
{
    KILTER_ASSERT(split->units > 0);
    const uint32_t n = group->n_devices, n_replicas = group->n_replicas;
    g_autofree double *replica = g_new(double, n_replicas);
    g_autofree double *ratio = plan_group_shares(plan, group, split, replica);
    split->count = g_new0(uint32_t, (size_t)n_replicas * n);
    for (uint32_t r = 0; split->kind != SPLIT_BATCH && r < n_replicas; r++)
        replica[r] = 1.0 / n_replicas;
    if (split->kind == SPLIT_NESTED) {
        round_nested(group, split, ratio);
        return;
    }
    g_autofree uint32_t *units = round_replicas(group, split, replica);
    for (uint32_t r = 0; r < n_replicas; r++) {
        uint32_t *count = &split->count[(size_t)r * n];
        if (split->kind != SPLIT_REPLICAS)
            split_round(&ratio[(size_t)r * n], n,
                        split->kind == SPLIT_POSITIONS ? split->units : units[r], count);
        for (uint32_t p = 0; split->kind == SPLIT_REPLICAS && p < n; p++)
            count[p] = units[r];
    }
}

/* Whether the split gives all devices the same, or, of the batch where a strategy made the program,
 * in which devices of a replica share its samples, all sets of shards. */
static bool split_is_even(const Split *split, const DeviceGroup *of, bool strategy)
{
    const bool shared = strategy && split->kind == SPLIT_BATCH;
    const uint32_t n = of->n_replicas * of->n_devices,
                   each = shared ? group_shards(of) * of->n_devices : 1;
    uint32_t first = 0, sum = 0;
    bool even = true;
    for (uint32_t k = 0; k < n; k++) {
        sum = k % each ? sum + split->count[k] : split->count[k];
        first = k < each ? sum : first;
        even &= (k + 1) % each != 0 || sum == first;
    }
    return even;
}

bool plan_splits_evenly(const Plan *plan)
{
    uint32_t n_groups;
    DeviceGroup *group = program_groups(plan->program, plan->n_devices, &n_groups);
    bool even = true;
    for (uint32_t j = 1; j < plan->n_segments * plan->n_devices; j++)
        even = even && plan->ratio[j] == plan->ratio[0];
    for (uint32_t i = 0; even && i < plan->n_splits; i++)
        even = split_is_even(&plan->split[i], &group[plan->split[i].group],
                             plan->strategy.pp > 0);
    program_groups_free(group, n_groups);
    return even;
}

bool plan_check_groups(const Plan *plan, GError **error)
{
    const Program *program = plan->program;
    if (!program_check_devices(program, plan->n_devices, error))
        return false;
    for (uint32_t g = 0; g < program->n_groups; g++)
        if (program->group[g].n_replicas > 1 && plan->n_segments > 1)
            return refuse(error, "group %u has %u replicas: expected 1 segment, got %u",
                          g, program->group[g].n_replicas, plan->n_segments);
    return true;
}

GArray *plan_rounded_splits(const Plan *plan, const Graph *graph, const BatchForms *batch)
{
    uint32_t n_groups;
    DeviceGroup *group = program_groups(plan->program, plan->n_devices, &n_groups);
    GArray *splits = plan_needed_splits(plan, graph, batch);
    array_each (Split, split, splits) {
        const DeviceGroup *of = &group[split->group];
        const Split *known = plan_find_split(plan, split);
        if (known)
            split->count =
                g_memdup2(known->count,
                          (size_t)of->n_replicas * of->n_devices * sizeof *known->count);
        else
            round_split(plan, of, split);
    }
    program_groups_free(group, n_groups);
    return splits;
}

bool plan_round(Plan *plan, const Graph *graph, GError **error)
{
    g_autoptr(BatchForms) batch = NULL;
    if (!plan_check_groups(plan, error) ||
        !batch_forms_of_program(plan->program, graph, &batch, error))
        return false;
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    g_clear_pointer(&plan->split, g_free);
    plan->n_splits = 0;
    GArray *splits = plan_rounded_splits(plan, graph, batch);
    plan->n_splits = splits->len;
    plan->split = (Split *)(void *)g_array_free(splits, false);
    return true;
}
