#include "synth/transition.h"

#include <math.h>
#include <string.h>

static FormSet bit(Form form)
{
    return (FormSet)(1u << form);
}

/* Prices of reaching any set of forms of one tensor from the forms it is held in. */
enum { FORM_SETS = 1 << FORM_MAX };
typedef struct {
    TensorId tensor;
    FormSet held;
    uint8_t known[FORM_SETS]; /* 0 unknown, 1 reachable, 2 not */
    Step step[FORM_SETS];
    FormSet after[FORM_SETS]; /* forms held then */
} Reach;

static void reach_reset(Reach *reach, TensorId tensor, FormSet held)
{
    reach->tensor = tensor;
    reach->held = held;
    memset(reach->known, 0, sizeof reach->known);
}

static const Step *reach_price(Reach *reach, const Pricer *pricer, FormSet wanted,
                               FormSet *after)
{
    if (!reach->known[wanted]) {
        reach->step[wanted] = (Step){0};
        reach->after[wanted] = reach->held;
        bool can = price_reach(pricer, reach->tensor, &reach->after[wanted], wanted,
                               &reach->step[wanted], NULL, NULL);
        reach->known[wanted] = can ? 1 : 2;
    }
    if (after)
        *after = reach->after[wanted];
    return reach->known[wanted] == 1 ? &reach->step[wanted] : NULL;
}

/* What is fixed while the choices of one op are enumerated. */
typedef struct {
    const Pricer *pricer;
    OpView *view;
    const Held *in;
    const Op *op;
    GArray *found;
    Transition t;
    Reach reach[SLOT_PARAMETER]; /* outputs, their gradients, saved inputs */
    Reach after[TRANSITION_IN];  /* contributions */
} Enumeration;

/* Forms that the chosen rules read, by slot, and make, by forward input. */
typedef struct {
    FormSet wanted[SLOTS + 1];
    Form made[OP_MAX_IN];
} Choice;

/* --- domination --- */

/* Upper bound of how much longer an iteration with `a` can be than with `b`, which has the same effect. A step that
 * closes a stage never shortens an iteration, so `a` may close only where `b` does. */
static bool dominates(const Pricer *pricer, const Transition *a, const Transition *b)
{
    if ((a->forward.closes && !b->forward.closes) ||
        (a->before.closes && !b->before.closes) || (a->after.closes && !b->after.closes))
        return false;
    const Times *pa[] = {&a->forward.inner, &a->forward_work, &a->before.inner,
                         &a->backward_work, &a->after.inner,  &a->accumulation,
                         &a->final_work};
    const Times *pb[] = {&b->forward.inner, &b->forward_work, &b->before.inner,
                         &b->backward_work, &b->after.inner,  &b->accumulation,
                         &b->final_work};
    double longer = a->forward.comm_s + a->before.comm_s + a->after.comm_s + a->final_s -
                    (b->forward.comm_s + b->before.comm_s + b->after.comm_s + b->final_s);
    for (uint32_t i = 0; i < G_N_ELEMENTS(pa); i++)
        longer += fmax(0, times_max_difference(pricer, pa[i], pb[i]));
    return longer <= 0;
}

static bool same_effect(const OpView *view, const Op *op, const Transition *a,
                        const Transition *b)
{
    return memcmp(a->out, b->out, op->n_out * sizeof *a->out) == 0 &&
           memcmp(a->in_after, b->in_after, view->n_in * sizeof *a->in_after) == 0;
}

static void add_transition(Enumeration *e)
{
    for (uint32_t i = 0; i < e->found->len;) {
        const Transition *other = &g_array_index(e->found, Transition, i);
        bool same = same_effect(e->view, e->op, other, &e->t);
        if (same && dominates(e->pricer, other, &e->t))
            return;
        if (same && dominates(e->pricer, &e->t, other))
            g_array_remove_index_fast(e->found, i);
        else
            i++;
    }
    g_array_append_val(e->found, e->t);
}

/* --- pricing one complete choice --- */

static void step_add(const Pricer *pricer, Step *sum, const Step *step)
{
    sum->closes |= step->closes;
    sum->comm_s += step->comm_s;
    times_add(pricer, &sum->inner, &step->inner);
}

/* dy, saved inputs and saved outputs: one step. held_dy: forms of each output's gradient afterwards. */
static bool price_before(Enumeration *e, const Choice *choice,
                         FormSet held_dy[TRANSITION_OUT])
{
    e->t.before = (Step){0};
    for (uint32_t slot = 0; slot < SLOT_PARAMETER; slot++) {
        FormSet *after =
            slot >= SLOT_DY && slot < SLOT_IN ? &held_dy[slot - SLOT_DY] : NULL;
        if (!choice->wanted[slot] && !after)
            continue;
        const Step *step =
            reach_price(&e->reach[slot], e->pricer, choice->wanted[slot], after);
        if (!step)
            return false;
        step_add(e->pricer, &e->t.before, step);
    }
    return true;
}

/* Contributions to activations, converted to the form that their sum is kept in, and added. */
static bool price_after(Enumeration *e, const Choice *choice,
                        const FormSet held_dy[TRANSITION_OUT])
{
    const OpView *view = e->view;
    e->t.after = (Step){0};
    e->t.accumulation = (Times){{0}};
    for (uint32_t i = 0; i < view->n_in; i++) {
        Form sum = e->in[i].gradient;
        if (view->contribution[i] == GRAPH_NONE)
            continue;
        if (!(view->accumulates[i] >> sum & 1u))
            return false;
        bool shared = i == 1 && view->contribution[0] == view->contribution[1] &&
                      e->in[0].gradient == sum;
        FormSet held = view->alias[i] >= 0 ? held_dy[view->alias[i]]
                                           : bit(choice->made[view->input[i]]);
        if (!(held >> sum & 1u) && !shared) { /* both inputs of a residual add share dy */
            if (e->after[i].held != held)
                reach_reset(&e->after[i], view->contribution[i], held);
            const Step *step = reach_price(&e->after[i], e->pricer, bit(sum), NULL);
            if (!step)
                return false;
            step_add(e->pricer, &e->t.after, step);
        }
        times_add(e->pricer, &e->t.accumulation, &view->accumulation_work[i][sum]);
    }
    return true;
}

/* The plan of the op's `p`-th parameter for what the choice reads and makes of it; NULL if there is none. */
static const ParameterPlan *plan_of(const Pricer *pricer, OpView *view, uint32_t p,
                                    const Choice *choice)
{
    uint32_t input = view->parameter[p];
    FormSet needed = choice->wanted[SLOT_PARAMETER + input];
    uint32_t key = 1 + needed * FORM_MAX + choice->made[input];
    ParameterPlan *plan;
    if (!g_hash_table_lookup_extended(view->plans[p], GUINT_TO_POINTER(key), NULL,
                                      (gpointer *)&plan)) {
        plan = g_new0(ParameterPlan, 1);
        if (!parameter_plan(pricer, graph_get_op(pricer->graph, view->op)->in[input],
                            needed, choice->made[input], plan))
            g_clear_pointer(&plan, g_free);
        g_hash_table_insert(view->plans[p], GUINT_TO_POINTER(key), plan);
    }
    return plan;
}

static bool price_parameters(Enumeration *e, const Choice *choice)
{
    e->t.final_s = 0;
    e->t.final_work = (Times){{0}};
    for (uint32_t p = 0; p < e->view->n_parameters; p++) {
        const ParameterPlan *plan = plan_of(e->pricer, e->view, p, choice);
        if (!plan)
            return false;
        e->t.final_s += plan->initial.comm_s + plan->gradient.comm_s + plan->final.comm_s;
        const Times *parts[] = {&plan->initial.inner, &plan->gradient.inner,
                                &plan->final.inner, &plan->work};
        for (uint32_t i = 0; i < G_N_ELEMENTS(parts); i++)
            times_add(e->pricer, &e->t.final_work, parts[i]);
    }
    return true;
}

/* --- enumeration --- */

/* Adds what one op reads and makes under a rule. */
static void choose(Choice *choice, const OpReads *reads, const Rule *rule, uint32_t n_out,
                   bool backward)
{
    for (uint32_t i = 0; i < reads->n_in; i++)
        choice->wanted[reads->slot[i]] |= bit(rule->form[i]);
    for (uint32_t o = 0; backward && o < n_out; o++)
        choice->made[reads->makes[o]] = rule->form[reads->n_in + o];
}

static void choose_backward(Enumeration *e, uint32_t k, const Choice *choice)
{
    const OpView *view = e->view;
    if (k == view->n_backward) {
        FormSet held_dy[TRANSITION_OUT];
        if (!price_before(e, choice, held_dy) || !price_after(e, choice, held_dy) ||
            !price_parameters(e, choice))
            return;
        e->t.backward_work = (Times){{0}};
        for (uint32_t b = 0; b < view->n_backward; b++)
            times_add(e->pricer, &e->t.backward_work,
                      &view->backward[b].rule[e->t.backward_rule[b]].work);
        add_transition(e);
        return;
    }
    const OpReads *reads = &view->backward[k];
    uint32_t n_out = graph_get_op(e->pricer->graph, reads->op)->n_out;
    for (uint32_t r = 0; r < reads->n_rules; r++) {
        Choice next = *choice;
        choose(&next, reads, &reads->rule[r].rule, n_out, true);
        e->t.backward_rule[k] = (uint8_t)r;
        choose_backward(e, k + 1, &next);
    }
}

/* Forms in which the gradient of output `o` may arrive; only Identity stands for "none" and for the loss's seed. */
static void choose_gradients(Enumeration *e, uint32_t o, const Choice *choice)
{
    if (o == e->op->n_out) {
        choose_backward(e, 0, choice);
        return;
    }
    TensorId dy = graph_gradient(e->pricer->graph, e->op->out[o]);
    bool seed =
        dy == GRAPH_NONE || graph_tensor(e->pricer->graph, dy)->role == ROLE_INPUT;
    FormSet forms = seed ? bit(FORM_IDENTITY) : price_forms(e->pricer->graph, dy);
    for (Form form = 0; form < FORM_MAX; form++)
        if (forms >> form & 1u) {
            e->t.out[o].gradient = form;
            reach_reset(&e->reach[SLOT_DY + o], dy, bit(form));
            choose_gradients(e, o + 1, choice);
        }
}

/* A conversion replaces the form it starts from, but a free local one leaves the replica or shard in place. */
static bool price_forward(Enumeration *e, const Rule *rule)
{
    e->t.forward = (Step){0};
    for (uint32_t i = 0; i < e->view->n_in; i++) {
        Form have = e->in[i].form, need = rule->form[e->view->input[i]];
        FormSet held = bit(have);
        Step step = {0};
        if (!price_reach(e->pricer, e->view->tensor[i], &held, bit(need), &step, NULL,
                         NULL))
            return false;
        e->t.in_after[i] = step.closes ? need : have;
        reach_reset(&e->reach[SLOT_IN + i], e->view->tensor[i], held);
        step_add(e->pricer, &e->t.forward, &step);
    }
    return true;
}

static Choice forward_choice(const OpView *view, const Rule *rule)
{
    Choice choice = {0};
    choose(&choice, &view->forward, rule, 0, false);
    memset(choice.wanted, 0,
           SLOT_PARAMETER); /* the forward's own step brings activations */
    return choice;
}

GArray *transitions(const Pricer *pricer, OpView *view, const Held in[TRANSITION_IN])
{
    g_autofree Enumeration *e = g_new0(Enumeration, 1);
    e->pricer = pricer;
    e->view = view;
    e->in = in;
    e->op = graph_get_op(pricer->graph, view->op);
    e->found = g_array_new(FALSE, FALSE, sizeof(Transition));
    for (uint32_t r = 0; r < view->forward.n_rules; r++) {
        const PricedRule *priced = &view->forward.rule[r];
        e->t.forward_rule = (uint8_t)r;
        if (!price_forward(e, &priced->rule))
            continue;
        e->t.forward_work = priced->work;
        for (uint32_t o = 0; o < e->op->n_out; o++) {
            e->t.out[o].form = priced->rule.form[e->op->n_in + o];
            reach_reset(&e->reach[SLOT_OUT + o], e->op->out[o], bit(e->t.out[o].form));
        }
        Choice choice = forward_choice(view, &priced->rule);
        choose_gradients(e, 0, &choice);
    }
    return e->found;
}

void transition_apply(const Pricer *pricer, OpView *view, const Held in[TRANSITION_IN],
                      const Transition *transition, Assignment *assignment)
{
    const Graph *graph = pricer->graph;
    const Op *op = graph_get_op(graph, view->op);
    const Rule *rule = &view->forward.rule[transition->forward_rule].rule;
    Choice choice = forward_choice(view, rule);
    assignment->rule[view->op] = *rule;
    for (uint32_t k = 0; k < view->n_backward; k++) {
        const OpReads *reads = &view->backward[k];
        rule = &reads->rule[transition->backward_rule[k]].rule;
        choose(&choice, reads, rule, graph_get_op(graph, reads->op)->n_out, true);
        assignment->rule[reads->op] = *rule;
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        assignment->gradient[op->out[o]] = transition->out[o].gradient;
    for (uint32_t p = 0; p < view->n_parameters; p++)
        parameter_plan_apply(graph, op->in[view->parameter[p]],
                             plan_of(pricer, view, p, &choice), assignment);
    for (uint32_t i = 0; i < view->n_in; i++)
        if (view->accumulation[i] != GRAPH_NONE) {
            Form forms[OP_MAX_OPERANDS];
            memset(forms, in[i].gradient, sizeof forms);
            op_rule_find(graph, view->accumulation[i], forms,
                         &assignment->rule[view->accumulation[i]]);
        }
}
