/* Conditions of exporters on a plan; a failure names the first instruction that violates one. */
#include "data/formats/export/case.h"

#include "data/base/error.h"
#include "data/base/text.h"

bool export_refuse(const ExportCase *c, uint32_t instr, GError **error,
                   const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    KILTER_ASSERT(instr < c->plan->program->n);
    g_autofree char *text = instr_text(&c->plan->program->instr[instr], c->graph);
    const bool asked = g_strcmp0(c->plan->target, c->target) == 0;
    g_autofree char *other =
        asked
            ? NULL
            : g_strdup_printf("; kilter plan --for %s makes one that it runs", c->target);
    return refuse(error, "%s cannot run this plan: %s (from instruction %u, %.200s)%s",
                  c->target, reason, instr, text, other ? other : "");
}

bool export_refuse_layer(const ExportCase *c, uint32_t layer, GError **error,
                         const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    uint32_t at = 0;
    for (uint32_t i = c->plan ? c->plan->program->n : 0; i-- > 0;) {
        const Instr *instr = &c->plan->program->instr[i];
        if (instr->kind == INSTR_COMPUTE &&
            graph_get_op(c->graph, instr->op)->layer >= layer)
            at = i;
    }
    return c->plan ? export_refuse(c, at, error, "%s", reason)
                   : refuse(error, "%s cannot run %s", c->target, reason);
}

bool export_need_strategy(const ExportCase *c, GError **error)
{
    if (c->plan->strategy.sync_every > 1)
        return export_refuse(c, 0, error,
                             "replicas that exchange once a round (sync_every)");
    if (c->plan->strategy.pieces > 1)
        return export_refuse(c, 0, error, "microbatches in pieces that take turns");
    if (c->plan->strategy.offload)
        return export_refuse(c, 0, error, "states on the host (offload)");
    if (c->has_strategy)
        return true;
    for (uint32_t i = 0; i < c->plan->program->n; i++)
        if (instr_joins(&c->plan->program->instr[i]))
            return export_refuse(c, i, error,
                                 "replicas have unlike stages, or unlike shares of the "
                                 "microbatches");
    const DeviceGroup *of = c->plan->program->group;
    bool divides = false;
    for (uint32_t g = 1; g < c->plan->program->n_groups; g++) {
        divides |= group_shards(&of[g]) > 1;
        if (of[g].n_replicas * of[g].n_devices != of[0].n_replicas * of[0].n_devices)
            return export_refuse(c, 0, error, "stages on unlike numbers of GPUs");
        if (of[g].n_devices != of[0].n_devices)
            return export_refuse(c, 0, error, "stages of unlike degrees");
    }
    for (uint32_t i = 0; divides && i < c->plan->program->n; i++)
        if (c->plan->program->instr[i].kind == INSTR_COLLECTIVE &&
            c->plan->program->instr[i].across)
            return export_refuse(c, i, error, "states are divided in some stages only");
    /* The first computation on tensors that are not whole is the first without a strategy. */
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n) {
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(c->graph, instr->op) : NULL;
        for (uint32_t f = 0; op && f < op->n_in; f++)
            if (form_is_gather(instr->form[f]))
                return export_refuse(c, i, error, "planner %s decides for each op",
                                     c->plan->maker ? c->plan->maker : c->plan->planner);
    }
    return export_refuse(c, 0, error, "no pp/tp/dp strategy makes it");
}

/* --- equal shards --- */

const Split *export_cut(const ExportCase *c, uint32_t group, TensorId tensor, Form form,
                        bool *batch)
{
    const PlanCut cut = plan_layout_cut(&c->cuts, group, tensor, form);
    *batch = cut.has_parts && !cut.is_cut;
    return cut.is_cut      ? plan_find_split(c->plan, &cut.inner)
           : cut.has_parts ? plan_find_split(c->plan, &cut.batch)
                           : NULL;
}

/* The units that the replicas of set k have of the batch, or position k of a tensor. Replicas that
 * share samples (context parallelism) are one set. */
static uint32_t part_of(const Split *split, const DeviceGroup *group, uint32_t k)
{
    uint32_t sum = 0;
    if (split->kind != SPLIT_BATCH)
        return split->count[k];
    const uint32_t n = group_shards(group) * group->n_devices;
    for (uint32_t p = 0; p < n; p++)
        sum += split->count[k * n + p];
    return sum;
}

static uint32_t parts_of(const Split *split, const DeviceGroup *group)
{
    return split->kind == SPLIT_BATCH ? group_parts(group)
                                      : group->n_replicas * group->n_devices;
}

static bool is_even(const ExportCase *c, const Split *split, const DeviceGroup *group)
{
    const bool padded = split->kind != SPLIT_BATCH && split->units == c->vocab;
    const uint32_t n = parts_of(split, group);
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t part = part_of(split, group, k);
        least = MIN(least, part);
        most = MAX(most, part);
    }
    return most - least <= padded;
}

static char *parts_text(const Split *split, const DeviceGroup *group)
{
    enum { MOST = 16 };
    const uint32_t n = parts_of(split, group);
    GString *text = g_string_new(NULL);
    for (uint32_t k = 0; k < n && k < MOST; k++)
        g_string_append_printf(text, "%s%u", k ? ", " : "", part_of(split, group, k));
    g_string_append(text, n > MOST ? ", ..." : "");
    return g_string_free(text, FALSE);
}

static bool check_operand(const ExportCase *c, uint32_t i, uint32_t group,
                          const Operand *operand, GError **error)
{
    const DeviceGroup *of = &c->cuts.group[group];
    bool batch;
    const Split *split = export_cut(c, group, operand->tensor, operand->form, &batch);
    if (!split || is_even(c, split, of))
        return true;
    g_autofree char *counts = parts_text(split, of);
    const char *name = graph_tensor(c->graph, operand->tensor)->name;
    return export_refuse(c, i, error,
                         batch ? "replicas have unequal parts of the batch, of %s they "
                                 "have %s samples"
                               : "uneven shards of tensor %s (%s units)",
                         name, counts);
}

bool export_need_even(const ExportCase *c, GError **error)
{
    bool uneven = false;
    for (uint32_t i = 0; i < c->plan->n_splits; i++) {
        const DeviceGroup *of = &c->cuts.group[c->plan->split[i].group];
        uneven |= !is_even(c, &c->plan->split[i], of);
    }
    for (uint32_t i = 0; uneven && i < c->plan->program->n; i++) {
        const Instr *instr = &c->plan->program->instr[i];
        Operand use[OP_MAX_IN], make[OP_MAX_OUT];
        const uint32_t n_use = instr_uses(instr, c->graph, use);
        const uint32_t n_make = instr_makes(instr, c->graph, make);
        const uint32_t to =
            instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
        for (uint32_t k = 0; k < n_use; k++)
            if (!check_operand(c, i, instr->group, &use[k], error))
                return false;
        for (uint32_t k = 0; k < n_make; k++)
            if (!check_operand(c, i, to, &make[k], error))
                return false;
    }
    return true;
}

/* --- layers and schedules --- */

/* The k-th forward or backward of a device group under Megatron-LM's schedule: as many microbatches
 * as there are groups go through a stage before the device's next stage. */
static ExportStep step_of(const StrategyLayout *l, uint32_t group, uint32_t k,
                          bool backward)
{
    const uint32_t stages = l->n_stages / l->pp, of_round = stages * l->pp;
    const uint32_t chunk = k % of_round / l->pp;
    return (ExportStep){
        .stage = (backward ? stages - 1 - chunk : chunk) * l->pp + group,
        .microbatch = k / of_round * l->pp + k % l->pp,
        .backward = backward,
        .letter = backward ? 'B' : 'F',
    };
}

bool export_need_1f1b(const ExportCase *c, GError **error)
{
    const StrategyLayout *l = &c->layout;
    const uint32_t stages = l->n_stages / l->pp, n = stages * l->n_microbatches;
    g_autoptr(GPtrArray) groups = export_steps(c);
    for (uint32_t p = 0; p < l->pp; p++) {
        const GArray *steps = g_ptr_array_index(groups, p);
        const uint32_t after = l->pp - 1 - p;
        const uint32_t ahead = stages > 1 ? 2 * after + (stages - 1) * l->pp : after;
        uint32_t done[2] = {0, 0};
        array_each (const ExportStep, step, steps) {
            const bool backward = done[0] == n || done[0] > ahead + done[1];
            const ExportStep want = step_of(l, p, done[backward]++, backward);
            if (step->letter != want.letter || step->stage != want.stage ||
                step->microbatch != want.microbatch)
                return export_refuse(c, step->instr, error,
                                     "schedule: expected the %s of stage %u and "
                                     "microbatch %u, as in %s",
                                     backward ? "whole backward" : "forward", want.stage,
                                     want.microbatch,
                                     stages > 1 ? "interleaved 1f1b" : "1f1b");
        }
    }
    return true;
}

/* --- samples --- */

bool export_samples(const ExportCase *c, uint32_t *sample, GError **error)
{
    const TensorId input = graph_first_input(c->graph);
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n) {
        if (instr->kind != INSTR_LOAD || instr->tensor != input)
            continue;
        bool batch;
        const Split *split = export_cut(c, instr->group, input, instr->to, &batch);
        const DeviceGroup *group = &c->cuts.group[instr->group];
        for (uint32_t k = 0; split && k < group->n_replicas * group->n_devices; k++) {
            const Device *device = &c->view->device[group->device[k]];
            const uint32_t n = split->count[k] * c->plan->program->n_microbatches;
            if (split->count[k] % device->gpus != 0)
                return export_refuse(c, i, error,
                                     "%s has %u samples for its %u GPUs; plan with "
                                     "--granularity gpu",
                                     device->name, n, device->gpus);
            sample[group->device[k]] = n / device->gpus;
        }
        return split || export_refuse(c, i, error, "the batch is not divided");
    }
    return export_refuse(c, 0, error, "expected a load of the input");
}
