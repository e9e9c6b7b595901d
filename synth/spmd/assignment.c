/* Assignments, and the plans of parameters. */
#include "synth/spmd/assignment.h"

#include "data/base/free.h"
#include "synth/spmd/pins.h"

#include <string.h>

void assignment_init(Assignment *assignment, const Graph *graph)
{
    assignment->rule = g_new0(Rule, graph_n_ops(graph));
    assignment->deferred = g_new0(bool, graph_n_ops(graph));
    assignment->gradient = g_new0(Form, graph_n_tensors(graph));
    assignment->rest = g_new0(Form, graph_n_tensors(graph));
}

CLEAR_DEFINE(assignment_clear, Assignment, assignment,
             free_each(assignment->rule, assignment->deferred, assignment->gradient,
                       assignment->rest));

OpId parameter_update(const Graph *graph, TensorId parameter)
{
    const TensorId next = graph_updated(graph, parameter);
    return next == GRAPH_NONE ? GRAPH_NONE : graph_tensor(graph, next)->producer;
}

bool op_rule_in(const Graph *graph, OpId op, Form form, Rule *rule)
{
    Form forms[OP_MAX_OPERANDS];
    memset(forms, form, sizeof forms);
    return op_rule_find(graph, op, forms, rule);
}

bool parameter_updates_in(const Graph *graph, TensorId parameter, Form form)
{
    Rule rule;
    const OpId update = parameter_update(graph, parameter);
    return update == GRAPH_NONE || op_rule_in(graph, update, form, &rule);
}

void parameter_update_rule(const Graph *graph, OpId update, Form form, Rule *rule)
{
    bool found = op_rule_in(graph, update, form, rule);
    g_assert(found);
}

double parameter_plan_memory(const Pricer *pricer, TensorId parameter, FormSet kept,
                             Form made, const ParameterPlan *plan)
{
    const Graph *graph = pricer->graph;
    const OpId id = parameter_update(graph, parameter);
    const Op *update = id == GRAPH_NONE ? NULL : graph_get_op(graph, id);
    FormSet reduce = (FormSet)(1u << FORM_REDUCE);
    if (!pricer->charges)
        return 0;
    TensorId gradient = graph_gradient(graph, parameter);
    double charge =
        update ? price_memory(pricer, SYNTH_POINT_BACKWARD, gradient, made) : 0;
    for (SynthPoint point = 0; point < SYNTH_POINTS; point++) {
        charge += price_memory(pricer, point, parameter, plan->rest);
        for (uint32_t i = 2; update && i < update->n_in; i++)
            charge += price_memory(pricer, point, update->in[i], plan->update);
    }
    if (update && graph_get_op(graph, graph_tensor(graph, gradient)->producer)->of >
                      pricer->fullest)
        return charge + price_memory(pricer, SYNTH_POINT_FORWARD, gradient, made);
    if (plan->rest == FORM_IDENTITY) /* slices of a replica are views */
        kept &= reduce;
    for (Form form = 0; form < FORM_MAX; form++)
        if ((kept >> form & 1u) && form != plan->rest)
            charge += price_memory(pricer, SYNTH_POINT_FORWARD, parameter, form);
    return charge;
}

/* Whether the pins allow the forms in which a parameter and its optimizer states rest, and the
 * update's form. */
static bool plan_allowed(const Pricer *pricer, TensorId parameter,
                         const ParameterPlan *plan)
{
    OpId id = parameter_update(pricer->graph, parameter);
    Form forms[OP_MAX_OPERANDS];
    memset(forms, plan->update, sizeof forms);
    bool allowed = pins_made(pricer->pins, parameter) >> plan->rest & 1u;
    if (id == GRAPH_NONE)
        return allowed;
    const Op *update = graph_get_op(pricer->graph, id);
    allowed &= pins_allow(pricer->pins, pricer->graph, id, forms);
    for (uint32_t i = 2; i < update->n_in; i++)
        allowed &= pins_made(pricer->pins, update->in[i]) >> plan->update & 1u;
    return allowed;
}

static const KnownStep *know_step(const Pricer *pricer, TensorId tensor, Form from,
                                  Form to, KnownStep *step)
{
    KILTER_ASSERT(from < FORM_MAX && to < FORM_MAX);
    FormSet held = (FormSet)(1u << from);
    if (!step->known)
        step->can = price_reach(pricer, tensor, &held, (FormSet)(1u << to), &step->step);
    step->known = true;
    return step;
}

static const Times *know_update(const Pricer *pricer, TensorId parameter, Form form,
                                ParameterPrices *prices)
{
    OpId update = parameter_update(pricer->graph, parameter);
    Rule rule;
    if (!prices->known[form]) {
        parameter_update_rule(pricer->graph, update, form, &rule);
        prices->update[form] = price_rule(pricer, update, &rule);
    }
    prices->known[form] = true;
    return &prices->update[form];
}

/* Prices plan->rest and plan->update; false if pins forbid it or some form cannot be reached. */
static bool plan_price(const Pricer *pricer, TensorId parameter, ParameterPrices *prices,
                       FormSet read, FormSet kept, Form made, ParameterPlan *plan)
{
    const Graph *graph = pricer->graph;
    if (pricer->pins && !plan_allowed(pricer, parameter, plan))
        return false;
    FormSet held = (FormSet)(1u << plan->rest);
    Step initial = {0};
    if (parameter_update(graph, parameter) == GRAPH_NONE) {
        if (plan->rest != plan->update ||
            !price_reach(pricer, parameter, &held, read, &initial))
            return false;
        plan->initial = initial.inner;
        plan->charge_s = parameter_plan_memory(pricer, parameter, kept, made, plan);
        plan->comm_s = initial.comm_s + plan->charge_s;
        return true;
    }
    const KnownStep *gradient =
        know_step(pricer, graph_gradient(graph, parameter), made, plan->update,
                  &prices->gradient[made][plan->update]);
    const KnownStep *next =
        know_step(pricer, graph_updated(graph, parameter), plan->update, plan->rest,
                  &prices->next[plan->update][plan->rest]);
    if (!gradient->can || !next->can ||
        !price_reach(pricer, parameter, &held, read | (FormSet)(1u << plan->update),
                     &initial))
        return false;
    plan->work = *know_update(pricer, parameter, plan->update, prices);
    plan->initial = initial.inner;
    times_add(pricer, &plan->work, &gradient->step.inner);
    plan->tail = next->step.inner;
    plan->charge_s = parameter_plan_memory(pricer, parameter, kept, made, plan);
    plan->comm_s =
        initial.comm_s + gradient->step.comm_s + next->step.comm_s + plan->charge_s;
    plan->closes = gradient->step.closes || next->step.closes;
    return true;
}

static bool plan_dominates(const Pricer *pricer, const ParameterPlan *a,
                           const ParameterPlan *b)
{
    double more = pricer->rationed ? b->charge_s - a->charge_s : 0;
    return (b->closes || !a->closes) && more >= 0 &&
           a->comm_s + more + times_excess(pricer, &a->initial, &b->initial) +
                   times_excess(pricer, &a->work, &b->work) +
                   times_excess(pricer, &a->tail, &b->tail) <=
               b->comm_s;
}

GArray *parameter_plans(const Pricer *pricer, TensorId parameter, ParameterPrices *prices,
                        FormSet read, FormSet kept, Form made)
{
    g_assert(graph_tensor(pricer->graph, parameter)->role == ROLE_PARAMETER &&
             made < FORM_MAX);
    GArray *plans = g_array_new(FALSE, FALSE, sizeof(ParameterPlan));
    for (Form update = 0; update < FORM_MAX; update++) {
        if (update == FORM_REDUCE || !form_can_hold(pricer->graph, parameter, update) ||
            !parameter_updates_in(pricer->graph, parameter, update))
            continue;
        for (uint32_t replicated = 0; replicated < (update == FORM_IDENTITY ? 1 : 2);
             replicated++) {
            ParameterPlan plan = {.rest = replicated ? FORM_IDENTITY : update,
                                  .update = update};
            bool useful = plan_price(pricer, parameter, prices, read, kept, made, &plan);
            for (uint32_t i = 0; useful && i < plans->len; i++)
                useful = !plan_dominates(pricer, &g_array_index(plans, ParameterPlan, i),
                                         &plan);
            for (uint32_t i = plans->len; useful && i-- > 0;)
                if (plan_dominates(pricer, &plan,
                                   &g_array_index(plans, ParameterPlan, i)))
                    g_array_remove_index(plans, i);
            if (useful)
                g_array_append_val(plans, plan);
        }
    }
    return plans;
}

void parameter_plan_apply(const Graph *graph, TensorId parameter,
                          const ParameterPlan *plan, Assignment *assignment)
{
    g_assert(plan->rest < FORM_MAX && plan->update < FORM_MAX);
    OpId update = parameter_update(graph, parameter);
    assignment->rest[parameter] = plan->rest;
    if (update == GRAPH_NONE)
        return;
    const Op *op = graph_get_op(graph, update);
    parameter_update_rule(graph, update, plan->update, &assignment->rule[update]);
    for (uint32_t i = 2; i < op->n_in;
         i++) /* optimizer states live where the update runs */
        assignment->rest[op->in[i]] = plan->update;
}

double synth_time(const Pricer *pricer, const Program *program, const double *ratio,
                  uint64_t bucket_bytes)
{
    g_assert(program->n > 0);
    g_autoptr(SimLinear) linear = sim_linear(program, pricer->graph, pricer->view,
                                             pricer->segments.of, bucket_bytes);
    g_autofree double *share = sim_shares(linear, pricer->view, ratio);
    return sim_linear_time(linear, pricer->view, share, NULL, NULL);
}

CLEAR_DEFINE(synth_result_clear, SynthResult, result,
             let_go(result->program, program_free));
