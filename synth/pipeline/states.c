/* Sharded states (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023, FSDP): optimizer states,
 * gradients and parameters that neighbouring replicas divide among themselves.
 *
 * A group's states lie in a group of the same devices, whose shards are the replicas that divide
 * them. They divide one dim of each parameter: among the dims that tensor parallelism leaves whole,
 * the one that is cut most evenly. A parameter without such a dim (a column-parallel bias) is not
 * divided. The gradient's sum over the microbatches is reduce-scattered there, the update works on
 * shards, and the new parameter is gathered. From level 2 on a gradient goes there when its layer's
 * backward on a microbatch has ended. From level 3 on a parameter rests there, too, and a layer's
 * parameters are gathered while the layer before runs, in the forward and again in the backward. */
#include "synth/pipeline/build.h"
#include "synth/spmd/assignment.h"

#include <math.h>

enum { NEVER = UINT32_MAX };

bool pipeline_divides(const Builder *b, TensorId parameter)
{
    return b->state && b->state[parameter] != FORM_IDENTITY;
}

/* --- which dim --- */

/* The level at which a group's states are divided. */
static uint32_t level_of(const Builder *b, uint32_t group)
{
    return b->pipeline->degrees ? b->pipeline->degrees[group].zero : b->pipeline->zero;
}

/* The form over shards in which a group of a stage, or that of its experts, has a tensor. */
static Form held_in(const Builder *b, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(b->graph));
    return pipeline_held(b, pipeline_view(b, group, b->home[tensor]), tensor);
}

/* Whether the parameter's own form is over the shards, so that its states are divided over the
 * replicas. */
static bool over_replicas(const Builder *b, uint32_t group, TensorId parameter)
{
    return form_is_gather(held_in(b, group, parameter));
}

/* The form that cuts the dim whose largest part is smallest, among the dims not divided yet and,
 * over replicas, those that a form can express (data/graph/rule.h). */
static Form choose_form(const Builder *b, uint32_t group, TensorId parameter, Form inside,
                        uint32_t n)
{
    const Tensor *tensor = graph_tensor(b->graph, parameter);
    Form best = FORM_IDENTITY;
    double least = 1;
    for (uint32_t d = over_replicas(b, group, parameter); d < MIN(tensor->rank, 4); d++) {
        const uint32_t units = tensor->units[d];
        const double part = ceil((double)units / n) / units;
        if (inside != form_gather(d) && part < least &&
            parameter_updates_in(b->graph, parameter, form_gather(d))) {
            least = part;
            best = form_gather(d);
        }
    }
    return best;
}

/* The number of neighbouring replicas that divide a group's states; 1: they are not divided. */
static uint32_t ranks_of(const Builder *b, uint32_t group)
{
    const SynthPipeline *p = b->pipeline;
    return level_of(b, group) == 0 ? 1
           : p->degrees            ? p->group[group].n_replicas
                                   : MAX(p->zero_ranks, 1);
}

/* The number of replicas that divide a parameter's states; experts' states are divided among all
 * replicas that have the expert. */
static uint32_t n_dividing(const Builder *b, uint32_t group, TensorId parameter)
{
    const uint32_t at = pipeline_view(b, group, b->home[parameter]);
    if (!over_replicas(b, group, parameter))
        return ranks_of(b, group);
    return ranks_of(b, group) == b->program->group[group].n_replicas
               ? group_parts(&b->program->group[at])
               : 1;
}

/* The form of all operands of the update, if it is one and the parameter is loaded in it. */
static bool update_form(const Builder *b, uint32_t i, Form *form)
{
    const Instr *instr = &b->inner->instr[i];
    const Op *op = graph_get_op(b->graph, instr->op);
    *form = instr->form[0];
    for (uint32_t k = 1; k < op->n_in + op->n_out; k++)
        if (instr->form[k] != *form)
            return false;
    const Instr *load = &b->inner->instr[pipeline_maker(b, i, 0)];
    return load->kind == INSTR_LOAD && load->to == *form && *form != FORM_REDUCE;
}

/* Whether an instruction loads a parameter that has no update but may rest divided. */
static bool rests_divided(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    return instr->kind == INSTR_LOAD && graph_tensor(b->graph, instr->tensor)->frozen &&
           level_of(b, group_at(b, i)) == 3;
}

void pipeline_find_states(Builder *b)
{
    const SynthPipeline *p = b->pipeline;
    const bool any = any_of(g, p->n_groups, ranks_of(b, g) > 1);
    if (!any)
        return;
    b->state = g_new0(Form, graph_n_tensors(b->graph));
    b->gathered = g_new(uint32_t, b->inner->n);
    b->summed = g_new0(bool, b->inner->n);
    b->direct = g_new(uint32_t, graph_n_tensors(b->graph));
    b->states = g_new(uint16_t, p->n_groups);
    for (uint32_t g = 0; g < p->n_groups; g++)
        b->states[g] = ranks_of(b, g) > 1
                           ? program_add_shards(b->program, (uint16_t)g, ranks_of(b, g))
                           : (uint16_t)g;
    for (uint32_t i = 0; i < b->inner->n; i++) {
        Form form = b->inner->instr[i].to;
        TensorId parameter = b->inner->instr[i].tensor;
        b->gathered[i] = NEVER;
        if (pipeline_is_update(b, i) && update_form(b, i, &form))
            parameter = graph_get_op(b->graph, b->inner->instr[i].op)->in[0];
        else if (!rests_divided(b, i))
            continue;
        b->state[parameter] = choose_form(b, group_at(b, i), parameter, form,
                                          n_dividing(b, group_at(b, i), parameter));
        if (pipeline_is_update(b, i))
            b->direct[parameter] = pipeline_maker(b, i, 1);
    }
}

/* --- instructions --- */

/* The group in which a parameter's states are divided, and their form. */
static uint32_t states_group(const Builder *b, uint32_t group, TensorId parameter)
{
    return over_replicas(b, group, parameter)
               ? pipeline_view(b, group, b->home[parameter])
               : b->states[group];
}

static Form sharded(const Builder *b, uint32_t group, TensorId parameter, Form inside)
{
    return over_replicas(b, group, parameter)
               ? form_over(inside, held_in(b, group, parameter), b->state[parameter])
               : form_over(inside, b->state[parameter], FORM_IDENTITY);
}

/* Writes a conversion over the replicas that divide the states of the parameter, in the group of
 * the states. */
static void convert(Builder *b, uint32_t group, Collective kind, TensorId tensor,
                    TensorId parameter, Form from, Form to, bool moves)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_COLLECTIVE,
                            .across = over_replicas(b, group, parameter),
                            .stream = kind < (Collective)COLLECTIVES_PRICED,
                            .collective = kind,
                            .tensor = tensor,
                            .moves = moves,
                            .from = from,
                            .to = to},
                    states_group(b, group, parameter), PROGRAM_WHOLE);
}

/* Hands a tensor over from a group to the group of its states, or back. */
static void regroup(Builder *b, uint32_t group, bool back, TensorId tensor, Form from,
                    Form to, bool moves)
{
    const uint32_t at = pipeline_view(b, group, b->home[tensor]);
    if (b->states[group] == at) /* the group shares sequences itself */
        return;
    pipeline_append(b,
                    (Instr){.kind = INSTR_TRANSFER,
                            .tensor = tensor,
                            .to_group = back ? (uint16_t)at : b->states[group],
                            .moves = moves,
                            .from = from,
                            .to = to},
                    back ? b->states[group] : at, PROGRAM_WHOLE);
}

/* Brings a tensor from the states' group to the group where it is used, or back. */
static void bring(Builder *b, uint32_t group, bool back, TensorId tensor,
                  TensorId parameter, Form inside)
{
    if (!over_replicas(b, group, parameter))
        regroup(b, group, back, tensor, inside, inside, false);
}

void pipeline_load(Builder *b, uint32_t i)
{
    KILTER_ASSERT(b->inner->instr[i].kind == INSTR_LOAD);
    Instr instr = b->inner->instr[i];
    const Tensor *tensor = graph_tensor(b->graph, instr.tensor);
    const bool state = tensor->role == ROLE_OPTIMIZER;
    const TensorId parameter = state ? tensor->of : instr.tensor;
    const uint32_t stage = group_at(b, i);
    uint32_t group = pipeline_view(b, stage, b->home[instr.tensor]);
    instr.to = form_over(instr.to, pipeline_held(b, group, instr.tensor), 0);
    if ((state || (tensor->role == ROLE_PARAMETER && level_of(b, stage) == 3)) &&
        pipeline_divides(b, parameter)) {
        instr.to = sharded(b, stage, parameter, form_inside(instr.to));
        group = states_group(b, stage, parameter);
    }
    pipeline_append(b, instr, group, PROGRAM_WHOLE);
}

/* Whether instruction `i` loads a parameter that has to be gathered before it is used. */
static bool is_gathered(const Builder *b, uint32_t i)
{
    KILTER_ASSERT(i < b->inner->n);
    const Instr *instr = &b->inner->instr[i];
    return level_of(b, group_at(b, i)) == 3 && instr->kind == INSTR_LOAD &&
           graph_tensor(b->graph, instr->tensor)->role == ROLE_PARAMETER &&
           pipeline_divides(b, instr->tensor);
}

static void gather(Builder *b, uint32_t load)
{
    KILTER_ASSERT(load < b->inner->n);
    const Instr *instr = &b->inner->instr[load];
    const uint32_t group = group_at(b, load);
    if (b->gathered[load] != NEVER && b->gathered[load] >= b->pass - b->piece)
        return;
    b->gathered[load] = b->pass;
    convert(b, group, COLLECTIVE_ALL_GATHER, instr->tensor, instr->tensor,
            sharded(b, group, instr->tensor, instr->to),
            form_over(instr->to, held_in(b, group, instr->tensor), 0), false);
    bring(b, group, true, instr->tensor, instr->tensor, instr->to);
}

void pipeline_gather_for(Builder *b, uint32_t i)
{
    if (!b->state || pipeline_is_update(b, i))
        return;
    uses_each (use, b, i)
        if (is_gathered(b, use->maker))
            gather(b, use->maker);
}

/* Gathers for all instructions of a layer in a stage's phase. */
static void gather_layer(Builder *b, Phase phase, uint32_t stage, uint32_t layer)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    for (uint32_t k = begin[0]; k < begin[1]; k++)
        if (b->place[b->unit[k]].layer == layer)
            pipeline_gather_for(b, b->unit[k]);
    if (phase == BACKWARD && pipeline_layer_again(b, layer))
        gather_layer(b, FORWARD, stage, layer);
}

void pipeline_gather_ahead(Builder *b, Phase phase, uint32_t stage, uint32_t at)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    const uint32_t layer = b->place[b->unit[at]].layer;
    if (!b->state || level_of(b, group_at(b, b->unit[at])) < 3 ||
        (at > begin[0] && b->place[b->unit[at - 1]].layer == layer))
        return;
    gather_layer(b, phase, stage, layer);
    for (uint32_t k = at; k < begin[1]; k++)
        if (b->place[b->unit[k]].layer != layer) {
            gather_layer(b, phase, stage, b->place[b->unit[k]].layer);
            break;
        }
}

/* --- gradients --- */

/* Whether the gradient is partial over shards and replicas, so that a reduce-scatter sums it. */
static bool is_scattered(const Builder *b, uint32_t group, TensorId gradient,
                         TensorId parameter)
{
    const Form made = held_in(b, group, gradient);
    return over_replicas(b, group, parameter)
               ? made == held_in(b, group, parameter)
               : made == FORM_REDUCE || group_shards(&b->program->group[group]) == 1;
}

/* Sends a gradient to the group of the states, where the replicas that divide them sum it. */
static void scatter(Builder *b, uint32_t group, TensorId gradient, TensorId parameter,
                    Form inside, bool moves)
{
    const Form from = form_over(inside, held_in(b, group, gradient), 0);
    const Form sums =
        over_replicas(b, group, parameter) ? from : form_over(inside, FORM_REDUCE, 0);
    if (!over_replicas(b, group, parameter))
        regroup(b, group, false, gradient, from, sums, moves);
    convert(b, group, COLLECTIVE_REDUCE_SCATTER, gradient, parameter, sums,
            sharded(b, group, parameter, inside), moves);
}

static void scatter_made(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    Operand make[OP_MAX_OUT];
    const uint32_t n = makes_sums(b, instr) ? instr_makes(instr, b->graph, make) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const TensorId of = graph_tensor(b->graph, make[k].tensor)->of;
        if (of != GRAPH_NONE && graph_tensor(b->graph, of)->role == ROLE_PARAMETER &&
            pipeline_divides(b, of) && b->direct[of] == i &&
            is_scattered(b, group_at(b, i), make[k].tensor, of))
            scatter(b, group_at(b, i), make[k].tensor, of, make[k].form, true);
    }
}

void pipeline_scatter_behind(Builder *b, Phase phase, uint32_t stage, uint32_t at)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    const uint32_t layer = b->place[b->unit[at]].layer;
    if (!b->state || level_of(b, group_at(b, b->unit[at])) < 2 ||
        (at + 1 < begin[1] && b->place[b->unit[at + 1]].layer == layer))
        return;
    uint32_t first = at;
    while (first > begin[0] && b->place[b->unit[first - 1]].layer == layer)
        first--;
    for (; first <= at; first++)
        scatter_made(b, b->unit[first]);
}

/* --- updates --- */

static bool is_direct(const Builder *b, uint32_t group, TensorId gradient,
                      TensorId parameter)
{
    return level_of(b, group) >= 2 && is_scattered(b, group, gradient, parameter) &&
           makes_sums(b, &b->inner->instr[b->direct[parameter]]);
}

static void sum_across(Builder *b, uint32_t group, TensorId gradient, Form form)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_COLLECTIVE,
                            .across = true,
                            .stream = 1,
                            .collective = COLLECTIVE_ALL_REDUCE,
                            .tensor = gradient,
                            .from = form,
                            .to = form},
                    group, PROGRAM_WHOLE);
}

/* Whether a tensor is partial over the replicas that have parts of the batch; clears the mark. */
static bool take_partial(Builder *b, uint32_t group, TensorId tensor, Form inside)
{
    uint8_t *partial = partial_of(b, group, tensor);
    const bool was = *partial >> inside & 1u;
    *partial &= (uint8_t) ~(1u << inside);
    return was;
}

/* The same of the gradient of update `i`. */
static bool take_partial_gradient(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    return take_partial(b, group_at(b, i), graph_get_op(b->graph, instr->op)->in[1],
                        instr->form[1]);
}

void pipeline_sum_parts(Builder *b, uint32_t group, TensorId tensor, Form inside,
                        Form over)
{
    if (take_partial(b, group, tensor, inside) &&
        group_parts(&b->program->group[group]) > 1)
        sum_across(b, group, tensor, form_over(inside, over, 0));
}

/* Sums and gathers a gradient, which then has the form of its parameter. */
static void sum_here(Builder *b, uint32_t i, bool partial)
{
    const Op *op = graph_get_op(b->graph, b->inner->instr[i].op);
    const TensorId gradient = op->in[1], parameter = op->in[0];
    const Form inside = b->inner->instr[i].form[1];
    const uint32_t group = group_at(b, i),
                   at = pipeline_view(b, group, b->home[gradient]);
    const Form made = held_in(b, group, gradient), want = held_in(b, group, parameter);
    const DeviceGroup *of = &b->program->group[at];
    partial = partial && group_parts(of) > 1;
    if (made == FORM_REDUCE && partial) { /* summed over shards and replicas at once */
        const uint16_t all = program_add_shards(b->program, (uint16_t)at, of->n_replicas);
        const Form sums = form_over(inside, FORM_REDUCE, 0);
        pipeline_regroup(b, at, all, gradient, sums, sums, PROGRAM_WHOLE);
        pipeline_convert(b, all, gradient, inside, FORM_REDUCE, FORM_IDENTITY,
                         PROGRAM_WHOLE);
        pipeline_regroup(b, all, at, gradient, inside, inside, PROGRAM_WHOLE);
        return;
    }
    if (partial)
        sum_across(b, at, gradient, form_over(inside, made, 0));
    pipeline_convert(b, at, gradient, inside, made, want, PROGRAM_WHOLE);
}

void pipeline_sum_whole(Builder *b, uint32_t i)
{
    const Op *op = graph_get_op(b->graph, b->inner->instr[i].op);
    const bool partial = take_partial_gradient(b, i);
    if (b->whole[op->in[0]])
        return;
    b->whole[op->in[0]] = true;
    if (partial || b->made)
        sum_here(b, i, partial);
}

void pipeline_sum_states(Builder *b, uint32_t i)
{
    const Op *op = graph_get_op(b->graph, b->inner->instr[i].op);
    const TensorId parameter = op->in[0], gradient = op->in[1];
    const uint32_t group = group_at(b, i), at = states_group(b, group, parameter);
    const Form inside = b->inner->instr[i].form[1],
               shard = sharded(b, group, parameter, inside);
    const bool partial = take_partial_gradient(b, i);
    const bool sums = partial || held_in(b, group, gradient) == FORM_REDUCE;
    if (b->summed[i])
        return;
    b->summed[i] = true;
    const bool all = partial || group_parts(&b->program->group[group]) == 1;
    if (is_direct(b, group, gradient, parameter)) {
    } else if (sums && all && is_scattered(b, group, gradient, parameter)) {
        scatter(b, group, gradient, parameter, inside, false);
    } else {
        sum_here(b, i, partial);
        bring(b, group, false, gradient, parameter, inside);
        convert(b, group, COLLECTIVE_SLICE, gradient, parameter,
                form_over(inside, held_in(b, group, parameter), 0), shard, false);
        return;
    }
    if (!over_replicas(b, group, parameter) && group_parts(&b->program->group[at]) > 1)
        sum_across(b, at, gradient, shard);
}

void pipeline_update_states(Builder *b, uint32_t i)
{
    Instr instr = b->inner->instr[i];
    const Op *op = graph_get_op(b->graph, instr.op);
    const TensorId parameter = op->in[0], next = graph_updated(b->graph, parameter);
    const uint32_t group = group_at(b, i);
    const Form inside = instr.form[0], shard = sharded(b, group, parameter, inside),
               whole = form_over(inside, held_in(b, group, parameter), 0);
    if (level_of(b, group) < 3) {
        bring(b, group, false, parameter, parameter, inside);
        convert(b, group, COLLECTIVE_SLICE, parameter, parameter, whole, shard, false);
    }
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++)
        instr.form[k] = shard;
    pipeline_append(b, instr, states_group(b, group, parameter), PROGRAM_WHOLE);
    if (level_of(b, group) < 3) {
        convert(b, group, COLLECTIVE_ALL_GATHER, next, parameter, shard, whole, false);
        bring(b, group, true, next, parameter, inside);
    }
}
