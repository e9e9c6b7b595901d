/* Context and expert parallelism: the tensors that the shards of a group divide.
 *
 * Context parallelism divides sequences. Ops follow their inputs along the sequence; attention
 * takes some of the queries and gathers all keys and values (Llama Team 2024, Sec. 3.3.2), or, with
 * all-to-alls before and after it, whole sequences of some heads (Jacobs et al. 2023, Ulysses).
 * Tensors without such a rule are gathered.
 *
 * Expert parallelism divides the experts of a layer among neighbouring replicas (Lepikhin et al.
 * 2021, GShard). Their ops run on a group of the same devices whose shards are these replicas: each
 * replica sends the tokens of its samples to their experts, and gets them back, by all-to-alls.
 * Where sequences are divided, its shards divide experts, unless the pipeline `folds` them. */
#include "synth/pipeline/build.h"

#include <math.h>

#include "data/base/free.h"
#include "sim/sim.h"
#include "synth/spmd/assignment.h"
#include "synth/spmd/forms.h"

static bool is_weight(const Graph *graph, TensorId tensor)
{
    return graph_tensor(graph, tensor)->role == ROLE_PARAMETER;
}

bool pipeline_reads_experts(const Graph *graph, const Op *op, const OpSpace *space,
                            uint32_t i)
{
    const int8_t loop = space->dim_loop[i][0];
    return is_weight(graph, op->in[i]) && loop >= 0 &&
           space->loop[loop].letter == LOOP_EXPERT;
}

static bool is_weight_gradient(const Graph *graph, TensorId tensor)
{
    const Tensor *t = graph_tensor(graph, tensor);
    return t->role == ROLE_GRADIENT && t->of != GRAPH_NONE && is_weight(graph, t->of);
}

/* --- which loop --- */

/* The first group with the most shards: what it divides is divided where there are fewer, too. */
static const DeviceGroup *widest(const SynthPipeline *p)
{
    const DeviceGroup *most = &p->group[0];
    for (uint32_t g = 1; g < p->n_groups; g++)
        if (group_shards(&p->group[g]) > group_shards(most))
            most = &p->group[g];
    return most;
}

static bool is_attention(OpKind kind)
{
    return op_kind_is_attention(kind) || kind == OP_ATTENTION_DX ||
           kind == OP_GROUPED_ATTENTION_DX || kind == OP_FUSED_ATTENTION_DX;
}

/* Whether attention takes whole sequences of some heads: if asked for, or if queries and keys are
 * in one tensor. */
static bool takes_heads(const Builder *b, const Op *op)
{
    return is_attention(op->kind) &&
           (b->pipeline->all_to_all || !op_kind_divides_queries(op->kind));
}

static bool has_experts_loop(const OpSpace *space)
{
    const bool has = any_of(l, space->n_loops, space->loop[l].letter == LOOP_EXPERT);
    return has;
}

/* Whether shards may cut an op along the loop: the sequence's (dim 1 of its first input or output),
 * the experts', the heads' in attention, or the batch's before tokens go to experts elsewhere. */
static bool may_cut(const Builder *b, OpId id, const OpSpace *space, int loop)
{
    const Op *op = graph_get_op(b->graph, id);
    const DeviceGroup *group = widest(b->pipeline);
    const char letter = space->loop[loop].letter;
    if (loop == b->batch->loop[id])
        return b->pipeline->folds && has_experts_loop(space);
    if (takes_heads(b, op))
        return letter == LOOP_HEAD;
    if (letter == LOOP_QUERY ||
        letter == LOOP_EXPERT) /* no device is left without experts */
        return letter == LOOP_QUERY || !b->pipeline->whole_experts ||
               space->loop[loop].extent >= group_shards(group) * group->n_devices;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!is_weight(b->graph, op->in[i]) &&
            graph_tensor(b->graph, op->in[i])->rank >= 2)
            return space->dim_loop[i][1] == loop;
    return false;
}

static bool is_sent(const Builder *b, TensorId tensor)
{
    return any_in(array_each (const Need, need, b->needs), need->tensor == tensor);
}

/* The form in which an output is held: a tensor with tokens is cut along the sequence at once,
 * before tensor parallelism may divide the same dim; partial sums of other tensors are added up,
 * sums over the batch (of tied parameters) only for another group. */
static Form settled(const Builder *b, const Op *op, TensorId tensor, Form gives)
{
    const Tensor *t = graph_tensor(b->graph, tensor);
    const bool statistic = op_kind_is_attention(op->kind) && tensor != op->out[0];
    if (is_weight_gradient(b->graph, tensor) || t->role == ROLE_LOSS || t->rank == 0 ||
        (b->batch->form[tensor] == FORM_REDUCE && !is_sent(b, tensor)))
        return gives;
    if (t->rank >= 3 && t->dim[1] == b->n_tokens && !statistic &&
        form_can_hold(b->graph, tensor, form_gather(1)))
        return form_gather(1);
    return gives == FORM_REDUCE ? FORM_IDENTITY : gives;
}

/* Prices of what one replica does with one microbatch, on its first shard. */
typedef struct {
    SimMemo *memo;
    const Device *device;
    CurvePlace place; /* of the shards */
    double part;      /* of the batch */
    /* [tensor * FORM_MAX + form]: 1 + the pass in which the tensor is converted to it */
    uint8_t *converted;
    const Instr **instr; /* [op]: where the inner program runs it */
} ShardPrices;

/* Seconds to convert a tensor that positions hold in the form `inside`; INFINITY: impossible. */
static double conversion_s(const Builder *b, const ShardPrices *p, TensorId tensor,
                           Form inside, Form have, Form want)
{
    const bool held = !form_is_gather(want) || form_can_hold(b->graph, tensor, want),
               nested = inside == form_gather(1) && (have == inside || want == inside);
    if (have == want)
        return 0;
    if (!held || nested || want == FORM_REDUCE)
        return INFINITY;
    const Collective kind = pipeline_conversion(have, want);
    if (kind >= (Collective)COLLECTIVES_PRICED) /* a slice */
        return 0;
    const double bytes = (double)tensor_bytes(graph_tensor(b->graph, tensor)) *
                         (form_is_gather(b->batch->form[tensor]) ? p->part : 1),
                 share = 1.0 / p->place.ranks;
    const LinkCost line =
        cluster_view_set_line(b->pipeline->cluster, p->device, p->place, 1, kind, bytes);
    return sim_collective_over(line, p->place.ranks, kind, bytes, share, share);
}

static uint8_t *converted_in(const ShardPrices *p, TensorId tensor, Form form)
{
    return &p->converted[(size_t)tensor * FORM_MAX + form];
}

/* Whether an op finds its input converted: in its own pass by an earlier op, or kept since the
 * forward, as what went through an all-to-all is (synth/pipeline/convert.c). */
static bool finds_converted(const Builder *b, const ShardPrices *p, const Op *op,
                            TensorId tensor, Form form)
{
    const uint8_t pass = *converted_in(p, tensor, form);
    return pass == 1 + op->pass ||
           (pass > 0 && form_is_gather(b->made[tensor]) && form_is_gather(form) &&
            !pipeline_layer_again(b, op->layer));
}

/* Seconds of an op under a rule, with the conversions before and after it. */
static double rule_s(const Builder *b, const ShardPrices *p, OpId id, const Rule *rule)
{
    const Op *op = graph_get_op(b->graph, id);
    const SimOpShare has = {b->batch->form, p->part,
                            rule->loop >= 0 ? 1.0 / p->place.ranks : 1};
    double sum =
        sim_op_s(p->memo, b->graph, b->pipeline->cluster, id, rule, has, p->device);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!finds_converted(b, p, op, op->in[i], rule->form[i]))
            sum += conversion_s(b, p, op->in[i], p->instr[id]->form[i],
                                b->made[op->in[i]], rule->form[i]);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Form gives = rule->form[op->n_in + o];
        sum += conversion_s(b, p, op->out[o], p->instr[id]->form[op->n_in + o], gives,
                            settled(b, op, op->out[o], gives));
    }
    return sum;
}

/* Chooses the fastest rule; without any, the one that runs everything on all shards. If positions
 * divide by experts, shards do so at once, as they cannot later (data/program/nesting.h). */
static bool shards_choose_rule(const Builder *b, const ShardPrices *prices, OpId id,
                               Rule *best)
{
    Rule rule[OP_MAX_RULES + 1];
    OpSpace space;
    double least_s = INFINITY;
    graph_op_space(b->graph, id, &space);
    const uint32_t n = op_shard_rules(b->graph, id, rule);
    const bool by_experts = b->pipeline->ep > 1 && b->pipeline->whole_experts &&
                            !b->pipeline->folds && has_experts_loop(&space);
    *best = rule[0];
    for (uint32_t r = 0; r < n; r++) {
        const int loop = rule[r].loop;
        if ((loop >= 0 && !may_cut(b, id, &space, loop)) ||
            (by_experts && (loop < 0 || space.loop[loop].letter != LOOP_EXPERT)))
            continue;
        const double s = rule_s(b, prices, id, &rule[r]);
        /* of two that take as long, one that divides */
        if (s < least_s || (isfinite(s) && s == least_s && best->loop < 0)) {
            least_s = s;
            *best = rule[r];
        }
    }
    return isfinite(least_s);
}

static ShardPrices shard_prices(const Builder *b)
{
    const Instr **instr = g_new0(const Instr *, graph_n_ops(b->graph));
    for (uint32_t i = 0; i < b->inner->n; i++)
        if (b->inner->instr[i].kind == INSTR_COMPUTE)
            instr[b->inner->instr[i].op] = &b->inner->instr[i];
    const SynthPipeline *p = b->pipeline;
    const DeviceGroup *group = widest(p);
    const Device *device = p->cluster->device;
    const uint32_t n = group_shards(group);
    uint32_t hosts = 1;
    for (uint32_t k = 1; k < n; k++)
        hosts += device[group->device[k * group->n_devices]].machine !=
                 device[group->device[(k - 1) * group->n_devices]].machine;
    const Device *first = &device[group->device[0]];
    return (ShardPrices){sim_memo_new(),
                         first,
                         {first->type_name, n, hosts},
                         (double)n / group->n_replicas / b->n_microbatches,
                         g_new0(uint8_t, (size_t)graph_n_tensors(b->graph) * FORM_MAX),
                         instr};
}

/* --- sequences --- */

static void follow(Builder *b, OpId id, const Rule *rule)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t i = 0; i < op->n_in; i++)
        b->need[id * OP_MAX_IN + i] = rule->form[i];
    for (uint32_t o = 0; o < op->n_out; o++) {
        b->gives[id * OP_MAX_OUT + o] = rule->form[op->n_in + o];
        b->made[op->out[o]] = settled(b, op, op->out[o], rule->form[op->n_in + o]);
    }
}

/* Divides the weights of experts at rest, if expert parallelism is asked for. */
static void place_experts(Builder *b)
{
    for (OpId id = 0;
         !b->pipeline->folds && b->pipeline->ep > 1 && id < graph_n_ops(b->graph); id++) {
        const Op *op = graph_get_op(b->graph, id);
        OpSpace space;
        graph_op_space(b->graph, id, &space);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            if (pipeline_reads_experts(b->graph, op, &space, i) &&
                form_can_hold(b->graph, op->in[i], form_gather(0)))
                b->made[op->in[i]] = form_gather(0);
    }
}

static bool divide_sequences(Builder *b, GError **error)
{
    tensors_each (tensor, t, b->graph) {
        if (tensor->role == ROLE_INPUT && tensor->dtype == DTYPE_I64 &&
            tensor->rank == 2 && form_is_gather(b->batch->form[t]) &&
            form_can_hold(b->graph, t, form_gather(1))) {
            b->made[t] = form_gather(1);
            b->n_tokens = tensor->dim[1];
        }
    }
    place_experts(b);
    const ShardPrices prices = shard_prices(b);
    const Op *stuck = NULL;
    ops_each (op, id, b->graph) {
        Rule rule;
        if (op->pass == PASS_UPDATE)
            continue;
        if (!shards_choose_rule(b, &prices, id, &rule) && !stuck)
            stuck = op;
        follow(b, id, &rule);
        for (uint32_t i = 0; i < op->n_in; i++)
            *converted_in(&prices, op->in[i], rule.form[i]) = 1 + op->pass;
    }
    sim_memo_free(prices.memo);
    free_each(prices.converted, prices.instr);
    return !stuck || refuse(error,
                            "cp with sequence_parallel=on: op %s needs tokens whole that "
                            "both divide",
                            stuck->name);
}

/* --- experts --- */

/* The rule along experts, for an op with experts' weights, or with an input from such an op. */
static bool expert_rule(const Builder *b, OpId id, Rule *found)
{
    const Op *op = graph_get_op(b->graph, id);
    OpSpace space;
    Rule rule[OP_MAX_RULES];
    graph_op_space(b->graph, id, &space);
    for (uint32_t r = 0, n = op_rules(b->graph, id, rule); r < n; r++) {
        if (rule[r].loop < 0 || rule[r].loop == b->batch->loop[id])
            continue;
        const bool experts = space.loop[rule[r].loop].letter == LOOP_EXPERT;
        bool weights = false, follows = false;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const bool weight = is_weight(b->graph, op->in[i]);
            weights |= weight && form_is_gather(rule[r].form[i]);
            follows |= !weight && b->home[op->in[i]] == VIEW_EXPERTS &&
                       b->made[op->in[i]] == rule[r].form[i];
        }
        if (form_is_gather(rule[r].form[op->n_in]) && ((experts && weights) || follows)) {
            *found = rule[r];
            return true;
        }
    }
    return false;
}

/* The rule of a backward op that holds the tensors of its forward op in the same forms. */
static bool expert_rule_backward(const Builder *b, OpId id, Rule *found)
{
    const Op *op = graph_get_op(b->graph, id), *of = graph_get_op(b->graph, op->of);
    Rule rule[OP_MAX_RULES];
    for (uint32_t r = 0, n = op_rules(b->graph, id, rule); r < n; r++) {
        bool match = rule[r].loop >= 0 && rule[r].loop != b->batch->loop[id];
        for (uint32_t i = 0; match && i < op->n_in; i++) {
            const TensorId t = op->in[i];
            for (uint32_t k = 0; k < of->n_in; k++)
                if (of->in[k] == t)
                    match &= b->need[op->of * OP_MAX_IN + k] == rule[r].form[i];
            for (uint32_t o = 0; o < of->n_out; o++)
                if (of->out[o] == t || graph_gradient(b->graph, of->out[o]) == t)
                    match &= b->gives[op->of * OP_MAX_OUT + o] == rule[r].form[i];
        }
        if (match) {
            *found = rule[r];
            return true;
        }
    }
    return false;
}

/* Tensors of experts that the positions convert are handed back first: experts and positions may
 * divide the same dim. */
static void bring_home(Builder *b)
{
    items_each (const Instr, instr, b->inner->instr, b->inner->n) {
        const TensorId t = instr->tensor;
        if (instr->kind == INSTR_COLLECTIVE && b->home[t] == VIEW_EXPERTS &&
            !is_weight(b->graph, t) && !is_weight_gradient(b->graph, t)) {
            b->home[t] = VIEW_STAGE;
            b->made[t] =
                settled(b, graph_get_op(b->graph, graph_tensor(b->graph, t)->producer), t,
                        FORM_IDENTITY);
        }
    }
}

static void divide_experts(Builder *b)
{
    ops_each (op, id, b->graph) {
        Rule rule;
        if (op->pass == PASS_UPDATE || op->of == GRAPH_NONE ||
            !(op->pass == PASS_FORWARD          ? expert_rule(b, id, &rule)
              : b->view[op->of] == VIEW_EXPERTS ? expert_rule_backward(b, id, &rule)
                                                : false))
            continue;
        b->view[id] = VIEW_EXPERTS;
        for (uint32_t i = 0; i < op->n_in; i++) {
            b->need[id * OP_MAX_IN + i] = rule.form[i];
            if (is_weight(b->graph, op->in[i])) {
                b->made[op->in[i]] = rule.form[i];
                b->home[op->in[i]] = VIEW_EXPERTS;
            }
        }
        for (uint32_t o = 0; o < op->n_out; o++) {
            b->gives[id * OP_MAX_OUT + o] = b->made[op->out[o]] = rule.form[op->n_in + o];
            b->home[op->out[o]] = VIEW_EXPERTS;
        }
    }
    bring_home(b);
}

/* --- all of it --- */

/* Places optimizer states in the forms of their parameters. */
static void place_states(Builder *b)
{
    tensors_each (tensor, t, b->graph) {
        if (tensor->role != ROLE_OPTIMIZER && tensor->role != ROLE_UPDATED)
            continue;
        TensorId of = tensor->of;
        while (graph_tensor(b->graph, of)->role != ROLE_PARAMETER)
            of = graph_tensor(b->graph, of)->of;
        b->made[t] = b->made[of];
        b->home[t] = b->home[of];
    }
    ops_each (op, id, b->graph) {
        for (uint32_t k = 0; op->pass == PASS_UPDATE && k < OP_MAX_IN; k++)
            b->need[id * OP_MAX_IN + k] = b->made[op->in[0]];
        for (uint32_t k = 0; op->pass == PASS_UPDATE && k < OP_MAX_OUT; k++)
            b->gives[id * OP_MAX_OUT + k] = b->made[op->in[0]];
        if (op->pass == PASS_UPDATE)
            b->view[id] = b->home[op->in[0]];
    }
}

/* Fails for a table of positions whose dim sequence parallelism divides in another order than the
 * order of tokens over shards and devices. */
static bool check_places(const Builder *b, GError **error)
{
    const SynthPipeline *p = b->pipeline;
    bool sequence = false;
    for (uint32_t l = 0; p->sequence && l < graph_n_layers(b->graph); l++)
        sequence |= p->sequence[l];
    for (OpId id = 0; sequence && id < graph_n_ops(b->graph); id++) {
        const Op *op = graph_get_op(b->graph, id);
        if (op->kind == OP_ADD_ROWS && is_weight(b->graph, op->in[1]))
            return refuse(error,
                          "cp with sequence_parallel=on: expected a model without %s, "
                          "a table of places",
                          graph_tensor(b->graph, op->in[1])->name);
    }
    return true;
}

/* Fails unless shards that take heads get equally many, after tensor parallelism has taken its
 * part. */
static bool check_heads(const Builder *b, GError **error)
{
    for (uint32_t i = 0; i < b->inner->n; i++) {
        const DeviceGroup *group = &b->pipeline->group[group_at(b, i)];
        const Instr *instr = &b->inner->instr[i];
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(b->graph, instr->op) : NULL;
        const uint32_t by = !op || !op_kind_is_attention(op->kind) ? 0
                            : takes_heads(b, op)                   ? group_shards(group)
                                                 : b->pipeline->a2a_ranks;
        if (by == 0)
            continue;
        OpSpace space;
        graph_op_space(b->graph, instr->op, &space);
        for (uint32_t d = 0; d < graph_tensor(b->graph, op->in[0])->rank; d++) {
            const Loop *loop = &space.loop[space.dim_loop[0][d]];
            const uint32_t n =
                by * (instr->form[0] == form_gather(d) ? group->n_devices : 1);
            if (loop->letter == LOOP_HEAD && loop->extent % n != 0)
                return refuse(error,
                              "%s=%u by heads: expected a multiple of %u of them, "
                              "%s has %u%s",
                              b->pipeline->a2a_ranks ? "a2a_ranks" : "cp", by, n,
                              op->name, loop->extent,
                              op_kind_divides_queries(op->kind)
                                  ? " (of keys); cp_comm=allgather takes any"
                                  : "");
        }
    }
    return true;
}

/* Fails unless each replica has the same samples in both views. */
static bool check_samples(const Builder *b, GError **error)
{
    const SynthPipeline *p = b->pipeline;
    const uint32_t samples = b->batch->units / b->n_microbatches;
    for (uint32_t g = 0; g < p->n_groups; g++)
        if (samples % p->group[g].n_replicas != 0)
            return refuse(
                error,
                "ep=%u: expected microbatches that dp x cp = %u divides, got %u samples",
                p->ep * (p->whole_experts ? p->group[g].n_devices : 1),
                p->group[g].n_replicas, samples);
    return true;
}

/* Fails unless devices have experts of their own, whose optimizer takes them alone. */
static bool check_experts(const Builder *b, GError **error)
{
    bool has = false;
    for (TensorId t = 0; t < graph_n_tensors(b->graph); t++) {
        has |= is_weight(b->graph, t) && form_is_gather(b->made[t]);
        if (is_weight(b->graph, t) && !parameter_updates_in(b->graph, t, b->made[t]))
            return refuse(error,
                          "ep=%u: the optimizer takes %s of all experts as a whole",
                          b->pipeline->ep, graph_tensor(b->graph, t)->name);
    }
    return has ||
           refuse(error, "ep=%u: expected a model with experts that can be divided",
                  b->pipeline->ep);
}

bool pipeline_find_shards(Builder *b, GError **error)
{
    const SynthPipeline *p = b->pipeline;
    const uint32_t n_ops = graph_n_ops(b->graph), n_tensors = graph_n_tensors(b->graph);
    const bool sequences = group_shards(widest(p)) > 1;
    b->view = g_new0(uint8_t, n_ops);
    b->home = g_new0(uint8_t, n_tensors);
    if (!sequences && p->ep < 2)
        return true;
    if ((sequences && (!check_places(b, error) || !check_heads(b, error))) ||
        (b->pipeline->folds && !check_samples(b, error)))
        return false;
    b->need = g_new0(Form, (size_t)n_ops * OP_MAX_IN);
    b->gives = g_new0(Form, (size_t)n_ops * OP_MAX_OUT);
    b->made = g_new0(Form, n_tensors);
    b->converted = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    b->experts = g_new0(uint16_t, p->n_groups);
    if (sequences && !divide_sequences(b, error))
        return false;
    for (uint32_t g = 0; b->pipeline->folds && g < p->n_groups; g++)
        b->experts[g] = program_add_shards(b->program, (uint16_t)g,
                                           p->degrees ? p->degrees[g].ep : p->ep);
    if (b->pipeline->folds)
        divide_experts(b);
    place_states(b);
    return p->ep < 2 || check_experts(b, error);
}
