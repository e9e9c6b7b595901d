/* Halves: the rules of an op and of its backward ops, together. */
#include "synth/hap/exact/transition.h"

#include <math.h>

/* Adds a backward op's rule. */
static void choice_add(Choice *choice, const OpReads *reads, const Rule *rule)
{
    KILTER_ASSERT(reads->n_in <= OP_MAX_IN && reads->n_out <= OP_MAX_OUT);
    values_at (uint8_t, slot, i, reads->slot, reads->n_in) {
        choice->wanted[slot] |= form_bit(rule->form[i]);
        if (slot >= SLOT_PARAMETER && slot < SLOT_FREE)
            choice->kept[slot - SLOT_PARAMETER] |= form_bit(rule->form[i]);
    }
    for (uint32_t o = 0; o < reads->n_out; o++)
        choice->made[reads->makes[o]] = rule->form[reads->n_in + o];
}

/* The forward's own reads of activations are left out. */
static Choice choice_of_forward(const OpView *view, const Rule *rule)
{
    Choice choice = {0};
    for (uint32_t i = 0; i < view->forward.n_in; i++)
        if (view->forward.slot[i] >= SLOT_PARAMETER)
            choice.wanted[view->forward.slot[i]] |= form_bit(rule->form[i]);
    return choice;
}

Choice choice_of(const OpView *view, uint8_t forward_rule,
                 const uint8_t backward_rule[MAX_BACKWARD])
{
    KILTER_ASSERT(forward_rule < view->forward.n_rules);
    Choice choice = choice_of_forward(view, &view->forward.rule[forward_rule].rule);
    for (uint32_t k = 0; k < view->n_backward; k++)
        choice_add(&choice, &view->backward[k],
                   &view->backward[k].rule[backward_rule[k]].rule);
    return choice;
}

typedef struct {
    Choices *choices;
    Index keys;  /* needs -> group */
    Needs needs; /* of the forward rule */
} Walk;

/* The charge for an activation that is held in `held` when it is saved and that the backward reads
 * in `wanted`: for the whole tensor if it is read unsharded as it is held, else for at least a
 * shard. */
static double saved_charge(const Choices *c, TensorId tensor, Form held, FormSet wanted)
{
    if (!wanted || c->pricer->saver[tensor] != c->view.op)
        return 0;
    Form kept = (wanted & form_bit(held)) ? held : FORM_GATHER0;
    return price_memory(c->pricer, SYNTH_POINT_FORWARD, tensor, kept);
}

/* The charge for the data that the op keeps for its backward beside tensors. */
static double kept_charge(const Choices *c, const Needs *needs)
{
    TensorId of;
    const uint32_t bytes = graph_op_kept_bytes(c->pricer->graph, c->view.op, &of);
    if (bytes == 0 || c->view.n_backward == 0)
        return 0;
    return price_memory(c->pricer, SYNTH_POINT_FORWARD, of,
                        needs->out[c->op->n_out - 1]) *
           bytes / dtype_bytes(graph_tensor(c->pricer->graph, of)->dtype);
}

/* The charge for dy as the op's first backward op reads it (at least a shard if it reads dy), and
 * for the op's results. */
static double working_charge(const Choices *c, const Choice *choice)
{
    const Graph *graph = c->pricer->graph;
    double charge = 0;
    if (c->view.n_backward == 0)
        return 0;
    const OpReads *first = &c->view.backward[0];
    for (uint32_t i = 0; i < first->n_in; i++) {
        TensorId dy = graph_get_op(graph, first->op)->in[i];
        uint8_t slot = first->slot[i];
        if (slot < SLOT_DY || slot >= SLOT_DY + TRANSITION_OUT)
            continue;
        bool cut = (choice->wanted[slot] &
                    (FormSet) ~(form_bit(FORM_IDENTITY) | form_bit(FORM_REDUCE))) != 0;
        charge += price_memory(c->pricer, SYNTH_POINT_FORWARD, dy,
                               cut ? FORM_GATHER0 : FORM_IDENTITY);
    }
    for (uint32_t o = 0; o < first->n_out && backward_makes_beside(graph, first->op);
         o++) {
        TensorId made = graph_get_op(graph, first->op)->out[o];
        if (!graph_is_held(graph, graph_tensor(graph, made)))
            charge += price_memory(c->pricer, SYNTH_POINT_FORWARD, made,
                                   choice->made[first->makes[o]]);
    }
    return charge;
}

double choices_saved_memory(const Choices *c, const Needs *needs, const Choice *choice)
{
    if (!c->pricer->charges || c->view.op > c->pricer->fullest)
        return 0;
    double charge = kept_charge(c, needs);
    if (c->view.op == c->pricer->fullest)
        charge += working_charge(c, choice);
    for (uint32_t o = 0; o < c->op->n_out; o++)
        charge +=
            saved_charge(c, c->op->out[o], needs->out[o], choice->wanted[SLOT_OUT + o]);
    for (uint32_t i = 0; i < c->view.n_in; i++)
        charge += saved_charge(c, c->view.tensor[i], needs->reads[i],
                               choice->wanted[SLOT_IN + i]);
    return charge;
}

static uint64_t half_pack(const Needs *needs)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < TRANSITION_IN; i++)
        key =
            ((key << 3 | needs->reads[i]) << 3 | needs->makes[i]) << 7 | needs->saved[i];
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        key = (key << 3 | needs->out[o]) << 7 | needs->wanted_dy[o];
    return key;
}

static void add_half(Walk *w, const Needs *needs, const Half *half)
{
    Choices *c = w->choices;
    uint32_t g = index_add(&w->keys, half_pack(needs)), at = c->halves->len;
    if (g == c->groups->len) {
        Group group = {.needs = *needs, .first = UINT32_MAX};
        g_array_append_val(c->groups, group);
    }
    Group *group = &g_array_index(c->groups, Group, g);
    g_array_append_val(c->halves, *half);
    g_array_index(c->halves, Half, at).next = group->first;
    group->first = at;
}

/* The step before backward ops in which saved outputs are converted; false if they cannot be. */
static bool price_saved(const Choices *c, const Needs *needs,
                        const FormSet wanted_out[TRANSITION_OUT], Step *step)
{
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        FormSet held = form_bit(needs->out[o]);
        if (wanted_out[o] &&
            !price_reach(c->pricer, c->op->out[o], &held, wanted_out[o], step))
            return false;
    }
    return true;
}

/* Adds the parts that are known once all rules are: saved outputs and the parameters' plans. */
static void half_finish(Walk *w, const Choice *choice, const Half *chosen)
{
    Choices *c = w->choices;
    Half half = *chosen;
    Needs needs = w->needs;
    Step step = {0};
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        half.wanted_out[o] = choice->wanted[SLOT_OUT + o];
        needs.wanted_dy[o] = choice->wanted[SLOT_DY + o];
    }
    if (!price_saved(c, &needs, half.wanted_out, &step))
        return;
    for (uint32_t i = 0; i < c->view.n_in; i++) {
        needs.saved[i] = choice->wanted[SLOT_IN + i];
        needs.makes[i] = c->view.contribution[i] != GRAPH_NONE && c->view.alias[i] < 0
                             ? choice->made[c->view.input[i]]
                             : 0;
    }
    values_at (uint32_t, input, p, c->view.parameter, c->view.n_parameters) {
        uint32_t number =
            op_view_plans(c->pricer, &c->view, p, choice->wanted[SLOT_PARAMETER + input],
                          choice->kept[input], choice->made[input]);
        if (op_view_plan_set(&c->view, p, number)->plans->len == 0)
            return;
        half.plans[p] = (uint16_t)number;
    }
    add_half(w, &needs, &half);
}

static void choose_backward(Walk *w, uint32_t k, const Choice *choice, const Half *half)
{
    KILTER_ASSERT(w->choices->view.n_backward <= MAX_BACKWARD);
    if (k >= w->choices->view.n_backward || k >= MAX_BACKWARD) {
        half_finish(w, choice, half);
        return;
    }
    const OpReads *reads = &w->choices->view.backward[k];
    for (uint32_t r = 0; r < reads->n_rules; r++) {
        Choice next = *choice;
        choice_add(&next, reads, &reads->rule[r].rule);
        Half extended = *half;
        extended.backward_rule[k] = (uint8_t)r;
        choose_backward(w, k + 1, &next, &extended);
    }
}

void choices_enumerate(Choices *c)
{
    g_assert(c->view.forward.n_rules <= UINT8_MAX && c->halves->len == 0);
    Walk w = {.choices = c};
    items_at (const PricedRule, priced, r, c->view.forward.rule,
              c->view.forward.n_rules) {
        Half half = {.forward_rule = (uint8_t)r};
        w.needs = (Needs){0};
        for (uint32_t i = 0; i < c->view.n_in; i++)
            w.needs.reads[i] = priced->rule.form[c->view.input[i]];
        for (uint32_t o = 0; o < c->op->n_out; o++)
            w.needs.out[o] = priced->rule.form[c->op->n_in + o];
        Choice choice = choice_of_forward(&c->view, &priced->rule);
        choose_backward(&w, 0, &choice, &half);
    }
    index_clear(&w.keys);
}

double half_memory(const Choices *c, const Needs *needs, const Half *half)
{
    if (!c->pricer->charges)
        return 0;
    Choice choice = choice_of(&c->view, half->forward_rule, half->backward_rule);
    return choices_saved_memory(c, needs, &choice);
}

static Times price_half(const Choices *c, const Needs *needs, const Half *half)
{
    KILTER_ASSERT(half->forward_rule < c->view.forward.n_rules);
    const OpView *view = &c->view;
    Times sum = view->forward.rule[half->forward_rule].work;
    Step step = {0};
    for (uint32_t k = 0; k < view->n_backward; k++)
        times_add(c->pricer, &sum, &view->backward[k].rule[half->backward_rule[k]].work);
    price_saved(c, needs, half->wanted_out, &step);
    double fixed = step.comm_s + half_memory(c, needs, half);
    for (uint32_t h = 0; h < c->pricer->n_classes; h++)
        sum.s[h] += fixed + step.inner.s[h];
    for (uint32_t p = 0; p < view->n_parameters; p++)
        times_add(c->pricer, &sum, &op_view_plan_set(view, p, half->plans[p])->least);
    return sum;
}

void choices_price_halves(Choices *c)
{
    array_each (Group, group, c->groups) {
        for (uint32_t h = 0; h < c->pricer->n_classes; h++)
            group->least.s[h] = INFINITY;
        for (uint32_t i = group->first; i != UINT32_MAX;) {
            Half *half = &g_array_index(c->halves, Half, i);
            half->least = price_half(c, &group->needs, half);
            for (uint32_t h = 0; h < c->pricer->n_classes; h++)
                group->least.s[h] = fmin(group->least.s[h], half->least.s[h]);
            i = half->next;
        }
    }
}
