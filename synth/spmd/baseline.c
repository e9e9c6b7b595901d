/* Assignments of known strategies: each op and its backward ops are sharded along one loop.
 *
 * The loop is chosen by where it occurs (synth/spmd/columns.h). A column-parallel op leaves its
 * output cut if every path from it leads, through ops that read it cut, to an op that sums over the
 * cut dim (by rows). */
#include "synth/spmd/assignment.h"
#include "synth/spmd/baseline_parts.h"
#include "synth/spmd/columns.h"

#include <string.h>

/* Whether a rule keeps parameters whole and reads activations in the forms `held`; inputs of the
 * graph may come in any form, but the first one cut along its first dim. Sums over the batch (the
 * moments of batch norm) are added up before they are read. */
static bool follows(const Graph *graph, const Op *op, const Rule *rule, const Form *held,
                    bool batch)
{
    KILTER_ASSERT(op->n_in <= OP_MAX_IN);
    bool any = false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const bool weight = graph_is_weight(graph, op->in[i]);
        const Form have = held[op->in[i]];
        Form want = weight || have == FORM_REDUCE ? FORM_IDENTITY
                    : batch                       ? form_gather(0)
                                                  : have;
        bool free = graph_tensor(graph, op->in[i])->role == ROLE_INPUT && any;
        if (!free && rule->form[i] != want)
            return false;
        any |= !weight;
    }
    return true;
}

/* Chooses the experts' loop `e` if asked for, else the loop along which the activation is cut, else
 * the batch. A tied parameter counts as a weight for its readers. */
static bool choose_rule(const Graph *graph, OpId id, bool experts, const Form *held,
                        Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    if (experts && columns_rule(graph, id, true, 1, rule))
        return true;
    uint32_t activations = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        activations +=
            is_activation(graph, op->in[i]) && !graph_is_weight(graph, op->in[i]);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, id, all);
    if (op->kind == OP_TIED) { /* in the parameter's form */
        *rule = all[0];
        return true;
    }
    for (int batch = activations != 1; batch < 2; batch++)
        for (uint32_t r = 0; r < n; r++)
            if (all[r].loop >= 0 && follows(graph, op, &all[r], held, batch)) {
                *rule = all[r];
                return true;
            }
    return false;
}

/* The rule that reads the op's inputs in the forms in which they are held, some of them cut. */
bool baseline_rule_following(const Graph *graph, OpId id, const Form *held, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, id, all);
    for (uint32_t r = 0; r < n; r++) {
        bool match = true, cut = false;
        for (uint32_t i = 0; i < op->n_in; i++)
            if (is_activation(graph, op->in[i])) {
                match &= all[r].form[i] == held[op->in[i]];
                cut |= form_is_gather(all[r].form[i]);
            }
        if (match && cut) {
            *rule = all[r];
            return true;
        }
    }
    return false;
}

/* The form of a tensor's gradient: the tensor's own form, or whole if the tensor is made as partial
 * sums. */
Form baseline_dual(Form form)
{
    return form == FORM_REDUCE ? FORM_IDENTITY : form;
}

/* The rule that cuts an op's weight by columns, if all readers of the columns end in partial sums,
 * or if the op is the output layer, whose weight is the largest. */
bool baseline_rule_columns(const Graph *graph, OpId id, OpId loss, uint32_t ways,
                           const FormSet *absorbed, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    Rule columns;
    if (!columns_rule(graph, id, false, ways, &columns))
        return false;
    const Form cut = columns.form[op->n_in];
    if (cut != FORM_REDUCE && !(absorbed[op->out[0]] >> cut & 1u) &&
        op->layer != graph_get_op(graph, loss)->layer)
        return false;
    *rule = columns;
    return true;
}

/* Activations [batch, sequence, ...] cut along the sequence. */
#define SEQUENCE form_gather(1)

static bool has_sequence(const Graph *graph, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(graph));
    return graph_tensor(graph, tensor)->rank >= 3 &&
           form_can_hold(graph, tensor, SEQUENCE);
}

/* The rule that cuts all activations that the op reads and makes along the sequence, and keeps its
 * parameters whole (Korthikanti et al. 2022, Sec. 4.2.2). */
static bool rule_along_sequence(const Graph *graph, OpId id, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    Rule all[OP_MAX_RULES];
    for (uint32_t r = op_rules(graph, id, all); r-- > 0;) {
        bool match = all[r].loop >= 0, any = false;
        for (uint32_t i = 0; match && i < op->n_in; i++) {
            const bool reads = is_activation(graph, op->in[i]);
            any |= reads;
            match = reads ? all[r].form[i] == SEQUENCE && has_sequence(graph, op->in[i])
                          : graph_tensor(graph, op->in[i])->role != ROLE_PARAMETER ||
                                all[r].form[i] == FORM_IDENTITY;
        }
        for (uint32_t o = 0; match && o < op->n_out; o++)
            match = all[r].form[op->n_in + o] == SEQUENCE;
        if (match && any) {
            *rule = all[r];
            return true;
        }
    }
    return false;
}

/* [tensor]: whether an op with weights of experts reads it. The caller frees it. */
static bool *feeds_experts(const Graph *graph, OpId loss, uint32_t ways)
{
    bool *feeds = g_new0(bool, graph_n_tensors(graph));
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        Rule rule;
        for (uint32_t i = 0; columns_rule(graph, id, true, ways, &rule) && i < op->n_in;
             i++)
            feeds[op->in[i]] |= is_activation(graph, op->in[i]);
    }
    return feeds;
}

/* Whether a rule reads tensors that are cut by experts as they are, or makes what experts read. */
static bool suits_experts(const Op *op, const Rule *rule, const Form *held,
                          const bool *feeds, const bool *of_experts)
{
    bool any = feeds[op->out[0]] && form_is_gather(rule->form[op->n_in]);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (of_experts[op->in[i]] && rule->form[i] != held[op->in[i]])
            return false;
        any |= of_experts[op->in[i]];
    }
    return any;
}

/* The rule by experts of an op with their weights, of one that hands tokens out to them or collects
 * what they make. */
static bool rule_by_expert(const Graph *graph, OpId id, uint32_t ways, const Form *held,
                           const bool *feeds, const bool *of_experts, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    Rule all[OP_MAX_RULES];
    if (columns_rule(graph, id, true, ways, rule))
        return true;
    graph_op_space(graph, id, &space);
    for (uint32_t r = op_rules(graph, id, all); r-- > 0;)
        if (all[r].loop >= 0 && space.loop[all[r].loop].letter == LOOP_EXPERT &&
            suits_experts(op, &all[r], held, feeds, of_experts)) {
            *rule = all[r];
            return true;
        }
    return false;
}

/* Whether an op is an adapter's first factor, which the second one reads whole: if it were cut by
 * rows, its sum with the product beside it would be whole, and so would all that reads this. */
static bool leads_adapter(const Op *op)
{
    return g_str_has_suffix(op->name, ".lora_a");
}

/* Cuts each op by rows or along with its cut inputs, else by columns, else not at all. `held`: the
 * forms for later ops. With sequence[layer] all other ops are cut along the sequence, and partial
 * sums are reduce-scattered to it. With `experts` these are whole, and divided among the devices;
 * what they make is added up where tokens come together again. */
static void assign_tensor_parallel(const Graph *graph, OpId loss, uint32_t ways,
                                   const bool *sequence, bool experts, Form *held,
                                   Assignment *a)
{
    g_autofree FormSet *absorbed = columns_absorbed(graph, loss, ways);
    g_autofree bool *feeds = experts ? feeds_experts(graph, loss, ways) : NULL;
    g_autofree bool *of_experts = g_new0(bool, graph_n_tensors(graph));
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        const bool divides = sequence && sequence[op->layer];
        Rule all[OP_MAX_RULES], *rule = &a->rule[id];
        bool along = false,
             of_expert = experts &&
                         rule_by_expert(graph, id, ways, held, feeds, of_experts, rule);
        if (!of_expert && !baseline_rule_following(graph, id, held, rule) &&
            !baseline_rule_columns(graph, id, loss, ways, absorbed, rule) &&
            !(along = divides && rule_along_sequence(graph, id, rule))) {
            op_rules(graph, id, all);
            *rule = all[0];
        }
        for (uint32_t i = 0; i < op->n_in; i++)
            of_expert |= of_experts[op->in[i]] && form_is_gather(rule->form[i]);
        for (uint32_t o = 0; o < op->n_out; o++) {
            Form form = baseline_dual(rule->form[op->n_in + o]);
            of_experts[op->out[o]] = of_expert && form_is_gather(form);
            const bool sums = divides && rule->form[op->n_in + o] == FORM_REDUCE &&
                              has_sequence(graph, op->out[o]);
            a->gradient[op->out[o]] = sums ? SEQUENCE : form;
            const bool stays =
                !along && !leads_adapter(op) && (absorbed[op->out[o]] >> form & 1u) != 0;
            held[op->out[o]] = of_experts[op->out[o]] || stays ? form : FORM_IDENTITY;
        }
    }
}

/* The form that cuts the dim with the most pieces, for optimizer states cut without regard to the
 * model. */
static Form baseline_widest(const Graph *graph, TensorId parameter)
{
    const Tensor *tensor = graph_tensor(graph, parameter);
    uint32_t best = 0;
    for (uint32_t d = 1; d < tensor->rank; d++)
        if (tensor->units[d] > tensor->units[best])
            best = d;
    return form_can_hold(graph, parameter, form_gather(best)) ? form_gather(best)
                                                              : FORM_IDENTITY;
}

/* The form in which forward op `op` holds `tensor` under `rule`; `tensor` may also be an output's
 * gradient. */
static bool form_under(const Graph *graph, const Op *op, const Rule *rule,
                       TensorId tensor, Form *form)
{
    KILTER_ASSERT(tensor != GRAPH_NONE);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] == tensor) {
            *form = rule->form[i];
            return true;
        }
    for (uint32_t o = 0; o < op->n_out; o++)
        if (op->out[o] == tensor || graph_gradient(graph, op->out[o]) == tensor) {
            *form = rule->form[op->n_in + o];
            *form = op->out[o] == tensor ? *form : baseline_dual(*form);
            return true;
        }
    return false;
}

/* The rule of a backward op that reads everything in the forms that forward op `op` holds it in:
 * sharded if the forward is and there is such a rule. */
static bool matching_rule(const Graph *graph, const Op *op, const Assignment *a,
                          OpId backward, Rule *rule)
{
    const Rule *forward = &a->rule[graph_get_op(graph, backward)->of];
    const Op *b = graph_get_op(graph, backward);
    Rule all[OP_MAX_RULES];
    bool found = false;
    for (uint32_t r = op_rules(graph, backward, all); r-- > 0;) {
        bool match = forward->loop >= 0 || all[r].loop < 0;
        for (uint32_t i = 0; i < b->n_in; i++) {
            Form form = FORM_IDENTITY;
            g_assert_true(form_under(graph, op, forward, b->in[i], &form));
            if (op->kind == OP_TIED)
                form = a->gradient[op->out[0]];
            match &= all[r].form[i] == form;
        }
        if (match && !(found && all[r].loop < 0)) {
            *rule = all[r];
            found = true;
        }
    }
    return found;
}

/* Rules of `id`'s backward ops, sharded as its forward rule is. */
bool baseline_assign_backward(const Graph *graph, OpId id, Assignment *a)
{
    OpId backward[MAX_BACKWARD];
    uint32_t n = backward_ops(graph, id, backward);
    return all_of(k, n,
                  matching_rule(graph, graph_get_op(graph, id), a, backward[k],
                                &a->rule[backward[k]]));
}

/* Whether op `id` contributes partial sums to the gradient of its input `i`. */
static bool contributes_sums(const Graph *graph, OpId id, uint32_t i, const Assignment *a)
{
    KILTER_ASSERT(i < graph_get_op(graph, id)->n_in);
    const TensorId contribution = graph_contribution(graph, id, i);
    const OpId producer = contribution == GRAPH_NONE
                              ? GRAPH_NONE
                              : graph_tensor(graph, contribution)->producer;
    if (producer == GRAPH_NONE || graph_get_op(graph, producer)->of != id)
        return false;
    const Op *op = graph_get_op(graph, producer);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (op->out[o] == contribution)
            return a->rule[producer].form[op->n_in + o] == FORM_REDUCE;
    return false;
}

/* If all readers of an activation make partial sums of its gradient, the sums are added first and
 * communicated once (queries and keys, or attention beside the feed-forward network). */
void baseline_add_sums_first(const Graph *graph, OpId loss, Assignment *a)
{
    g_autofree uint32_t *readers = g_new0(uint32_t, graph_n_tensors(graph));
    g_autofree uint32_t *sums = g_new0(uint32_t, graph_n_tensors(graph));
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++) {
            readers[op->in[i]]++;
            sums[op->in[i]] += contributes_sums(graph, id, i, a);
        }
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (is_activation(graph, t) && readers[t] > 1 && sums[t] == readers[t])
            a->gradient[t] = FORM_REDUCE;
}

/* Assigns how contributions to gradients are added, and where the parameters of `id` rest. */
bool baseline_assign_gradients(const Graph *graph, OpId id, Baseline baseline,
                               Assignment *a)
{
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; i < op->n_in; i++) {
        OpId accumulation = graph_accumulation(graph, id, i);
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER) {
            Form cut = baseline_dual(a->rule[id].form[i]);
            if (!parameter_updates_in(graph, op->in[i], cut))
                cut = FORM_IDENTITY;
            ParameterPlan plan = {.rest = cut, .update = cut};
            if (cut == FORM_IDENTITY && baseline == BASELINE_ZERO_EXPERT)
                plan.update = baseline_widest(graph, op->in[i]);
            if (!parameter_updates_in(graph, op->in[i], plan.update))
                plan.update = FORM_IDENTITY;
            parameter_plan_apply(graph, op->in[i], &plan, a);
        } else if (accumulation != GRAPH_NONE &&
                   !op_rule_in(graph, accumulation, a->gradient[op->in[i]],
                               &a->rule[accumulation])) {
            return false;
        }
    }
    return true;
}

/* Assigns all ops along the batch, or by expert. */
static bool assign_data_parallel(const Graph *graph, OpId loss, bool experts, Form *held,
                                 Assignment *a)
{
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        if (!choose_rule(graph, id, experts, held, &a->rule[id]))
            return false;
        for (uint32_t o = 0; o < op->n_out; o++)
            held[op->out[o]] = a->gradient[op->out[o]] = a->rule[id].form[op->n_in + o];
        if (op->kind == OP_TIED) /* each use adds the gradient of its samples */
            a->gradient[op->out[0]] = FORM_REDUCE;
    }
    return true;
}

static bool assign(const Graph *graph, Baseline baseline, uint32_t ways,
                   const bool *sequence, bool whole_experts, Assignment *a)
{
    OpId loss = graph_tensor(graph, graph_loss(graph))->producer;
    g_autofree Form *held = g_new0(Form, graph_n_tensors(graph));
    if (baseline == BASELINE_MEGATRON)
        assign_tensor_parallel(graph, loss, ways, sequence, whole_experts, held, a);
    else if (!assign_data_parallel(graph, loss, baseline != BASELINE_DATA_PARALLEL, held,
                                   a))
        return false;
    for (OpId id = 0; id <= loss; id++)
        if (!baseline_assign_backward(graph, id, a))
            return false;
    if (baseline == BASELINE_MEGATRON)
        baseline_add_sums_first(graph, loss, a);
    for (OpId id = 0; id <= loss; id++)
        if (!baseline_assign_gradients(graph, id, baseline, a))
            return false;
    return true;
}

/* The strategy's program by a pricer that has priced nothing yet. */
static Program *emit(Pricer *pricer, Baseline baseline, GError **error)
{
    g_assert(baseline < BASELINES);
    const Graph *graph = pricer->graph;
    const uint32_t n = pricer->view->n_devices;
    /* Frameworks sum each gradient by one all-reduce, though two collectives may take less. */
    pricer->direct = baseline == BASELINE_DATA_PARALLEL;
    g_auto(Assignment) assignment = {0};
    assignment_init(&assignment, graph);
    bool done = assign(graph, baseline, n, NULL, false, &assignment);
    if (!done && n == 1) { /* nothing is cut, so all strategies are equal */
        assignment_clear(&assignment);
        assignment_init(&assignment, graph);
        done = assign(graph, BASELINE_MEGATRON, 1, NULL, false, &assignment);
    }
    if (!done)
        return refused(error, "model '%s': its batch cannot be sharded over %u devices",
                       graph_name(graph), n);
    return synth_emit(pricer, &assignment, error);
}

Program *synth_baseline_program(const Graph *graph, const ClusterView *view,
                                const double *ratio, Baseline baseline, GError **error)
{
    g_auto(Pricer) pricer = {0};
    pricer_init(&pricer, graph, view, ratio, NULL);
    return emit(&pricer, baseline, error);
}

bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    g_auto(Pricer) pricer = {0};
    pricer_init(&pricer, graph, view, ratio, NULL);
    result->program = emit(&pricer, baseline, error);
    if (!result->program)
        return false;
    result->time_s = synth_time(&pricer, result->program, ratio, 0);
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}

Program *baseline_program(const Graph *graph, const ClusterView *view,
                          BaselineAssign *assign_all, const void *how, GError **error)
{
    g_autofree double *even = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        even[j] = 1.0 / view->n_devices;
    g_auto(Pricer) pricer = {0};
    pricer_init(&pricer, graph, view, even, NULL);
    /* Frameworks add activations up by one all-reduce. A reduce-scatter and an all-gather may cost
     * as much among all devices, but on a microbatch with fewer samples than devices the shares
     * between them are uneven. (Clusters of papers keep the programs of their figures.) */
    pricer.direct = cluster_view_has_kernels(view);
    g_auto(Assignment) assignment = {0};
    assignment_init(&assignment, graph);
    if (!assign_all(graph, how, &assignment))
        return refused(error,
                       "model '%s': its layers cannot be divided over that many devices",
                       graph_name(graph));
    return synth_emit(&pricer, &assignment, error);
}

typedef struct {
    uint32_t ways;
    const bool *sequence;
    bool experts;
} Megatron;

static bool assign_megatron(const Graph *graph, const void *how, Assignment *a)
{
    const Megatron *megatron = how;
    return assign(graph, BASELINE_MEGATRON, megatron->ways, megatron->sequence,
                  megatron->experts, a);
}

Program *synth_megatron(const Graph *graph, const ClusterView *view, uint32_t ways,
                        const bool *sequence, bool experts, GError **error)
{
    const Megatron how = {ways, sequence, experts};
    return baseline_program(graph, view, assign_megatron, &how, error);
}
