/* Transitions along an arc: what each adds to the stages around it, and which of them no other
 * transition dominates. */
#include "synth/hap/exact/transition.h"

#include <math.h>
#include <string.h>

/* Whether an iteration with `a` never takes longer than with `b`, up to the tolerance. A step that
 * closes a stage never shortens one, so `a` may close a stage only where `b` does. */
static bool transition_dominates(const Pricer *pricer, const Cost *a, const Cost *b)
{
    const double more = pricer->rationed ? b->charge_s - a->charge_s : 0,
                 most = b->comm_s + pricer->tolerance_s;
    double sum = a->comm_s + more; /* grows with each portion */
    return !(a->closes & ~b->closes) && more >= 0 && sum <= most &&
           (sum += times_excess(pricer, &a->initial, &b->initial)) <= most &&
           (sum += times_excess(pricer, &a->forward, &b->forward)) <= most &&
           (sum += times_excess(pricer, &a->late, &b->late)) <= most &&
           (sum += times_excess(pricer, &a->early, &b->early)) <= most &&
           (sum += times_excess(pricer, &a->update, &b->update)) <= most &&
           sum + times_excess(pricer, &a->tail, &b->tail) <= most;
}

/* Adds a step to the portion of computation with which it is merged. */
static void add_step(const Pricer *pricer, Cost *cost, const Step *step, uint8_t closes,
                     Times *portion)
{
    cost->comm_s += step->comm_s;
    cost->closes |= step->closes ? closes : 0;
    times_add(pricer, portion, &step->inner);
}

static Times cost_relaxed(const Pricer *pricer, const Cost *cost)
{
    Times sum = cost->initial;
    times_add(pricer, &sum, &cost->forward);
    times_add(pricer, &sum, &cost->late);
    times_add(pricer, &sum, &cost->early);
    times_add(pricer, &sum, &cost->update);
    times_add(pricer, &sum, &cost->tail);
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum.s[h] += cost->comm_s;
    return sum;
}

/* A transition's `relaxed` of the first and the last class. None that takes longer by one of them
 * dominates. */
typedef struct {
    double first, last;
} Ends;

typedef struct {
    Choices *c;
    Held in[TRANSITION_IN];
    uint8_t after[TRANSITION_IN]; /* numbers of the inputs' forms afterwards */
    Form out[TRANSITION_OUT];
    Form dy[TRANSITION_OUT];
    Times limit;
    GArray *found; /* Transition */
    GArray *ends;  /* Ends of each, close together in memory */
} Along;

/* Decodes the number `to` of an arc, from the innermost digit on. */
static void read_arc(Along *s, uint32_t to)
{
    KILTER_ASSERT(to < s->c->n_to);
    const Choices *c = s->c;
    for (uint32_t o = TRANSITION_OUT; o-- > 0;) {
        s->dy[o] = FORM_IDENTITY;
        if (!c->lives[o])
            continue;
        Held held = range_held(&c->out[o], to % c->out[o].n);
        s->out[o] = held.form;
        s->dy[o] = held.gradient;
        to /= c->out[o].n;
    }
    for (uint32_t i = TRANSITION_IN; i-- > 0;)
        if (c->survives[i]) {
            s->after[i] = (uint8_t)(to % c->in[i].n / c->in[i].n_gradients);
            to /= c->in[i].n;
        }
}

static bool within(const Along *s, const Times *times)
{
    return !any_of(h, s->c->pricer->n_classes, times->s[h] > s->limit.s[h]);
}

/* Conversions of inputs before the op, and of saved inputs before its backward. False if the arc
 * asks for other forms afterwards. */
static bool price_inputs(const Along *s, const Needs *needs, Cost *cost)
{
    const Choices *c = s->c;
    for (uint32_t i = 0; i < c->view.n_in; i++) {
        FormSet held = form_bit(s->in[i].form);
        Step before = {0}, saved = {0};
        if (!choices_can_read(c, i, s->in[i].form,
                              form_bit(needs->reads[i]) | needs->saved[i]) ||
            !price_reach(c->pricer, c->view.tensor[i], &held, form_bit(needs->reads[i]),
                         &before))
            return false;
        uint8_t after[2];
        choices_after(&c->in[i], s->in[i].form, needs->reads[i], &before, after);
        if (c->survives[i] && s->after[i] != after[0] && s->after[i] != after[1])
            return false;
        add_step(c->pricer, cost, &before, CLOSES_FORWARD, &cost->forward);
        if (!price_reach(c->pricer, c->view.tensor[i], &held, needs->saved[i], &saved))
            return false;
        add_step(c->pricer, cost, &saved, CLOSES_EARLY, &cost->early);
    }
    return true;
}

/* Prices dy in the forms that the backward reads, then the contributions to the inputs' gradients,
 * converted to the form in which the sum is kept, and their addition. */
static bool price_gradients(const Along *s, const Needs *needs, Cost *cost)
{
    const Choices *c = s->c;
    const OpView *view = &c->view;
    FormSet dy[TRANSITION_OUT];
    for (uint32_t o = 0; o < TRANSITION_OUT; o++) {
        Step step = {0};
        dy[o] = form_bit(s->dy[o]);
        if (needs->wanted_dy[o] &&
            !price_reach(c->pricer, graph_gradient(c->pricer->graph, c->op->out[o]),
                         &dy[o], needs->wanted_dy[o], &step))
            return false;
        add_step(c->pricer, cost, &step, CLOSES_EARLY, &cost->early);
    }
    for (uint32_t i = 0; i < view->n_in; i++) {
        if (view->contribution[i] == GRAPH_NONE)
            continue;
        Form sum = s->in[i].gradient;
        if (!(view->accumulates[i] >> sum & 1u))
            return false;
        FormSet made = form_bit(needs->makes[i]);
        FormSet *held = view->alias[i] >= 0 ? &dy[view->alias[i]]
                                            : &made; /* inputs of an add share dy */
        Step step = {0};
        if (!choices_can_give(c, i, *held, sum) ||
            !price_reach(c->pricer, view->contribution[i], held, form_bit(sum), &step))
            return false;
        add_step(c->pricer, cost, &step, CLOSES_LATE, &cost->late);
        times_add(c->pricer, &cost->late, &view->accumulation_work[i][sum]);
    }
    return true;
}

static bool ends_allow(const Pricer *pricer, const Ends *a, const Ends *b)
{
    return a->first <= b->first * (1 + SEARCH_ROUNDING) + pricer->tolerance_s &&
           a->last <= b->last * (1 + SEARCH_ROUNDING) + pricer->tolerance_s;
}

static void add_transition(const Along *s, const Transition *t)
{
    GArray *found = s->found;
    const Pricer *pricer = s->c->pricer;
    const Transition *all = (const Transition *)(const void *)found->data;
    const Ends *end = (const Ends *)(const void *)s->ends->data,
               own = {t->relaxed.s[0], t->relaxed.s[pricer->n_classes - 1]};
    for (uint32_t i = 0; i < found->len; i++)
        if (ends_allow(pricer, &end[i], &own) &&
            transition_dominates(pricer, &all[i].cost, &t->cost))
            return;
    for (uint32_t i = found->len; i-- > 0;)
        if (ends_allow(pricer, &own, &end[i]) &&
            transition_dominates(pricer, &t->cost, &all[i].cost)) {
            g_array_remove_index_fast(found, i);
            g_array_remove_index_fast(s->ends, i);
        }
    g_array_append_vals(found, t, 1);
    g_array_append_val(s->ends, own);
}

static void transition_finish(const Along *s, Transition *t)
{
    t->relaxed = cost_relaxed(s->c->pricer, &t->cost);
    if (!within(s, &t->relaxed))
        return;
    /* without a step in between both portions are one */
    if (!(t->cost.closes & CLOSES_LATE)) {
        times_add(s->c->pricer, &t->cost.early, &t->cost.late);
        t->cost.late = (Times){{0}};
    }
    add_transition(s, t);
}

/* Enumerates the plans of the remaining parameters. */
static void choose_plans(const Along *s, uint32_t p, const Half *half,
                         const Transition *t)
{
    KILTER_ASSERT(s->c->view.n_parameters <= OP_MAX_IN);
    Choices *c = s->c;
    if (p >= c->view.n_parameters || p >= OP_MAX_IN) {
        Transition finished = *t;
        transition_finish(s, &finished);
        return;
    }
    const PlanSet *set = op_view_plan_set(&c->view, p, half->plans[p]);
    array_at (const ParameterPlan, plan, k, set->plans) {
        Transition next = *t;
        next.plan[p] = (uint8_t)k;
        next.cost.comm_s += plan->comm_s;
        next.cost.charge_s += plan->charge_s;
        next.cost.closes |= plan->closes ? CLOSES_FINAL : 0;
        times_add(c->pricer, &next.cost.initial, &plan->initial);
        times_add(c->pricer, &next.cost.update, &plan->work);
        times_add(c->pricer, &next.cost.tail, &plan->tail);
        choose_plans(s, p + 1, half, &next);
    }
}

/* Enumerates backward ops that are deferred where a step closes a stage before the others' end. */
static void choose_order(const Along *s, uint32_t k, const Half *half,
                         const Transition *t)
{
    KILTER_ASSERT(s->c->view.n_backward <= MAX_BACKWARD);
    const Choices *c = s->c;
    if (k >= c->view.n_backward || k >= MAX_BACKWARD) {
        choose_plans(s, 0, half, t);
        return;
    }
    const OpReads *reads = &c->view.backward[k];
    const Times *work = &reads->rule[t->backward_rule[k]].work;
    Transition next = *t;
    times_add(c->pricer, &next.cost.early, work);
    choose_order(s, k + 1, half, &next);
    if ((t->cost.closes & CLOSES_LATE) && reads->can_wait) {
        next = *t;
        next.deferred |= (uint8_t)(1u << k);
        times_add(c->pricer, &next.cost.late, work);
        choose_order(s, k + 1, half, &next);
    }
}

static void try_half(const Along *s, const Group *group, const Half *half,
                     const Cost *around)
{
    KILTER_ASSERT(group->needs.out[0] < FORM_MAX);
    Choices *c = s->c;
    const OpView *view = &c->view;
    Transition t = {.forward_rule = half->forward_rule, .cost = *around};
    memcpy(t.backward_rule, half->backward_rule, sizeof t.backward_rule);
    memcpy(t.gradient, s->dy, sizeof t.gradient);
    times_add(c->pricer, &t.cost.forward, &view->forward.rule[half->forward_rule].work);
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        FormSet held = form_bit(group->needs.out[o]);
        Step step = {0};
        price_reach(c->pricer, c->op->out[o], &held, half->wanted_out[o], &step);
        add_step(c->pricer, &t.cost, &step, CLOSES_EARLY, &t.cost.early);
    }
    t.cost.charge_s = half_memory(c, &group->needs, half);
    t.cost.comm_s += t.cost.charge_s;
    choose_order(s, 0, half, &t);
}

static void try_group(const Along *s, const Group *group)
{
    const Choices *c = s->c;
    for (uint32_t o = 0; o < c->op->n_out; o++)
        if (c->lives[o] && group->needs.out[o] != s->out[o])
            return;
    Cost around = {0};
    if (!within(s, &group->least) || !price_inputs(s, &group->needs, &around) ||
        !price_gradients(s, &group->needs, &around))
        return;
    Times relaxed = cost_relaxed(c->pricer, &around);
    for (uint32_t i = group->first; i != UINT32_MAX;) {
        const Half *half = &g_array_index(c->halves, Half, i);
        Times sum = relaxed;
        times_add(c->pricer, &sum, &half->least);
        if (within(s, &sum))
            try_half(s, group, half, &around);
        i = half->next;
    }
}

static bool transition_covers(const Pricer *pricer, const Times *a, const Times *b)
{
    return !any_of(h, pricer->n_classes, a->s[h] < b->s[h]);
}

static GArray *find_along(Choices *c, uint32_t in, uint32_t arc, const Times *slack)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(Ends));
    Along s = {
        .c = c, .found = g_array_new(FALSE, FALSE, sizeof(Transition)), .ends = ends};
    g_ptr_array_add(c->lists, s.found);
    choices_inputs(c, in, s.in);
    read_arc(&s, choices_arc_to(c, arc));
    for (uint32_t h = 0; h < c->pricer->n_classes; h++)
        s.limit.s[h] =
            (choices_arc_least(c, arc)[h] + slack->s[h]) * (1 + SEARCH_ROUNDING);
    for (uint32_t g = 0; g < c->groups->len; g++)
        try_group(&s, &g_array_index(c->groups, Group, g));
    return s.found;
}

const GArray *choices_along(Choices *c, uint32_t in, uint32_t arc, const Times *slack)
{
    KILTER_ASSERT(in < c->n_in && arc < c->first_arc[c->n_in]);
    uint32_t at = index_add(&c->asked, arc);
    if (at == c->found->len)
        g_array_set_size(c->found, at + 1);
    Found *found = &g_array_index(c->found, Found, at);
    if (found->transitions && transition_covers(c->pricer, &found->slack, slack))
        return found->transitions;
    for (uint32_t h = 0; h < c->pricer->n_classes; h++)
        found->slack.s[h] = fmax(slack->s[h], 2 * found->slack.s[h]);
    return found->transitions = find_along(c, in, arc, &found->slack);
}

static const ParameterPlan *transition_plan_of(Choices *c, uint32_t p,
                                               const Choice *choice,
                                               const Transition *transition)
{
    KILTER_ASSERT(p < c->view.n_parameters);
    uint32_t input = c->view.parameter[p];
    uint32_t number =
        op_view_plans(c->pricer, &c->view, p, choice->wanted[SLOT_PARAMETER + input],
                      choice->kept[input], choice->made[input]);
    const PlanSet *set = op_view_plan_set(&c->view, p, number);
    return &g_array_index(set->plans, ParameterPlan, transition->plan[p]);
}

double transition_memory(Choices *c, const Transition *transition)
{
    const OpView *view = &c->view;
    const Rule *rule = &view->forward.rule[transition->forward_rule].rule;
    Choice choice = choice_of(view, transition->forward_rule, transition->backward_rule);
    Needs needs = {0};
    for (uint32_t i = 0; i < view->n_in; i++)
        needs.reads[i] = rule->form[view->input[i]];
    for (uint32_t o = 0; o < c->op->n_out; o++)
        needs.out[o] = rule->form[c->op->n_in + o];
    double charge = choices_saved_memory(c, &needs, &choice);
    values_at (uint32_t, input, p, view->parameter, view->n_parameters) {
        charge += parameter_plan_memory(c->pricer, c->op->in[input], choice.kept[input],
                                        choice.made[input],
                                        transition_plan_of(c, p, &choice, transition));
    }
    return charge;
}

void transition_apply(Choices *c, OpId id, uint32_t in, const Transition *transition,
                      Assignment *assignment)
{
    g_assert(graph_get_op(c->pricer->graph, id)->kind == c->op->kind && in < c->n_in);
    const Graph *graph = c->pricer->graph;
    OpView *view = &c->view;
    const Op *op = graph_get_op(graph, id);
    Choice choice = choice_of(view, transition->forward_rule, transition->backward_rule);
    OpId backward[MAX_BACKWARD];
    backward_ops(graph, id, backward);
    assignment->rule[id] = view->forward.rule[transition->forward_rule].rule;
    for (uint32_t k = 0; k < view->n_backward; k++) {
        assignment->rule[backward[k]] =
            view->backward[k].rule[transition->backward_rule[k]].rule;
        assignment->deferred[backward[k]] = transition->deferred >> k & 1u;
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        assignment->gradient[op->out[o]] = transition->gradient[o];
    for (uint32_t p = 0; p < view->n_parameters; p++)
        parameter_plan_apply(graph, op->in[view->parameter[p]],
                             transition_plan_of(c, p, &choice, transition), assignment);
    Held held[TRANSITION_IN];
    choices_inputs(c, in, held);
    for (uint32_t i = 0; i < view->n_in; i++) {
        OpId accumulation = graph_accumulation(graph, id, view->input[i]);
        if (accumulation != GRAPH_NONE)
            op_rule_in(graph, accumulation, held[i].gradient,
                       &assignment->rule[accumulation]);
    }
}
