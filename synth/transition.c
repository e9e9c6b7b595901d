#include "synth/transition.h"

#include <math.h>
#include <string.h>

static FormSet bit(Form form)
{
    return (FormSet)(1u << form);
}

/* A half: rules and parameter plans, with everything that does not depend on states. */
typedef struct {
    Form reads
        [TRANSITION_IN]; /* forms in which the forward op reads its activation inputs */
    FormSet saved[TRANSITION_IN]; /* forms in which backward ops read them */
    FormSet wanted_dy
        [TRANSITION_OUT]; /* forms in which backward ops read the outputs' gradients */
    Form makes[TRANSITION_IN]; /* forms in which the contributions are made */
} Needs;

/* A body is a half with the outputs' gradients priced; `dy`: forms in which they are then held (for contributions that
 * are dy itself). Halves leave `out[].gradient` and `dy` 0. */
typedef struct {
    Needs needs;
    Held out[TRANSITION_OUT];
    FormSet dy[TRANSITION_OUT];
    uint8_t forward_rule, backward_rule[MAX_BACKWARD], plan[OP_MAX_IN];
    Cost cost;
} Body;

struct Choices {
    const Pricer *pricer;
    OpView *view;
    const Op *op;
    GArray *bodies;       /* Body */
    GHashTable *by_input; /* packed input states + 1 -> GArray of Transition */
};

/* --- costs --- */

/* Upper bound of how much longer an iteration with `a` can be than with `b`. A step that closes a stage never shortens an
 * iteration, so `a` may close only where `b` does. */
static bool dominates(const Pricer *pricer, const Cost *a, const Cost *b)
{
    return !(a->closes & ~b->closes) &&
           a->comm_s + times_excess(pricer, &a->initial, &b->initial) +
                   times_excess(pricer, &a->forward, &b->forward) +
                   times_excess(pricer, &a->late, &b->late) +
                   times_excess(pricer, &a->early, &b->early) +
                   times_excess(pricer, &a->update, &b->update) +
                   times_excess(pricer, &a->tail, &b->tail) <=
               b->comm_s;
}

/* Adds a step to the portion of computation that it is merged with. */
static void add_step(const Pricer *pricer, Cost *cost, const Step *step, uint8_t closes,
                     Times *portion)
{
    cost->comm_s += step->comm_s;
    cost->closes |= step->closes ? closes : 0;
    times_add(pricer, portion, &step->inner);
}

static double cost_relaxed(const Cost *cost, uint32_t h)
{
    return cost->comm_s + cost->initial.s[h] + cost->forward.s[h] + cost->late.s[h] +
           cost->early.s[h] + cost->update.s[h] + cost->tail.s[h];
}

/* --- halves --- */

typedef struct {
    FormSet wanted[SLOTS]; /* forms that the chosen rules read, by slot */
    Form made[OP_MAX_IN];  /* forms of contributions, by forward input */
} Choice;

static void choose(Choice *choice, const OpReads *reads, const Rule *rule)
{
    for (uint32_t i = 0; i < reads->n_in; i++)
        choice->wanted[reads->slot[i]] |= bit(rule->form[i]);
}

static void choose_made(Choice *choice, const OpReads *reads, const Rule *rule)
{
    for (uint32_t o = 0; o < reads->n_out; o++)
        choice->made[reads->makes[o]] = rule->form[reads->n_in + o];
}

static bool same_half(const Body *a, const Body *b)
{
    return memcmp(&a->needs, &b->needs, sizeof a->needs) == 0 &&
           memcmp(a->out, b->out, sizeof a->out) == 0 &&
           memcmp(a->dy, b->dy, sizeof a->dy) == 0;
}

/* Adds a half or body unless one of the same needs and effects dominates it. */
static void add_body(const Pricer *pricer, GArray *bodies, const Body *body)
{
    Body *all = (Body *)(void *)bodies->data;
    for (uint32_t i = 0; i < bodies->len; i++)
        if (same_half(&all[i], body)) {
            if (dominates(pricer, &all[i].cost, &body->cost))
                return;
            if (dominates(pricer, &body->cost, &all[i].cost)) {
                all[i] = *body;
                return;
            }
        }
    g_array_append_vals(bodies, body, 1);
}

/* Enumerates the plans of the remaining parameters. */
static void choose_plans(Choices *c, uint32_t p, const Choice *choice, const Body *body,
                         GArray *halves)
{
    if (p >= c->view->n_parameters || p >= OP_MAX_IN) {
        add_body(c->pricer, halves, body);
        return;
    }
    uint32_t input = c->view->parameter[p];
    const GArray *plans =
        op_view_plans(c->pricer, c->view, p, choice->wanted[SLOT_PARAMETER + input],
                      choice->made[input]);
    for (uint32_t k = 0; k < plans->len; k++) {
        const ParameterPlan *plan = &g_array_index(plans, ParameterPlan, k);
        Body next = *body;
        next.plan[p] = (uint8_t)k;
        next.cost.comm_s += plan->comm_s;
        next.cost.closes |= plan->closes ? CLOSES_FINAL : 0;
        times_add(c->pricer, &next.cost.initial, &plan->initial);
        times_add(c->pricer, &next.cost.update, &plan->work);
        times_add(c->pricer, &next.cost.tail, &plan->tail);
        choose_plans(c, p + 1, choice, &next, halves);
    }
}

/* Charge for one activation that is held in `held` when the backward reads it in `wanted`: slices of a replica are kept in
 * its place, other conversions happen in the backward. */
static double saved_charge(const Pricer *pricer, TensorId tensor, Form held,
                           FormSet wanted)
{
    double charge = 0;
    for (Form form = 0; form < FORM_MAX; form++)
        if (wanted >> form & 1u)
            charge += price_memory(pricer, tensor, held == FORM_IDENTITY ? form : held);
    return charge;
}

static double saved_memory(const Choices *c, const Choice *choice, const Body *body)
{
    double charge = 0;
    for (uint32_t o = 0; o < c->op->n_out; o++)
        charge += saved_charge(c->pricer, c->op->out[o], body->out[o].form,
                               choice->wanted[SLOT_OUT + o]);
    for (uint32_t i = 0; i < c->view->n_in; i++)
        charge += saved_charge(c->pricer, c->view->tensor[i], body->needs.reads[i],
                               choice->wanted[SLOT_IN + i]);
    return charge;
}

/* Saved outputs are converted in the step before the backward ops. */
static bool finish_half(Choices *c, const Choice *choice, Body *body)
{
    body->cost.comm_s += saved_memory(c, choice, body);
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        FormSet held = bit(body->out[o].form);
        Step step = {0};
        if (!price_reach(c->pricer, c->op->out[o], &held, choice->wanted[SLOT_OUT + o],
                         &step, NULL, NULL))
            return false;
        add_step(c->pricer, &body->cost, &step, CLOSES_EARLY, &body->cost.early);
        body->needs.wanted_dy[o] = choice->wanted[SLOT_DY + o];
    }
    for (uint32_t i = 0; i < c->view->n_in; i++) {
        body->needs.saved[i] = choice->wanted[SLOT_IN + i];
        body->needs.makes[i] =
            c->view->contribution[i] != GRAPH_NONE && c->view->alias[i] < 0
                ? choice->made[c->view->input[i]]
                : 0;
    }
    return true;
}

static void choose_backward(Choices *c, uint32_t k, const Choice *choice,
                            const Body *body, GArray *halves)
{
    if (k >= c->view->n_backward || k >= MAX_BACKWARD) {
        Body finished = *body;
        if (finish_half(c, choice, &finished))
            choose_plans(c, 0, choice, &finished, halves);
        return;
    }
    const OpReads *reads = &c->view->backward[k];
    for (uint32_t r = 0; r < reads->n_rules; r++) {
        Choice next = *choice;
        choose(&next, reads, &reads->rule[r].rule);
        choose_made(&next, reads, &reads->rule[r].rule);
        Body extended = *body;
        extended.backward_rule[k] = (uint8_t)r;
        times_add(c->pricer, &extended.cost.early, &reads->rule[r].work);
        choose_backward(c, k + 1, &next, &extended, halves);
    }
}

/* The forward's own reads of activations are priced with the states; only parameters count here. */
static Choice forward_choice(const OpView *view, const Rule *rule)
{
    Choice choice = {0};
    choose(&choice, &view->forward, rule);
    memset(choice.wanted, 0, SLOT_PARAMETER * sizeof *choice.wanted);
    return choice;
}

static GArray *enumerate_halves(Choices *c)
{
    GArray *halves = g_array_new(FALSE, FALSE, sizeof(Body));
    for (uint32_t r = 0; r < c->view->forward.n_rules; r++) {
        const PricedRule *priced = &c->view->forward.rule[r];
        Body body = {.forward_rule = (uint8_t)r, .cost.forward = priced->work};
        for (uint32_t i = 0; i < c->view->n_in; i++)
            body.needs.reads[i] = priced->rule.form[c->view->input[i]];
        for (uint32_t o = 0; o < c->op->n_out; o++)
            body.out[o].form = priced->rule.form[c->op->n_in + o];
        Choice choice = forward_choice(c->view, &priced->rule);
        choose_backward(c, 0, &choice, &body, halves);
    }
    return halves;
}

/* --- bodies --- */

/* Forms in which the gradient of an output may arrive; Identity stands for "none" and for the loss's seed. */
static FormSet arrivals(const Choices *c, uint32_t o)
{
    TensorId dy = graph_gradient(c->pricer->graph, c->op->out[o]);
    bool seed =
        dy == GRAPH_NONE || graph_tensor(c->pricer->graph, dy)->role == ROLE_INPUT;
    return seed ? bit(FORM_IDENTITY) : price_forms(c->pricer->graph, dy);
}

static bool is_alias(const OpView *view, uint32_t o)
{
    bool alias = false;
    for (uint32_t i = 0; i < view->n_in; i++)
        alias |= view->contribution[i] != GRAPH_NONE && view->alias[i] == (int)o;
    return alias;
}

static void choose_arrivals(Choices *c, uint32_t o, const Body *half)
{
    if (o >= c->op->n_out || o >= TRANSITION_OUT) {
        add_body(c->pricer, c->bodies, half);
        return;
    }
    TensorId dy = graph_gradient(c->pricer->graph, c->op->out[o]);
    FormSet forms = arrivals(c, o);
    for (Form form = 0; form < FORM_MAX; form++) {
        if (!(forms >> form & 1u))
            continue;
        Body next = *half;
        FormSet held = bit(form);
        Step step = {0};
        next.out[o].gradient = form;
        if (half->needs.wanted_dy[o] &&
            !price_reach(c->pricer, dy, &held, half->needs.wanted_dy[o], &step, NULL,
                         NULL))
            continue;
        next.needs.wanted_dy[o] = 0; /* priced: no longer told apart by it */
        next.dy[o] = is_alias(c->view, o) ? held : 0;
        add_step(c->pricer, &next.cost, &step, CLOSES_EARLY, &next.cost.early);
        choose_arrivals(c, o + 1, &next);
    }
}

Choices *choices_new(const Pricer *pricer, OpView *view)
{
    Choices *c = g_new0(Choices, 1);
    c->pricer = pricer;
    c->view = view;
    c->op = graph_get_op(pricer->graph, view->op);
    g_assert(c->op->n_out <= TRANSITION_OUT);
    c->bodies = g_array_new(FALSE, FALSE, sizeof(Body));
    c->by_input = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_array_unref);
    g_autoptr(GArray) halves = enumerate_halves(c);
    for (uint32_t i = 0; i < halves->len; i++)
        choose_arrivals(c, 0, &g_array_index(halves, Body, i));
    return c;
}

void choices_free(Choices *choices)
{
    g_array_free(choices->bodies, TRUE);
    g_hash_table_destroy(choices->by_input);
    g_free(choices);
}

double choices_least(const Choices *choices, uint32_t h)
{
    double least = INFINITY;
    for (uint32_t b = 0; b < choices->bodies->len; b++)
        least =
            fmin(least, cost_relaxed(&g_array_index(choices->bodies, Body, b).cost, h));
    return least;
}

/* --- transitions --- */

/* Conversions of inputs before the op, and of saved inputs before its backward. A priced conversion replaces the form it
 * starts from; a free local one leaves the replica or shard in place. */
static bool price_inputs(const Choices *c, const Held *in, const Body *body,
                         Transition *t)
{
    for (uint32_t i = 0; i < c->view->n_in; i++) {
        FormSet held = bit(in[i].form);
        Step before = {0}, saved = {0};
        if (!price_reach(c->pricer, c->view->tensor[i], &held, bit(body->needs.reads[i]),
                         &before, NULL, NULL))
            return false;
        t->in_after[i] = before.closes ? body->needs.reads[i] : in[i].form;
        add_step(c->pricer, &t->cost, &before, CLOSES_FORWARD, &t->cost.forward);
        if (!price_reach(c->pricer, c->view->tensor[i], &held, body->needs.saved[i],
                         &saved, NULL, NULL))
            return false;
        add_step(c->pricer, &t->cost, &saved, CLOSES_EARLY, &t->cost.early);
    }
    return true;
}

/* Contributions to the inputs' gradients, converted to the form that the sum is kept in, and added. */
static bool price_contributions(const Choices *c, const Held *in, const Body *body,
                                Transition *t)
{
    const OpView *view = c->view;
    FormSet dy[TRANSITION_OUT] = {body->dy[0], body->dy[1]};
    for (uint32_t i = 0; i < view->n_in; i++) {
        if (view->contribution[i] == GRAPH_NONE)
            continue;
        Form sum = in[i].gradient;
        if (!(view->accumulates[i] >> sum & 1u))
            return false;
        FormSet made = bit(body->needs.makes[i]);
        FormSet *held = view->alias[i] >= 0 ? &dy[view->alias[i]]
                                            : &made; /* inputs of an add share dy */
        Step step = {0};
        if (!price_reach(c->pricer, view->contribution[i], held, bit(sum), &step, NULL,
                         NULL))
            return false;
        add_step(c->pricer, &t->cost, &step, CLOSES_LATE, &t->cost.late);
        times_add(c->pricer, &t->cost.late, &view->accumulation_work[i][sum]);
    }
    if (!(t->cost.closes &
          CLOSES_LATE)) { /* without a step in between the portions are one */
        times_add(c->pricer, &t->cost.early, &t->cost.late);
        t->cost.late = (Times){{0}};
    }
    return true;
}

static void add_transition(const Choices *c, GArray *found, const Transition *t)
{
    Transition *all = (Transition *)(void *)found->data;
    for (uint32_t i = 0; i < found->len; i++)
        if (memcmp(all[i].out, t->out, sizeof t->out) == 0 &&
            memcmp(all[i].in_after, t->in_after, sizeof t->in_after) == 0) {
            if (dominates(c->pricer, &all[i].cost, &t->cost))
                return;
            if (dominates(c->pricer, &t->cost, &all[i].cost)) {
                all[i] = *t;
                return;
            }
        }
    g_array_append_vals(found, t, 1);
}

static int by_relaxed_cost(gconstpointer a, gconstpointer b)
{
    double x = ((const Transition *)a)->relaxed_s[0],
           y = ((const Transition *)b)->relaxed_s[0];
    return (x > y) - (x < y);
}

static GArray *enumerate_transitions(const Choices *c, const Held *in)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(Transition));
    for (uint32_t b = 0; b < c->bodies->len; b++) {
        const Body *body = &g_array_index(c->bodies, Body, b);
        Transition t = {.forward_rule = body->forward_rule, .cost = body->cost};
        memcpy(t.out, body->out, sizeof t.out);
        memcpy(t.backward_rule, body->backward_rule, sizeof t.backward_rule);
        memcpy(t.plan, body->plan, sizeof t.plan);
        if (price_inputs(c, in, body, &t) && price_contributions(c, in, body, &t))
            add_transition(c, found, &t);
    }
    for (uint32_t i = 0; i < found->len; i++)
        for (uint32_t h = 0; h < c->pricer->n_classes; h++) {
            Transition *t = &g_array_index(found, Transition, i);
            t->relaxed_s[h] = cost_relaxed(&t->cost, h);
        }
    g_array_sort(found, by_relaxed_cost);
    return found;
}

const GArray *choices_from(Choices *choices, const Held in[TRANSITION_IN])
{
    uint32_t packed = 1;
    for (uint32_t i = 0; i < TRANSITION_IN; i++)
        packed = (packed * FORM_MAX + in[i].form) * FORM_MAX + in[i].gradient;
    GArray *found = g_hash_table_lookup(choices->by_input, GUINT_TO_POINTER(packed));
    if (!found) {
        found = enumerate_transitions(choices, in);
        g_hash_table_insert(choices->by_input, GUINT_TO_POINTER(packed), found);
    }
    return found;
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
        choose(&choice, reads, rule);
        choose_made(&choice, reads, rule);
        assignment->rule[reads->op] = *rule;
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        assignment->gradient[op->out[o]] = transition->out[o].gradient;
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        uint32_t input = view->parameter[p];
        const GArray *plans = op_view_plans(
            pricer, view, p, choice.wanted[SLOT_PARAMETER + input], choice.made[input]);
        parameter_plan_apply(graph, op->in[input],
                             &g_array_index(plans, ParameterPlan, transition->plan[p]),
                             assignment);
    }
    for (uint32_t i = 0; i < view->n_in; i++)
        if (view->accumulation[i] != GRAPH_NONE) {
            Form forms[OP_MAX_OPERANDS];
            memset(forms, in[i].gradient, sizeof forms);
            op_rule_find(graph, view->accumulation[i], forms,
                         &assignment->rule[view->accumulation[i]]);
        }
}
