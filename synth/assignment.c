#include "synth/assignment.h"

#include <math.h>
#include <string.h>

void assignment_init(Assignment *assignment, const Graph *graph)
{
    assignment->rule = g_new0(Rule, graph_n_ops(graph));
    assignment->gradient = g_new0(Form, graph_n_tensors(graph));
    assignment->rest = g_new0(Form, graph_n_tensors(graph));
}

void assignment_clear(Assignment *assignment)
{
    g_free(assignment->rule);
    g_free(assignment->gradient);
    g_free(assignment->rest);
}

static bool is_accumulation(const Graph *graph, OpId op, OpId candidate)
{
    for (uint32_t i = 0; i < graph_get_op(graph, op)->n_in; i++)
        if (graph_accumulation(graph, op, i) == candidate)
            return true;
    return false;
}

uint32_t backward_ops(const Graph *graph, OpId op, OpId backward[MAX_BACKWARD])
{
    uint32_t n = 0;
    const Op *forward = graph_get_op(graph, op);
    for (uint32_t i = 0; i < forward->n_in; i++) {
        TensorId contribution = graph_contribution(graph, op, i);
        if (contribution == GRAPH_NONE)
            continue;
        OpId producer = graph_tensor(graph, contribution)->producer;
        bool ours = producer != GRAPH_NONE && graph_get_op(graph, producer)->of == op &&
                    !is_accumulation(graph, op, producer);
        for (uint32_t k = 0; k < n; k++)
            ours &= backward[k] != producer;
        if (ours) {
            g_assert(n < MAX_BACKWARD);
            backward[n++] = producer;
        }
    }
    return n;
}

/* The update op of a parameter. */
static OpId update_op(const Graph *graph, TensorId parameter)
{
    return graph_tensor(graph, graph_updated(graph, parameter))->producer;
}

static void update_rule(const Graph *graph, OpId update, Form form, Rule *rule)
{
    const Op *op = graph_get_op(graph, update);
    Form forms[OP_MAX_OPERANDS];
    memset(forms, form, sizeof forms);
    g_assert_true(op_rule_find(graph, update, forms, rule));
    (void)op;
}

bool parameter_plan_price(const Pricer *pricer, TensorId parameter, FormSet needed,
                          Form made, ParameterPlan *plan)
{
    const Graph *graph = pricer->graph;
    OpId update = update_op(graph, parameter);
    FormSet wanted = (FormSet)(1u << plan->update), rest = (FormSet)(1u << plan->rest);
    FormSet held = rest;
    plan->initial = plan->gradient = plan->final = (Step){0};
    if (!price_reach(pricer, parameter, &held, needed | wanted, &plan->initial, NULL,
                     NULL))
        return false;
    FormSet gradient = (FormSet)(1u << made);
    if (!price_reach(pricer, graph_gradient(graph, parameter), &gradient, wanted,
                     &plan->gradient, NULL, NULL))
        return false;
    FormSet next = wanted;
    if (!price_reach(pricer, graph_updated(graph, parameter), &next, rest, &plan->final,
                     NULL, NULL))
        return false;
    Rule rule;
    update_rule(graph, update, plan->update, &rule);
    plan->work = price_rule(pricer, update, &rule);
    return true;
}

static double plan_total(const Pricer *pricer, const ParameterPlan *plan)
{
    Times inner = plan->work;
    times_add(pricer, &inner, &plan->initial.inner);
    times_add(pricer, &inner, &plan->gradient.inner);
    times_add(pricer, &inner, &plan->final.inner);
    return plan->initial.comm_s + plan->gradient.comm_s + plan->final.comm_s +
           times_max(pricer, &inner);
}

bool parameter_plan(const Pricer *pricer, TensorId parameter, FormSet needed, Form made,
                    ParameterPlan *plan)
{
    double best = INFINITY;
    for (Form update = 0; update < FORM_MAX; update++) {
        if (update == FORM_REDUCE || !price_can_hold(pricer->graph, parameter, update))
            continue;
        Form rests[2] = {update, FORM_IDENTITY};
        for (uint32_t r = 0; r < (update == FORM_IDENTITY ? 1 : 2); r++) {
            ParameterPlan candidate = {.rest = rests[r], .update = update};
            if (!parameter_plan_price(pricer, parameter, needed, made, &candidate))
                continue;
            double total = plan_total(pricer, &candidate);
            if (total < best) {
                best = total;
                *plan = candidate;
            }
        }
    }
    return best < INFINITY;
}

void parameter_plan_apply(const Graph *graph, TensorId parameter,
                          const ParameterPlan *plan, Assignment *assignment)
{
    OpId update = update_op(graph, parameter);
    const Op *op = graph_get_op(graph, update);
    update_rule(graph, update, plan->update, &assignment->rule[update]);
    assignment->rest[parameter] = plan->rest;
    for (uint32_t i = 2; i < op->n_in;
         i++) /* optimizer states live where the update runs */
        assignment->rest[op->in[i]] = plan->update;
}

double synth_time(const Pricer *pricer, const Program *program, const double *ratio,
                  uint64_t bucket_bytes)
{
    g_autoptr(SimLinear) linear =
        sim_linear(program, pricer->graph, pricer->view, NULL, bucket_bytes);
    g_autofree double *share = sim_shares(linear, pricer->view, ratio);
    return sim_linear_time(linear, pricer->view, share, NULL, NULL);
}

void synth_result_clear(SynthResult *result)
{
    program_free(result->program);
    result->program = NULL;
}
