/* Parts of tensors and ops on each device of a plan. */
#include "sim/tasks/parts.h"

#include <stdlib.h>

#include "sim/cost/step.h"

static int compare(const void *a, const void *b)
{
    const SimPartSplit *x = a, *y = b;

    return plan_compare_splits(&x->key, &y->key);
}

/* The split with that key, or NULL. */
static const SimPartSplit *find(const SimParts *parts, const Split *key)
{
    const SimPartSplit wanted = {.key = *key};

    return parts->n_splits
               ? bsearch(&wanted, parts->split, parts->n_splits, sizeof wanted, compare)
               : NULL;
}

/* --- shares --- */

/* Shares of a split from its counts, or from the ratios. */
static void fill_split(const SimParts *parts, SimPartSplit *split)
{
    const DeviceGroup *group = &parts->layout.group[split->key.group];
    const Split *rounded = plan_find_split(parts->layout.plan, &split->key);
    const uint32_t n = group->n_devices;

    split->replica = g_new0(double, group->n_replicas);
    split->share =
        plan_group_shares(parts->layout.plan, group, &split->key, split->replica);
    for (uint32_t i = 0; i < group->n_replicas * n; i++) {
        if (rounded)
            split->share[i] = (double)rounded->count[i] / rounded->units;
        else if (split->key.batch)
            split->share[i] *= split->replica[i / n];
    }
    for (uint32_t r = 0; rounded && split->key.batch && r < group->n_replicas; r++) {
        split->replica[r] = 0;
        for (uint32_t p = 0; p < n; p++)
            split->replica[r] += split->share[r * n + p];
    }
}

SimParts *sim_parts_new(const Plan *plan, const Graph *graph, GError **error)
{
    g_autoptr(SimParts) parts = g_new0(SimParts, 1);

    if (!plan_layout_init(&parts->layout, plan, graph, error))
        return NULL;
    g_autoptr(GArray) needed = plan_needed_splits(plan, graph, parts->layout.batch);
    parts->split = g_new0(SimPartSplit, needed->len);
    for (; parts->n_splits < needed->len; parts->n_splits++) {
        SimPartSplit *split = &parts->split[parts->n_splits];
        split->key = g_array_index(needed, Split, parts->n_splits);
        fill_split(parts, split);
    }
    return g_steal_pointer(&parts);
}

void sim_parts_free(SimParts *parts)
{
    if (!parts)
        return;
    for (uint32_t s = 0; s < parts->n_splits; s++) {
        g_free(parts->split[s].share);
        g_free(parts->split[s].replica);
    }
    g_free(parts->split);
    plan_layout_clear(&parts->layout);
    g_free(parts);
}

/* --- parts of tensors --- */

static double of_microbatch(const SimParts *parts)
{
    return 1.0 / parts->layout.plan->program->n_microbatches;
}

double sim_part_replica(const SimParts *parts, uint32_t group, TensorId tensor,
                        uint32_t replica)
{
    KILTER_ASSERT(group < parts->layout.n_groups &&
                  replica < parts->layout.group[group].n_replicas);
    const PlanCut cut = plan_layout_cut(&parts->layout, group, tensor, FORM_IDENTITY);

    return cut.has_parts
               ? find(parts, &cut.batch)->replica[replica] * of_microbatch(parts)
               : 1;
}

double sim_part_inside(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                       uint32_t i)
{
    KILTER_ASSERT(group < parts->layout.n_groups && form < FORM_MAX);
    const PlanCut cut = plan_layout_cut(&parts->layout, group, tensor, form);

    if (cut.to_device) {
        const SimPartSplit *split = find(parts, &cut.batch);
        const double whole = split->replica[i / parts->layout.group[group].n_devices];
        return whole > 0 ? split->share[i] / whole : 0;
    }
    return cut.is_cut ? find(parts, &cut.inner)->share[i] : 1;
}

double sim_part_of(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                   uint32_t i)
{
    return sim_part_replica(parts, group, tensor,
                            i / parts->layout.group[group].n_devices) *
           sim_part_inside(parts, group, tensor, form, i);
}

/* --- parts of ops --- */

static uint32_t segment_of(const SimParts *parts, OpId op)
{
    return parts->layout.plan->segment ? parts->layout.plan->segment[op] : 0;
}

static bool has_parts(const SimParts *parts, OpId op)
{
    return parts->layout.batch && parts->layout.batch->loop[op] >= 0;
}

static Split batch_key(const SimParts *parts, uint32_t group, uint32_t segment)
{
    return (Split){.segment = segment,
                   .units = parts->layout.batch->units /
                            parts->layout.plan->program->n_microbatches,
                   .group = (uint16_t)group,
                   .batch = true};
}

static double part_of_batch(const SimParts *parts, uint32_t group, OpId op,
                            const Rule *rule, uint32_t i)
{
    if (!has_parts(parts, op))
        return 1;
    const Split key = batch_key(parts, group, segment_of(parts, op));
    const SimPartSplit *split = find(parts, &key);
    const double share = rule->loop == parts->layout.batch->loop[op]
                             ? split->share[i]
                             : split->replica[i / parts->layout.group[group].n_devices];
    return share * of_microbatch(parts);
}

static double part_of_loop(const SimParts *parts, uint32_t group, OpId op,
                           const Rule *rule, uint32_t i)
{
    if (rule->loop < 0 ||
        (has_parts(parts, op) && rule->loop == parts->layout.batch->loop[op]))
        return 1;
    const Split key = {
        .segment = segment_of(parts, op), .units = rule->units, .group = (uint16_t)group};
    return find(parts, &key)->share[i];
}

double sim_part_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                  const Rule *rule, uint32_t i, bool more)
{
    const uint32_t group = instr->group;
    const bool cut = has_parts(parts, instr->op);
    SimWork work;

    sim_work_part(parts->layout.graph, view, instr->op, rule,
                  cut ? parts->layout.batch->form : NULL,
                  part_of_batch(parts, group, instr->op, rule, i), &work);
    if (cut)
        work.seconds *= of_microbatch(parts);
    if (more) {
        work.inner_messages = 0;
        work.inner_bytes = work.inner_bytes_sharded = 0;
    }
    return sim_work_s(&work, &view->device[parts->layout.group[group].device[i]],
                      part_of_loop(parts, group, instr->op, rule, i));
}

const double *sim_part_replicas(const SimParts *parts, uint32_t group)
{
    if (!parts->layout.batch)
        return NULL;
    for (uint32_t s = 0; s < parts->n_splits; s++)
        if (parts->split[s].key.batch && parts->split[s].key.group == group)
            return parts->split[s].replica;
    return NULL;
}
