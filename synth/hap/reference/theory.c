/* The triples of the reference search, fused with the loads that they need, each with its adjoint
 * backward and its price. */
#include "data/base/free.h"
#include "synth/hap/reference/reference.h"

#include <math.h>
#include <string.h>

static bool is_made(const ReferenceTheory *theory, TensorId tensor)
{
    return theory->index[tensor] != GRAPH_NONE;
}

/* --- adjoints --- */

/* The form in which a backward op of `op` reads `tensor` when the forward runs under `rule`. */
static Form backward_form(const Graph *graph, const Op *op, const Rule *rule,
                          TensorId tensor)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] == tensor)
            return rule->form[i];
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (op->out[o] == tensor)
            return rule->form[op->n_in + o];
        if (graph_gradient(graph, op->out[o]) == tensor)
            return reference_adjoint(rule->form[op->n_in + o]);
    }
    g_assert_not_reached();
}

/* Whether output `made` of a backward op has, in `form`, the form that the adjoint of `rule`
 * requires. */
static bool is_adjoint_output(const Graph *graph, OpId id, const Rule *rule,
                              TensorId made, Form form)
{
    return !any_of(i, graph_get_op(graph, id)->n_in,
                   graph_contribution(graph, id, i) == made &&
                       form != reference_adjoint(rule->form[i]));
}

/* The rule of a backward op that is the adjoint of the forward op's rule. */
static bool adjoint_rule(const Graph *graph, OpId id, const Rule *forward, OpId backward,
                         Rule *rule)
{
    const Op *op = graph_get_op(graph, id), *b = graph_get_op(graph, backward);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, backward, all);
    for (uint32_t r = 0; r < n; r++) {
        bool match = all_of(
            i, b->n_in, all[r].form[i] == backward_form(graph, op, forward, b->in[i]));
        for (uint32_t o = 0; o < b->n_out; o++)
            match &= is_adjoint_output(graph, id, forward, b->out[o],
                                       all[r].form[b->n_in + o]);
        if (match) {
            *rule = all[r];
            return true;
        }
    }
    return false;
}

/* --- prices --- */

/* Adds the price of one collective. */
static void add_collective(const Pricer *pricer, Collective kind, TensorId tensor,
                           Form from, Form to, double *comm_s, Times *inner)
{
    SimWork work = {0};
    sim_work_collective(pricer->graph, kind, tensor, from, to, &work);
    Times times = price_work(pricer, &work, 0, 0);
    times_add(pricer, inner, &times);
    *comm_s += sim_collective_s(pricer->view, kind,
                                (double)tensor_bytes(graph_tensor(pricer->graph, tensor)),
                                pricer->max_share, pricer->max_share);
}

/* The plan of a parameter that an op reads in `form`: it rests and is updated in that form, or
 * whole if its update cannot be cut so. */
static ParameterPlan theory_plan_of(const Graph *graph, TensorId parameter, Form form)
{
    if (!parameter_updates_in(graph, parameter, form))
        form = FORM_IDENTITY;
    return (ParameterPlan){.rest = form, .update = form};
}

/* Prices the gradient of a parameter: if every device reads the parameter whole, its gradient is
 * partial sums, which are all-reduced. */
static void price_parameter(const Pricer *pricer, TensorId parameter, Form form,
                            Fused *fused)
{
    g_assert(form < FORM_MAX);
    const Graph *graph = pricer->graph;
    TensorId gradient = graph_gradient(graph, parameter);
    Form made = reference_adjoint(form);
    const OpId update = parameter_update(graph, parameter);
    if (update == GRAPH_NONE)
        return;
    if (made == FORM_REDUCE) {
        add_collective(pricer, COLLECTIVE_ALL_REDUCE, gradient, made, FORM_IDENTITY,
                       &fused->comm_s, &fused->update);
    }
    Rule rule;
    parameter_update_rule(graph, update, theory_plan_of(graph, parameter, form).update,
                          &rule);
    Times work = price_rule(pricer, update, &rule);
    times_add(pricer, &fused->update, &work);
}

static void price_accumulation(const Pricer *pricer, OpId accumulation, Form form,
                               Times *back)
{
    Rule rule;
    if (accumulation == GRAPH_NONE ||
        !op_rule_in(pricer->graph, accumulation, form, &rule))
        return;
    Times work = price_rule(pricer, accumulation, &rule);
    times_add(pricer, back, &work);
}

/* --- triples --- */

static bool fuse_computation(ReferenceTheory *theory, const Triple *triple, Fused *fused)
{
    const Pricer *pricer = theory->pricer;
    const Graph *graph = pricer->graph;
    const Op *op = graph_get_op(graph, triple->op);
    const Rule *rule = &triple->rule;
    *fused =
        (Fused){.triple = *triple, .token = reference_uncomputed(theory, triple->op)};
    OpId backward[MAX_BACKWARD];
    fused->n_backward = backward_ops(graph, triple->op, backward);
    fused->forward = price_rule(pricer, triple->op, rule);
    for (uint32_t k = 0; k < fused->n_backward; k++) {
        if (!adjoint_rule(graph, triple->op, rule, backward[k], &fused->backward[k]))
            return false;
        Times work = price_rule(pricer, backward[k], &fused->backward[k]);
        times_add(pricer, &fused->back, &work);
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (is_made(theory, op->in[i]))
            fused->before[fused->n_before++] =
                reference_property(theory, op->in[i], rule->form[i]);
        else if (rule->form[i] == FORM_REDUCE) /* no tensor is loaded as partial sums */
            return false;
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER)
            price_parameter(pricer, op->in[i], rule->form[i], fused);
        else
            price_accumulation(pricer, graph_accumulation(graph, triple->op, i),
                               reference_adjoint(rule->form[i]), &fused->back);
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        fused->after[fused->n_after++] =
            reference_property(theory, op->out[o], rule->form[op->n_in + o]);
    return true;
}

/* Prices the adjoint of a collective: the gradient is converted back in the cheapest way; false if
 * there is none, as where an adapter's sum hands its gradient on to both of its parts. */
static bool price_adjoint(const Pricer *pricer, const Triple *triple, Fused *fused)
{
    TensorId gradient = graph_gradient(pricer->graph, triple->tensor);
    if (gradient == GRAPH_NONE)
        return true;
    FormSet held = (FormSet)(1u << reference_adjoint(triple->to));
    Step step = {0};
    if (!price_reach(pricer, gradient, &held,
                     (FormSet)(1u << reference_adjoint(triple->from)), &step))
        return false;
    fused->comm_s += step.comm_s;
    fused->back = step.inner;
    return true;
}

static bool fuse_collective(ReferenceTheory *theory, const Triple *triple, Fused *fused)
{
    const Pricer *pricer = theory->pricer;
    /* Free local conversions are not in the paper: Fig. 9, Sec. 2.5.1 and 4.4. */
    if (!is_made(theory, triple->tensor) || (int)triple->collective >= COLLECTIVES_PRICED)
        return false;
    *fused = (Fused){.triple = *triple, .n_before = 1, .n_after = 1};
    fused->before[0] = reference_property(theory, triple->tensor, triple->from);
    fused->after[0] = reference_property(theory, triple->tensor, triple->to);
    fused->token = reference_uncommunicated(theory, theory->index[triple->tensor]);
    add_collective(pricer, triple->collective, triple->tensor, triple->from, triple->to,
                   &fused->comm_s, &fused->forward);
    return price_adjoint(pricer, triple, fused);
}

static bool fuse(ReferenceTheory *theory, const Triple *triple, Fused *fused)
{
    switch (triple->kind) {
    case TRIPLE_LOAD:
        break;
    case TRIPLE_COMPUTE:
        return triple->op < theory->n_ops && fuse_computation(theory, triple, fused);
    case TRIPLE_COLLECTIVE:
        return fuse_collective(theory, triple, fused);
    }
    return false;
}

/* --- the theory --- */

static bool check_parameters(const Graph *graph, OpId id, GError **error)
{
    const Op *op = graph_get_op(graph, id);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER &&
            graph_accumulation(graph, id, i) != GRAPH_NONE)
            return kilter_fail(
                error, KILTER_ERROR_FAILED,
                "parameter '%s' has several consumers; the reference search takes one",
                graph_tensor(graph, op->in[i])->name);
    return true;
}

static void number_tensors(ReferenceTheory *theory)
{
    const Graph *graph = theory->pricer->graph;
    theory->index = g_new(uint32_t, graph_n_tensors(graph));
    theory->tensor = g_new(TensorId, graph_n_tensors(graph));
    memset(theory->index, 0xff, graph_n_tensors(graph) * sizeof *theory->index);
    for (OpId id = 0; id < theory->n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t o = 0; o < op->n_out; o++) {
            theory->index[op->out[o]] = theory->n_tensors;
            theory->tensor[theory->n_tensors++] = op->out[o];
        }
    }
    theory->goal = reference_property(theory, graph_loss(graph), FORM_REDUCE);
}

static void index_triples(ReferenceTheory *theory)
{
    uint32_t n = theory->pricer->n_classes;
    theory->users = g_new(GArray *, theory->n_tensors * FORM_MAX);
    for (uint32_t p = 0; p < theory->n_tensors * FORM_MAX; p++)
        theory->users[p] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    theory->least = g_new(double, (size_t)theory->n_ops *n);
    for (uint32_t i = 0; i < theory->n_ops * n; i++)
        theory->least[i] = INFINITY;
    array_at (const Fused, fused, t, theory->fused) {
        for (uint32_t i = 0; i < fused->n_before; i++)
            g_array_append_val(theory->users[fused->before[i]], t);
        for (uint32_t h = 0; h < n && fused->triple.kind == TRIPLE_COMPUTE; h++) {
            double *least = &theory->least[fused->triple.op * n + h];
            *least =
                fmin(*least, fused->forward.s[h] + fused->back.s[h] + fused->update.s[h]);
        }
    }
}

ReferenceTheory *reference_theory_new(const Pricer *pricer, GError **error)
{
    const Graph *graph = pricer->graph;
    OpId loss = graph_tensor(graph, graph_loss(graph))->producer;
    for (OpId id = 0; id <= loss; id++)
        if (!check_parameters(graph, id, error))
            return NULL;
    ReferenceTheory *theory = g_new0(ReferenceTheory, 1);
    theory->pricer = pricer;
    theory->n_ops = loss + 1;
    number_tensors(theory);
    theory->fused = g_array_new(FALSE, FALSE, sizeof(Fused));
    g_autoptr(GArray) triples = synth_theory(graph);
    for (guint i = 0; i < triples->len; i++) {
        Fused fused;
        if (fuse(theory, &g_array_index(triples, Triple, i), &fused))
            g_array_append_val(theory->fused, fused);
    }
    index_triples(theory);
    return theory;
}

FREE_DEFINE(reference_theory_free, ReferenceTheory, theory,
            release_items(theory->users, theory->n_tensors *FORM_MAX, g_array_unref),
            free_each(theory->users, theory->least), g_array_unref(theory->fused),
            free_each(theory->index, theory->tensor));

/* --- programs --- */

/* Seconds to bring every contribution to a tensor's gradient to form `sum`, and the sum to the
 * form that its producer needs; `read`: number of consumers by the form in which they read the
 * tensor. */
static double sum_price(const Pricer *pricer, TensorId gradient,
                        const uint32_t read[FORM_MAX], Form made, Form sum)
{
    double price_s = 0;
    for (Form form = 0; form < FORM_MAX; form++) {
        FormSet held = (FormSet)(1u << reference_adjoint(form));
        Step step = {0};
        if (!read[form])
            continue;
        if (!price_reach(pricer, gradient, &held, (FormSet)(1u << sum), &step))
            return INFINITY;
        price_s += read[form] * (step.comm_s + times_max(pricer, &step.inner));
    }
    FormSet held = (FormSet)(1u << sum);
    Step step = {0};
    if (!price_reach(pricer, gradient, &held, (FormSet)(1u << reference_adjoint(made)),
                     &step))
        return INFINITY;
    return price_s + step.comm_s + times_max(pricer, &step.inner);
}

/* The cheapest form in which to sum a tensor's gradient. (In the search each conversion of the
 * tensor has one adjoint, however many consumers read it converted.) */
static Form choose_sum(const Pricer *pricer, TensorId tensor,
                       const uint32_t read[FORM_MAX], Form made)
{
    Form best = reference_adjoint(made);
    TensorId gradient = graph_gradient(pricer->graph, tensor);
    if (gradient == GRAPH_NONE)
        return best;
    double best_s = sum_price(pricer, gradient, read, made, best);
    for (Form form = 0; form < FORM_MAX; form++) {
        double price_s =
            read[form] ? sum_price(pricer, gradient, read, made, reference_adjoint(form))
                       : INFINITY;
        if (price_s < best_s) {
            best_s = price_s;
            best = reference_adjoint(form);
        }
    }
    return best;
}

static void choose_gradients(const ReferenceTheory *theory, Assignment *assignment)
{
    const Graph *graph = theory->pricer->graph;
    uint32_t(*read)[FORM_MAX] = g_malloc0_n(theory->n_tensors, sizeof *read);
    for (OpId id = 0; id < theory->n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++)
            if (is_made(theory, op->in[i]) &&
                graph_contribution(graph, id, i) != GRAPH_NONE)
                read[theory->index[op->in[i]]][assignment->rule[id].form[i]]++;
    }
    for (OpId id = 0; id < theory->n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t o = 0; o < op->n_out; o++)
            assignment->gradient[op->out[o]] =
                choose_sum(theory->pricer, op->out[o], read[theory->index[op->out[o]]],
                           assignment->rule[id].form[op->n_in + o]);
    }
    g_free(read);
}

static void assign_computation(const Graph *graph, const Fused *fused, const Form *rest,
                               Assignment *assignment)
{
    OpId id = fused->triple.op, backward[MAX_BACKWARD];
    const Op *op = graph_get_op(graph, id);
    assignment->rule[id] = fused->triple.rule;
    backward_ops(graph, id, backward);
    for (uint32_t k = 0; k < fused->n_backward; k++)
        assignment->rule[backward[k]] = fused->backward[k];
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER) {
            ParameterPlan plan = theory_plan_of(
                graph, op->in[i], rest ? rest[op->in[i]] : fused->triple.rule.form[i]);
            parameter_plan_apply(graph, op->in[i], &plan, assignment);
        }
}

static bool assign_accumulations(const ReferenceTheory *theory, Assignment *assignment)
{
    const Graph *graph = theory->pricer->graph;
    for (OpId id = 0; id < theory->n_ops; id++)
        for (uint32_t i = 0; i < graph_get_op(graph, id)->n_in; i++) {
            OpId accumulation = graph_accumulation(graph, id, i);
            const Form form = assignment->gradient[graph_get_op(graph, id)->in[i]];
            if (accumulation != GRAPH_NONE &&
                !op_rule_in(graph, accumulation, form, &assignment->rule[accumulation]))
                return false;
        }
    return true;
}

Program *reference_emit(const ReferenceTheory *theory, uint32_t n,
                        const Fused *const *chosen, const Form *rest, GError **error)
{
    g_auto(Assignment) assignment = {0};
    assignment_init(&assignment, theory->pricer->graph);
    for (uint32_t i = 0; i < n; i++)
        if (chosen[i]->triple.kind == TRIPLE_COMPUTE)
            assign_computation(theory->pricer->graph, chosen[i], rest, &assignment);
    choose_gradients(theory, &assignment);
    if (assign_accumulations(theory, &assignment))
        return synth_emit(theory->pricer, &assignment, error);
    kilter_fail(error, KILTER_ERROR_FAILED, "gradients cannot be summed as chosen");
    return NULL;
}
