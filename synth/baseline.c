/* Assignments of known strategies: each op and its backward ops are sharded along one loop. */
#include "synth/assignment.h"

#include <string.h>

static bool is_activation(const Graph *graph, TensorId tensor)
{
    return graph_tensor(graph, tensor)->role == ROLE_ACTIVATION;
}

/* The rule that shards the loop `letter`. */
static bool rule_over(const Graph *graph, OpId op, char letter, Rule *rule)
{
    OpSpace space;
    graph_op_space(graph, op, &space);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, op, all);
    for (uint32_t r = 0; r < n; r++)
        if (all[r].loop >= 0 && space.loop[all[r].loop].letter == letter) {
            *rule = all[r];
            return true;
        }
    return false;
}

/* Whether a rule keeps parameters whole and reads activations in the forms `held`; inputs of the graph may come in any
 * form, but the first one cut along its first dim. */
static bool follows(const Graph *graph, const Op *op, const Rule *rule, const Form *held,
                    bool batch)
{
    bool any = false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        Role role = graph_tensor(graph, op->in[i])->role;
        Form want = role == ROLE_PARAMETER ? FORM_IDENTITY
                    : batch                ? form_gather(0)
                                           : held[op->in[i]];
        bool free = role == ROLE_INPUT && any;
        if (!free && rule->form[i] != want)
            return false;
        any |= role != ROLE_PARAMETER;
    }
    return true;
}

/* Experts along `e` if asked for; else whatever the activation is cut along; else the batch. */
static bool choose_rule(const Graph *graph, OpId id, bool experts, const Form *held,
                        Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    if (experts && op->kind == OP_EXPERT)
        return rule_over(graph, id, 'e', rule);
    uint32_t activations = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        activations += is_activation(graph, op->in[i]);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, id, all);
    for (int batch = activations != 1; batch < 2; batch++)
        for (uint32_t r = 0; r < n; r++)
            if (all[r].loop >= 0 && follows(graph, op, &all[r], held, batch)) {
                *rule = all[r];
                return true;
            }
    return false;
}

/* Dim with the most pieces, for optimizer states that are cut without regard to the model. */
static Form widest(const Graph *graph, TensorId parameter)
{
    const Tensor *tensor = graph_tensor(graph, parameter);
    uint32_t best = 0;
    for (uint32_t d = 1; d < tensor->rank; d++)
        if (tensor->units[d] > tensor->units[best])
            best = d;
    return price_can_hold(graph, parameter, form_gather(best)) ? form_gather(best)
                                                               : FORM_IDENTITY;
}

/* Form that forward op `op` holds `tensor` in under `rule`; a gradient is held like what it is the gradient of. */
static bool form_under(const Graph *graph, const Op *op, const Rule *rule,
                       TensorId tensor, Form *form)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] == tensor) {
            *form = rule->form[i];
            return true;
        }
    for (uint32_t o = 0; o < op->n_out; o++)
        if (op->out[o] == tensor || graph_gradient(graph, op->out[o]) == tensor) {
            *form = rule->form[op->n_in + o];
            return true;
        }
    return false;
}

/* The rule of a backward op that reads everything in the forms that forward op `op` holds it in. The seed is whole. */
static bool matching_rule(const Graph *graph, const Op *op, const Rule *forward,
                          OpId backward, Rule *rule)
{
    const Op *b = graph_get_op(graph, backward);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, backward, all);
    for (uint32_t r = 0; r < n; r++) {
        bool match = all[r].loop >= 0;
        for (uint32_t i = 0; i < b->n_in; i++) {
            Form form = FORM_IDENTITY;
            bool seed = op->out[0] == graph_loss(graph) &&
                        b->in[i] == graph_gradient(graph, op->out[0]);
            g_assert_true(form_under(graph, op, forward, b->in[i], &form));
            match &= all[r].form[i] == (seed ? FORM_IDENTITY : form);
        }
        if (match) {
            *rule = all[r];
            return true;
        }
    }
    return false;
}

/* Rules of `id`'s backward ops, sharded as its forward rule is, and where its parameters live. */
static bool assign_backward(const Graph *graph, OpId id, Baseline baseline, Assignment *a)
{
    const Op *op = graph_get_op(graph, id);
    OpId backward[MAX_BACKWARD];
    uint32_t n = backward_ops(graph, id, backward);
    for (uint32_t k = 0; k < n; k++)
        if (!matching_rule(graph, op, &a->rule[id], backward[k], &a->rule[backward[k]]))
            return false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        OpId accumulation = graph_accumulation(graph, id, i);
        Form forms[OP_MAX_OPERANDS];
        memset(forms, a->gradient[op->in[i]], sizeof forms);
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER) {
            Form cut = a->rule[id].form[i];
            ParameterPlan plan = {.rest = cut, .update = cut};
            if (cut == FORM_IDENTITY && baseline == BASELINE_ZERO_EXPERT)
                plan.update = widest(graph, op->in[i]);
            parameter_plan_apply(graph, op->in[i], &plan, a);
        } else if (accumulation != GRAPH_NONE &&
                   !op_rule_find(graph, accumulation, forms, &a->rule[accumulation])) {
            return false;
        }
    }
    return true;
}

static bool assign(const Graph *graph, Baseline baseline, Assignment *a)
{
    OpId loss = graph_tensor(graph, graph_loss(graph))->producer;
    g_autofree Form *held = g_new0(Form, graph_n_tensors(graph));
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        if (!choose_rule(graph, id, baseline == BASELINE_ZERO_EXPERT, held, &a->rule[id]))
            return false;
        for (uint32_t o = 0; o < op->n_out; o++)
            held[op->out[o]] = a->gradient[op->out[o]] = a->rule[id].form[op->n_in + o];
    }
    for (OpId id = 0; id <= loss; id++)
        if (!assign_backward(graph, id, baseline, a))
            return false;
    return true;
}

bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    Pricer pricer;
    pricer_init(&pricer, graph, view, ratio, 0);
    Assignment assignment;
    assignment_init(&assignment, graph);
    if (!assign(graph, baseline, &assignment))
        kilter_fail(error, KILTER_ERROR_FAILED,
                    "model '%s': its batch cannot be sharded over %u devices",
                    graph_name(graph), view->n_devices);
    else
        result->program = synth_emit(&pricer, &assignment, error);
    assignment_clear(&assignment);
    if (result->program)
        result->time_s = synth_time(&pricer, result->program, ratio, 0);
    pricer_clear(&pricer);
    if (!result->program)
        return false;
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}
