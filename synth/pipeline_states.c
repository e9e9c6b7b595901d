/* Sharded states (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023, FSDP): optimizer states, gradients and
 * parameters that neighbouring replicas divide among them.
 *
 * A group's states lie in a group of the same devices, whose shards are the replicas that divide them. What
 * they divide is a dim of each parameter: of those that tensor parallelism leaves whole the one that is cut
 * most evenly; what has none (a bias of its columns) stays as it is. The gradient's sum over the
 * microbatches is reduce-scattered there, the update works on shards, and the new parameter is gathered. From
 * level 2 on a gradient goes there when a layer's backward on a microbatch is over, from level 3 on a
 * parameter lies there, too, and a layer's are gathered while the layer before it runs, in the forward and
 * again in the backward. */
#include "synth/pipeline_build.h"

#include <math.h>

enum { NEVER = UINT32_MAX };

bool pipeline_divides(const Builder *b, TensorId parameter)
{
    return b->state && b->state[parameter] != FORM_IDENTITY;
}

/* --- which dim --- */

/* The dim of which the largest shard is least; none that the devices of a replica divide already. */
static Form choose_form(const Tensor *tensor, Form inside, uint32_t n_shards)
{
    Form best = FORM_IDENTITY;
    double least = 1;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const uint32_t units = tensor->units[d];
        const double part = ceil((double)units / n_shards) / units;
        if (inside != form_gather(d) && part < least) {
            least = part;
            best = form_gather(d);
        }
    }
    return best;
}

/* The form that the update holds all its operands in, if it is one, and the parameter is loaded so. */
static bool update_form(const Builder *b, uint32_t i, Form *form)
{
    const Instr *instr = &b->inner->instr[i];
    const Op *op = graph_get_op(b->graph, instr->op);
    *form = instr->form[0];
    for (uint32_t k = 1; k < op->n_in + op->n_out; k++)
        if (instr->form[k] != *form)
            return false;
    const Instr *load = &b->inner->instr[b->maker[i * OP_MAX_IN]];
    return load->kind == INSTR_LOAD && load->to == *form && *form != FORM_REDUCE;
}

void pipeline_find_states(Builder *b)
{
    const SynthPipeline *p = b->pipeline;
    if (p->zero == 0 || p->zero_ranks < 2)
        return;
    b->state = g_new0(Form, graph_n_tensors(b->graph));
    b->gathered = g_new(uint32_t, b->inner->n);
    b->summed = g_new0(bool, b->inner->n);
    b->direct = g_new(uint32_t, graph_n_tensors(b->graph));
    b->states = g_new(uint16_t, p->n_groups);
    for (uint32_t g = 0; g < p->n_groups; g++)
        b->states[g] = program_add_shards(b->program, (uint16_t)g, p->zero_ranks);
    for (uint32_t i = 0; i < b->inner->n; i++) {
        Form form;
        b->gathered[i] = NEVER;
        if (!pipeline_is_update(b, i) || !update_form(b, i, &form))
            continue;
        const TensorId parameter = graph_get_op(b->graph, b->inner->instr[i].op)->in[0];
        b->state[parameter] =
            choose_form(graph_tensor(b->graph, parameter), form, p->zero_ranks);
        b->direct[parameter] = b->maker[i * OP_MAX_IN + 1];
    }
}

/* --- instructions --- */

static Form sharded(const Builder *b, TensorId parameter, Form inside)
{
    return form_over(inside, b->state[parameter], FORM_IDENTITY);
}

/* A conversion over the shards in the group of the states. */
static void convert(Builder *b, uint32_t group, Collective kind, TensorId tensor,
                    Form from, Form to, bool moves)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_COLLECTIVE,
                            .stream = kind < (Collective)COLLECTIVES_PRICED,
                            .collective = kind,
                            .tensor = tensor,
                            .moves = moves,
                            .from = from,
                            .to = to},
                    b->states[group], PROGRAM_WHOLE);
}

/* Between a group and that of its states: to or from it. */
static void regroup(Builder *b, uint32_t group, bool back, TensorId tensor, Form from,
                    Form to, bool moves)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_TRANSFER,
                            .tensor = tensor,
                            .to_group = back ? (uint16_t)group : b->states[group],
                            .moves = moves,
                            .from = from,
                            .to = to},
                    back ? b->states[group] : group, PROGRAM_WHOLE);
}

void pipeline_load(Builder *b, uint32_t i)
{
    Instr instr = b->inner->instr[i];
    const Tensor *tensor = graph_tensor(b->graph, instr.tensor);
    const bool state = tensor->role == ROLE_OPTIMIZER;
    const TensorId parameter = state ? tensor->of : instr.tensor;
    uint32_t group = group_at(b, i);
    if ((state || (tensor->role == ROLE_PARAMETER && b->pipeline->zero == 3)) &&
        pipeline_divides(b, parameter)) {
        instr.to = sharded(b, parameter, instr.to);
        group = b->states[group];
    }
    pipeline_append(b, instr, group, PROGRAM_WHOLE);
}

/* Whether instruction `i` loads a parameter that has to be gathered before it is used. */
static bool is_gathered(const Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    return b->pipeline->zero == 3 && instr->kind == INSTR_LOAD &&
           graph_tensor(b->graph, instr->tensor)->role == ROLE_PARAMETER &&
           pipeline_divides(b, instr->tensor);
}

static void gather(Builder *b, uint32_t load)
{
    const Instr *instr = &b->inner->instr[load];
    const uint32_t group = group_at(b, load);
    if (b->gathered[load] == b->pass)
        return;
    b->gathered[load] = b->pass;
    convert(b, group, COLLECTIVE_ALL_GATHER, instr->tensor,
            sharded(b, instr->tensor, instr->to), instr->to, false);
    regroup(b, group, true, instr->tensor, instr->to, instr->to, false);
}

void pipeline_gather_for(Builder *b, uint32_t i)
{
    Operand use[OP_MAX_IN];
    if (!b->state || pipeline_is_update(b, i))
        return;
    const uint32_t n = instr_uses(&b->inner->instr[i], b->graph, use);
    for (uint32_t k = 0; k < n; k++)
        if (is_gathered(b, b->maker[i * OP_MAX_IN + k]))
            gather(b, b->maker[i * OP_MAX_IN + k]);
}

/* Gathers for all instructions of a stage's phase that are of a layer. */
static void gather_layer(Builder *b, Phase phase, uint32_t stage, uint32_t layer)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    const Recompute *modes = b->pipeline->recompute;
    for (uint32_t k = begin[0]; k < begin[1]; k++)
        if (b->place[b->unit[k]].layer == layer)
            pipeline_gather_for(b, b->unit[k]);
    if (phase == BACKWARD && modes && modes[layer] == RECOMPUTE_FULL)
        gather_layer(b, FORWARD, stage, layer);
}

void pipeline_gather_ahead(Builder *b, Phase phase, uint32_t stage, uint32_t at)
{
    const uint32_t *begin = &b->begin[phase * b->pipeline->n_stages + stage];
    const uint32_t layer = b->place[b->unit[at]].layer;
    if (!b->state || b->pipeline->zero < 3 ||
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

/* The gradient's sum goes to the group of the states, where the shards add it up. */
static void scatter(Builder *b, uint32_t group, TensorId gradient, Form inside,
                    bool moves)
{
    const TensorId parameter = graph_tensor(b->graph, gradient)->of;
    const Form sums = form_over(inside, FORM_REDUCE, FORM_IDENTITY);
    regroup(b, group, false, gradient, inside, sums, moves);
    convert(b, group, COLLECTIVE_REDUCE_SCATTER, gradient, sums,
            sharded(b, parameter, inside), moves);
}

static void scatter_made(Builder *b, uint32_t i)
{
    const Instr *instr = &b->inner->instr[i];
    Operand make[OP_MAX_OUT];
    const uint32_t n = makes_sums(b, instr) ? instr_makes(instr, b->graph, make) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const TensorId of = graph_tensor(b->graph, make[k].tensor)->of;
        if (of != GRAPH_NONE && graph_tensor(b->graph, of)->role == ROLE_PARAMETER &&
            pipeline_divides(b, of) && b->direct[of] == i)
            scatter(b, group_at(b, i), make[k].tensor, make[k].form, true);
    }
}

void pipeline_scatter_behind(Builder *b, uint32_t stage, uint32_t at)
{
    const uint32_t *begin = &b->begin[BACKWARD * b->pipeline->n_stages + stage];
    const uint32_t layer = b->place[b->unit[at]].layer;
    if (!b->state || b->pipeline->zero < 2 ||
        (at + 1 < begin[1] && b->place[b->unit[at + 1]].layer == layer))
        return;
    uint32_t first = at;
    while (first > begin[0] && b->place[b->unit[first - 1]].layer == layer)
        first--;
    for (; first <= at; first++)
        scatter_made(b, b->unit[first]);
}

/* --- updates --- */

static bool is_direct(const Builder *b, TensorId parameter)
{
    return b->pipeline->zero >= 2 &&
           makes_sums(b, &b->inner->instr[b->direct[parameter]]);
}

static void sum_sets(Builder *b, uint32_t group, TensorId gradient, Form form)
{
    pipeline_append(b,
                    (Instr){.kind = INSTR_COLLECTIVE,
                            .across = true,
                            .stream = 1,
                            .collective = COLLECTIVE_ALL_REDUCE,
                            .tensor = gradient,
                            .from = form,
                            .to = form},
                    b->states[group], PROGRAM_WHOLE);
}

void pipeline_sum_states(Builder *b, uint32_t i)
{
    const Op *op = graph_get_op(b->graph, b->inner->instr[i].op);
    const TensorId parameter = op->in[0], gradient = op->in[1];
    const Form inside = b->inner->instr[i].form[1];
    const uint32_t group = group_at(b, i);
    const bool partial = *partial_of(b, group, gradient) >> inside & 1u;
    if (b->summed[i])
        return;
    b->summed[i] = true;
    if (!is_direct(b, parameter) && partial) {
        scatter(b, group, gradient, inside, false);
    } else if (!partial) {
        regroup(b, group, false, gradient, inside, inside, false);
        convert(b, group, COLLECTIVE_SLICE, gradient, inside,
                sharded(b, parameter, inside), false);
    }
    if (partial && group_parts(&b->program->group[b->states[group]]) > 1)
        sum_sets(b, group, gradient, sharded(b, parameter, inside));
}

void pipeline_update_states(Builder *b, uint32_t i)
{
    Instr instr = b->inner->instr[i];
    const Op *op = graph_get_op(b->graph, instr.op);
    const TensorId parameter = op->in[0], next = graph_updated(b->graph, parameter);
    const Form inside = instr.form[0], shard = sharded(b, parameter, inside);
    const uint32_t group = group_at(b, i);
    const bool whole = b->pipeline->zero < 3;
    if (whole) {
        regroup(b, group, false, parameter, inside, inside, false);
        convert(b, group, COLLECTIVE_SLICE, parameter, inside, shard, false);
    }
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++)
        instr.form[k] = shard;
    pipeline_append(b, instr, b->states[group], PROGRAM_WHOLE);
    if (whole) {
        convert(b, group, COLLECTIVE_ALL_GATHER, next, shard, inside, false);
        regroup(b, group, true, next, inside, inside, false);
    }
}
