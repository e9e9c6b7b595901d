/* Parts of tensors and ops on each device of a plan. */
#include "sim/tasks/parts.h"

#include <math.h>
#include <stdlib.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "sim/cost/step.h"

static ORDER_DEFINE(compare, SimPartSplit, plan_compare_splits(&x->key, &y->key));

/* The split with that key, or NULL. */
static const SimPartSplit *find(const SimParts *parts, const Split *key)
{
    const SimPartSplit wanted = {.key = *key};
    return parts->n_splits
               ? bsearch(&wanted, parts->split, parts->n_splits, sizeof wanted, compare)
               : NULL;
}

/* --- shares --- */

/* The part of the batch that the set of shards of a replica has. */
static double of_set(const SimPartSplit *split, const DeviceGroup *group,
                     uint32_t replica)
{
    const uint32_t n_shards = group_shards(group);
    const double *set = &split->replica[replica - replica % n_shards];
    return sum_over(double, s, n_shards, set[s]);
}

/* Shares of a split from its counts, or from the ratios. Where no form divides a replica's part of
 * the batch, its devices have equal shares, so that they count as alike. */
static void fill_split(const SimParts *parts, SimPartSplit *split)
{
    const DeviceGroup *group = &parts->layout.group[split->key.group];
    const Split *rounded = plan_find_split(parts->layout.plan, &split->key);
    const uint32_t n = group->n_devices;
    split->replica = g_new0(double, group->n_replicas);
    split->share =
        plan_group_shares(parts->layout.plan, group, &split->key, split->replica);
    const bool batch = split->key.kind == SPLIT_BATCH,
               over_shards =
                   split->key.kind == SPLIT_SHARDS || split->key.kind == SPLIT_NESTED;
    const double even = over_shards                         ? 1.0 / group_shards(group)
                        : split->key.kind == SPLIT_REPLICAS ? 1.0 / group_parts(group)
                                                            : 1;
    for (uint32_t i = 0; i < group->n_replicas * n; i++) {
        if (rounded)
            split->share[i] = (double)rounded->count[i] / rounded->units;
        else if (batch)
            split->share[i] *= split->replica[i / n];
        else
            split->share[i] =
                even * (split->key.kind == SPLIT_REPLICAS ? 1 : split->share[i]);
    }
    for (uint32_t r = 0; (rounded || !batch) && r < group->n_replicas; r++) {
        split->replica[r] = 0;
        for (uint32_t p = 0; p < n; p++)
            split->replica[r] += split->share[r * n + p];
    }
    for (uint32_t i = 0; batch && !split->key.divided && i < group->n_replicas * n; i++)
        split->share[i] = of_set(split, group, i / n) / (n * group_shards(group));
    split->start = g_new0(double, group->n_replicas + 1);
    split->set = g_new(double, group->n_replicas);
    for (uint32_t r = 0; r < group->n_replicas; r++) {
        split->start[r + 1] = split->start[r] + split->replica[r];
        split->set[r] = of_set(split, group, r);
    }
}

/* The tensors of experts' slots: those that some op reads or makes as such. */
static const double **find_slots(const Graph *graph, const GPtrArray *tokens)
{
    const double **slots = g_new0(const double *, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        OpSpace space;
        graph_op_space(graph, id, &space);
        for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
            const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
            const int8_t *loop = space.dim_loop[k];
            if (graph_tensor(graph, t)->rank > 3 && loop[1] >= 0 && loop[2] >= 0 &&
                space.loop[loop[1]].letter == LOOP_EXPERT &&
                g_ascii_tolower(space.loop[loop[2]].letter) == 'c')
                slots[t] = tokens->pdata[op->layer];
        }
    }
    return slots;
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
    parts->memo = sim_memo_new();
    if (!strategy_expert_tokens(&plan->strategy, graph, &parts->tokens, error))
        return NULL;
    if (parts->tokens)
        parts->slots = find_slots(graph, parts->tokens);
    return g_steal_pointer(&parts);
}

FREE_DEFINE(sim_parts_free, SimParts, parts,
            free_column(parts->split, parts->n_splits, share),
            free_column(parts->split, parts->n_splits, replica),
            free_column(parts->split, parts->n_splits, set),
            free_column(parts->split, parts->n_splits, start),
            free_each(parts->split, parts->slots),
            let_go(parts->tokens, g_ptr_array_unref), sim_memo_free(parts->memo),
            plan_layout_clear(&parts->layout));

/* --- parts of tensors --- */

static double of_microbatch(const SimParts *parts)
{
    return 1.0 / program_parts(parts->layout.plan->program);
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* The tokens of the experts before a place between them. */
static double tokens_before(const double *tokens, double place)
{
    const double whole = floor(place + 1e-9), rest = fmax(place - whole, 0);
    const double *at = &tokens[(uint32_t)whole];
    return rest > 1e-9 ? at[0] + rest * (at[1] - at[0]) : at[0];
}

/* The part of what shards divide, or the devices of a replica, that those before device i have. */
static double shards_before(const SimPartSplit *split, uint32_t r, uint32_t n_shards)
{
    return split->start[r] - split->start[r - r % n_shards];
}

static double inside_before(const SimPartSplit *split, uint32_t i, uint32_t n_devices)
{
    double sum = 0;
    for (uint32_t k = i - i % n_devices; k < i; k++)
        sum += split->share[k];
    return sum;
}

/* The tokens of the experts of the device at place i, whose axes have the `part` of them in the
 * form, over as many even experts. *part gets what each axis leaves of it then. */
static double sim_part_load(const SimParts *parts, uint32_t group, TensorId tensor,
                            Form form, uint32_t i, SimPart *part)
{
    const DeviceGroup *of = &parts->layout.group[group];
    const PlanCut cut = plan_layout_cut(&parts->layout, group, tensor, form);
    const uint32_t n = of->n_devices, n_shards = group_shards(of), r = i / n;
    const SimPartSplit *shards = cut.is_sharded ? find(parts, &cut.shards) : NULL,
                       *inner =
                           cut.is_cut && !cut.nested ? find(parts, &cut.inner) : NULL;
    const struct {
        FormAxis axis;
        double *part, before;
    } AXIS[] = {
        {AXIS_REPLICAS, &part->replicas, part->replicas * (r / n_shards)},
        {AXIS_SHARDS, &part->shards, shards ? shards_before(shards, r, n_shards) : 0},
        {AXIS_POSITIONS, &part->inside,
         inner    ? inside_before(inner, i, n)
         : shards ? ratio(inside_before(shards, i, n), shards->replica[r])
                  : 0}};
    /* the later of two axes that divide experts divides those of the earlier one */
    const bool inside_first = cut.shards.kind == SPLIT_NESTED;
    double first = 0, experts = graph_tensor(parts->layout.graph, tensor)->dim[1],
           load = 1;
    for (uint32_t k = 0; k < G_N_ELEMENTS(AXIS); k++) {
        const uint32_t a = k > 0 && inside_first ? G_N_ELEMENTS(AXIS) - k : k;
        if (form_on(AXIS[a].axis, form) != form_gather(1))
            continue;
        first += experts * AXIS[a].before;
        experts *= *AXIS[a].part;
        const double tokens = tokens_before(parts->slots[tensor], first + experts) -
                              tokens_before(parts->slots[tensor], first);
        *AXIS[a].part *= ratio(ratio(tokens, experts), load);
        load = ratio(tokens, experts);
    }
    return load;
}

SimPart sim_part(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                 uint32_t i)
{
    const DeviceGroup *of = &parts->layout.group[group];
    const PlanCut cut = plan_layout_cut(&parts->layout, group, tensor, form);
    const uint32_t r = i / of->n_devices;
    SimPart part = {1, 1, 1, 1};
    if (cut.has_parts) {
        const SimPartSplit *split = find(parts, &cut.batch);
        const double set = split->set[r];
        part.batch = set * of_microbatch(parts);
        if (cut.to_shard)
            part.shards = ratio(split->replica[r], set);
        if (cut.to_device)
            part.inside = ratio(split->share[i], cut.to_shard ? split->replica[r] : set);
    }
    if (cut.is_sharded) {
        const SimPartSplit *split = find(parts, &cut.shards);
        part.shards = split->replica[r];
        if (cut.nested)
            part.inside = ratio(split->share[i], split->replica[r]);
    }
    if (cut.over_replicas)
        part.replicas = find(parts, &cut.replicas)->share[i];
    if (cut.is_cut && !cut.nested)
        part.inside = find(parts, &cut.inner)->share[i];
    if (parts->slots && parts->slots[tensor])
        sim_part_load(parts, group, tensor, form, i, &part);
    return part;
}

double sim_part_replica(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                        uint32_t replica)
{
    KILTER_ASSERT(group < parts->layout.n_groups &&
                  replica < parts->layout.group[group].n_replicas);
    const SimPart part = sim_part(parts, group, tensor, form,
                                  replica * parts->layout.group[group].n_devices);
    return part.batch * part.shards * part.replicas;
}

double sim_part_inside(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                       uint32_t i)
{
    KILTER_ASSERT(group < parts->layout.n_groups);
    return sim_part(parts, group, tensor, form, i).inside;
}

double sim_part_of(const SimParts *parts, uint32_t group, TensorId tensor, Form form,
                   uint32_t i)
{
    const SimPart part = sim_part(parts, group, tensor, form, i);
    return part.batch * part.shards * part.replicas * part.inside;
}

/* --- parts of ops --- */

static bool has_parts(const SimParts *parts, OpId op)
{
    return parts->layout.batch && parts->layout.batch->loop[op] >= 0;
}

static Split split_key(const SimParts *parts, const Instr *instr, SplitKind kind,
                       uint32_t units)
{
    return (Split){.segment = parts->layout.plan->segment
                                  ? parts->layout.plan->segment[instr->op]
                                  : 0,
                   .units = units,
                   .group = instr->group,
                   .kind = kind};
}

/* How the axes divide an op: its part of the batch, and of loops; -1: shards or replicas divide
 * none. */
typedef struct {
    double batch, shards, replicas, inside;
    int8_t shards_loop, replicas_loop;
} OpPart;

/* Whether an op has forms over shards or replicas; one with plain forms runs alike on all. */
static bool has_outer(const SimParts *parts, const Instr *instr)
{
    const Op *op = graph_get_op(parts->layout.graph, instr->op);
    return any_of(i, op->n_in + op->n_out, form_outer(instr->form[i]));
}

/* The kind of split that divides the loop where shards and the devices of a replica divide the same
 * loop: the kind of the operands. */
static SplitKind shards_kind(const SimParts *parts, const Instr *instr, const Rule *rule,
                             const Rule *shards)
{
    const Op *op = graph_get_op(parts->layout.graph, instr->op);
    for (uint32_t i = 0; rule->loop == shards->loop && i < op->n_in + op->n_out; i++) {
        const TensorId t = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        if (form_is_gather(shards->form[i]))
            return plan_layout_cut(&parts->layout, instr->group, t, instr->form[i])
                .shards.kind;
    }
    return SPLIT_SHARDS;
}

static OpPart part_of_op(const SimParts *parts, const Instr *instr, const Rule *rule,
                         uint32_t i)
{
    const PlanLayout *layout = &parts->layout;
    const DeviceGroup *group = &layout->group[instr->group];
    const uint32_t r = i / group->n_devices;
    const int batch_loop =
        has_parts(parts, instr->op) ? layout->batch->loop[instr->op] : -1;
    OpPart part = {1, 1, 1, 1, -1, -1};
    Rule shards = {.loop = -1}, replicas = {.loop = -1};
    if (has_outer(parts, instr) &&
        !(op_rule_of_shards(layout->graph, instr->op, instr->form, &shards) &&
          op_rule_of_replicas(layout->graph, instr->op, instr->form, &replicas)))
        g_assert_not_reached(); /* the program passed program_check */
    if (batch_loop >= 0) {
        const Split key =
            split_key(parts, instr, SPLIT_BATCH,
                      layout->batch->units / program_parts(layout->plan->program));
        const SimPartSplit *split = find(parts, &key);
        part.batch = (rule->loop == batch_loop    ? split->share[i]
                      : shards.loop == batch_loop ? split->replica[r]
                                                  : of_set(split, group, r)) *
                     of_microbatch(parts);
    }
    if (shards.loop >= 0 && shards.loop != batch_loop) {
        const Split key = split_key(
            parts, instr, shards_kind(parts, instr, rule, &shards), shards.units);
        const SimPartSplit *split = find(parts, &key);
        part.shards = split->replica[r];
        part.shards_loop = shards.loop;
        if (rule->loop == shards.loop)
            part.inside = ratio(split->share[i], split->replica[r]);
    }
    if (replicas.loop >= 0) {
        const Split key = split_key(parts, instr, SPLIT_REPLICAS, replicas.units);
        part.replicas = find(parts, &key)->share[i];
        part.replicas_loop = replicas.loop;
    }
    if (rule->loop >= 0 && rule->loop != shards.loop && rule->loop != batch_loop) {
        const Split key = split_key(parts, instr, SPLIT_POSITIONS, rule->units);
        part.inside = find(parts, &key)->share[i];
    }
    return part;
}

/* The device's parts of the op's loops. */
static void loops_of(const SimParts *parts, OpId op, const Rule *rule, const OpPart *part,
                     double of[OP_MAX_LOOPS])
{
    const int batch = has_parts(parts, op) ? parts->layout.batch->loop[op] : -1;
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        of[l] = (int)l == batch ? part->batch : 1;
    if (part->shards_loop >= 0)
        of[part->shards_loop] *= part->shards;
    if (part->replicas_loop >= 0)
        of[part->replicas_loop] *= part->replicas;
    if (rule->loop >= 0)
        of[rule->loop] *= part->inside;
}

/* The factor on the slots of an op that works on some; *loop gets the loop over them. */
static double load_of_op(const SimParts *parts, const Instr *instr, const OpPart *of,
                         uint32_t i, int *loop)
{
    const Op *op = graph_get_op(parts->layout.graph, instr->op);
    OpSpace space;
    *loop = -1;
    if (!parts->slots)
        return 1;
    graph_op_space(parts->layout.graph, instr->op, &space);
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        SimPart part = {of->batch, of->shards, of->replicas, of->inside};
        if (!parts->slots[t])
            continue;
        *loop = space.dim_loop[k][2];
        return sim_part_load(parts, instr->group, t, instr->form[k], i, &part);
    }
    return 1;
}

double sim_part_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                  const Rule *rule, uint32_t i, bool more)
{
    const bool cut = has_parts(parts, instr->op);
    const OpPart part = part_of_op(parts, instr, rule, i);
    const Graph *graph = parts->layout.graph;
    const Device *device = &view->device[parts->layout.group[instr->group].device[i]];
    const bool kernels =
        device->kernels && !graph_is_timed(graph) && !graph_op_times(graph, instr->op);
    SimWork work = {0};
    int slots;
    const double load = load_of_op(parts, instr, &part, i, &slots);
    if (kernels) {
        sim_work_inner(graph, instr->op, rule, &work);
    } else {
        const Form *form = cut ? parts->layout.batch->form : NULL;
        sim_work_part(parts->memo, graph, view, instr->op, rule,
                      (SimOpShare){form, part.batch, 1}, &work);
        sim_work_scale(&work, view, part.shards * part.replicas * load);
    }
    if (cut)
        work.seconds *= of_microbatch(parts);
    if (more) {
        work.inner_messages = 0;
        work.inner_bytes = work.inner_bytes_sharded = 0;
    }
    const double seconds = sim_work_s(&work, device, part.inside);
    if (!kernels)
        return seconds;
    /* The GPUs of a machine share what it has. */
    double of[OP_MAX_LOOPS];
    loops_of(parts, instr->op, rule, &part, of);
    if (slots >= 0)
        of[slots] *= load;
    const double gpus = device->gpus;
    if (rule->loop >= 0)
        of[rule->loop] /= gpus;
    return seconds + sim_kernels_s(parts->memo, graph, instr->op, device, of) /
                         (rule->loop >= 0 ? 1 : gpus);
}

/* The split of a group's batch, or NULL. */
static const SimPartSplit *batch_split(const SimParts *parts, uint32_t group)
{
    if (!parts->layout.batch)
        return NULL;
    for (uint32_t s = 0; s < parts->n_splits; s++)
        if (parts->split[s].key.kind == SPLIT_BATCH && parts->split[s].key.group == group)
            return &parts->split[s];
    return NULL;
}

const double *sim_part_replicas(const SimParts *parts, uint32_t group)
{
    const SimPartSplit *split = batch_split(parts, group);
    return split ? split->replica : NULL;
}

const double *sim_part_starts(const SimParts *parts, uint32_t group)
{
    const SimPartSplit *split = batch_split(parts, group);
    return split ? split->start : NULL;
}
