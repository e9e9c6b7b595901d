/* Reading, pricing and describing an op's view. */
#include "synth/hap/exact/op_view.h"

#include "data/base/free.h"
#include "synth/spmd/pins.h"

#include <math.h>

/* The slot of a tensor as seen from forward op `op`. */
static uint8_t slot_of(const Graph *graph, const OpView *view, TensorId tensor)
{
    const Op *op = graph_get_op(graph, view->op);
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (op->out[o] == tensor)
            return (uint8_t)(SLOT_OUT + o);
        if (graph_gradient(graph, op->out[o]) == tensor &&
            graph_tensor(graph, tensor)->role != ROLE_INPUT)
            return (uint8_t)(SLOT_DY + o);
    }
    for (uint32_t i = 0; i < view->n_in; i++)
        if (view->tensor[i] == tensor)
            return (uint8_t)(SLOT_IN + i);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] == tensor && graph_tensor(graph, tensor)->role == ROLE_PARAMETER)
            return (uint8_t)(SLOT_PARAMETER + i);
    g_assert(graph_tensor(graph, tensor)->role == ROLE_INPUT);
    return SLOT_FREE;
}

/* Whether a rule is worth trying: its operands can be held in its forms, and it does not make
 * partial sums from replicas of parameters only, which is never better than computing replicated
 * and keeping the result on one device, if that is allowed. */
static bool worthwhile(const Pricer *pricer, OpId id, const Rule *rule)
{
    const Graph *graph = pricer->graph;
    const Op *op = graph_get_op(graph, id);
    if (!pins_allow(pricer->pins, graph, id, rule->form))
        return false;
    bool reduce = false, other = false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (!form_can_hold(graph, op->in[i], rule->form[i]))
            return false;
        Role role = graph_tensor(graph, op->in[i])->role;
        bool source = role == ROLE_PARAMETER || role == ROLE_INPUT;
        reduce |= rule->form[i] == FORM_REDUCE;
        other |= rule->form[i] == FORM_REDUCE && !source;
    }
    return rule->loop >= 0 || !reduce || other || pins_touch(pricer->pins, graph, id);
}

static void find_rules(const Pricer *pricer, OpReads *reads)
{
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(pricer->graph, reads->op, all);
    reads->rule = g_new0(PricedRule, n);
    for (uint32_t r = 0; r < n; r++)
        if (worthwhile(pricer, reads->op, &all[r]))
            reads->rule[reads->n_rules++].rule = all[r];
}

static void price_rules(const Pricer *pricer, OpReads *reads)
{
    for (uint32_t r = 0; r < reads->n_rules; r++)
        reads->rule[r].work = price_rule(pricer, reads->op, &reads->rule[r].rule);
}

/* Whether a backward op contributes to no activation's gradient. */
static bool makes_parameters_only(const Graph *graph, const Op *forward, OpId op,
                                  OpId backward)
{
    for (uint32_t i = 0; i < forward->n_in; i++) {
        TensorId made = graph_contribution(graph, op, i);
        if (made != GRAPH_NONE && graph_tensor(graph, made)->producer == backward &&
            graph_tensor(graph, forward->in[i])->role != ROLE_PARAMETER)
            return false;
    }
    return true;
}

static void read_op(const Graph *graph, const OpView *view, OpId id, OpReads *reads)
{
    const Op *op = graph_get_op(graph, id), *forward = graph_get_op(graph, view->op);
    reads->op = id;
    reads->n_in = op->n_in;
    reads->n_out = op->n_out;
    for (uint32_t i = 0; i < op->n_in; i++)
        reads->slot[i] = slot_of(graph, view, op->in[i]);
    reads->can_wait =
        id != view->op && makes_parameters_only(graph, forward, view->op, id);
    for (uint32_t o = 0; o < op->n_out && id != view->op; o++)
        for (uint32_t i = 0; i < forward->n_in; i++)
            if (graph_contribution(graph, view->op, i) == op->out[o])
                reads->makes[o] = (uint8_t)i;
}

/* Finds how activation input `i` gets its gradient. */
static void read_contribution(const Graph *graph, OpView *view, uint32_t i)
{
    const Op *op = graph_get_op(graph, view->op);
    view->alias[i] = -1;
    view->contribution[i] = graph_contribution(graph, view->op, view->input[i]);
    view->accumulation[i] = graph_accumulation(graph, view->op, view->input[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (view->contribution[i] != GRAPH_NONE &&
            graph_gradient(graph, op->out[o]) == view->contribution[i])
            view->alias[i] = (int8_t)o;
}

/* Finds the forms in which a sum of contributions can be kept. */
static void find_accumulation(const Pricer *pricer, OpView *view, uint32_t i)
{
    Rule rule;
    for (Form form = 0; form < FORM_MAX; form++)
        if (view->accumulation[i] == GRAPH_NONE ||
            (op_rule_in(pricer->graph, view->accumulation[i], form, &rule) &&
             pins_allow(pricer->pins, pricer->graph, view->accumulation[i], rule.form)))
            view->accumulates[i] |= (FormSet)(1u << form);
}

static void op_view_price_accumulation(const Pricer *pricer, OpView *view, uint32_t i)
{
    Rule rule;
    for (Form form = 0; form < FORM_MAX && view->accumulation[i] != GRAPH_NONE; form++)
        if ((view->accumulates[i] >> form & 1u) &&
            op_rule_in(pricer->graph, view->accumulation[i], form, &rule))
            view->accumulation_work[i][form] =
                price_rule(pricer, view->accumulation[i], &rule);
}

static bool read_inputs(const Graph *graph, OpView *view, GError **error)
{
    const Op *op = graph_get_op(graph, view->op);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *tensor = graph_tensor(graph, op->in[i]);
        if (tensor->role == ROLE_PARAMETER) {
            if (graph_accumulation(graph, view->op, i) != GRAPH_NONE)
                return kilter_fail(
                    error, KILTER_ERROR_FAILED,
                    "parameter '%s' has several consumers; the search takes one",
                    tensor->name);
            view->parameter[view->n_parameters++] = i;
        }
        if (tensor->role != ROLE_ACTIVATION)
            continue;
        if (view->n_in == TRANSITION_IN)
            return kilter_fail(error, KILTER_ERROR_FAILED,
                               "op '%s' has more than %d activation inputs", op->name,
                               TRANSITION_IN);
        view->input[view->n_in] = i;
        view->tensor[view->n_in++] = op->in[i];
    }
    return true;
}

bool op_view_read(const Graph *graph, OpId id, OpView *view, GError **error)
{
    *view = (OpView){.op = id};
    if (!read_inputs(graph, view, error))
        return false;
    for (uint32_t i = 0; i < view->n_in; i++)
        read_contribution(graph, view, i);
    read_op(graph, view, id, &view->forward);
    OpId backward[MAX_BACKWARD];
    view->n_backward = backward_ops(graph, id, backward);
    for (uint32_t k = 0; k < view->n_backward; k++)
        read_op(graph, view, backward[k], &view->backward[k]);
    return true;
}

static FREE_DEFINE(plan_set_free, PlanSet, set, g_array_unref(set->plans));

/* Whether the pins leave a choice: a rule for every op, a form for every sum, a place for every
 * parameter. */
static bool check_pins(const Pricer *pricer, const OpView *view, GError **error)
{
    const Op *op = graph_get_op(pricer->graph, view->op);
    if (view->forward.n_rules == 0)
        return pins_fail(pricer->pins, pricer->graph, view->op, error);
    for (uint32_t k = 0; k < view->n_backward; k++)
        if (view->backward[k].n_rules == 0)
            return pins_fail(pricer->pins, pricer->graph, view->backward[k].op, error);
    for (uint32_t i = 0; i < view->n_in; i++)
        if (!view->accumulates[i])
            return pins_fail(pricer->pins, pricer->graph, view->accumulation[i], error);
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        TensorId parameter = op->in[view->parameter[p]];
        g_autoptr(GArray) plans =
            parameter_plans(pricer, parameter, view->plans[p].prices, 1u << FORM_IDENTITY,
                            0, FORM_IDENTITY);
        const OpId update = parameter_update(pricer->graph, parameter);
        if (plans->len == 0)
            return pins_fail(pricer->pins, pricer->graph,
                             update == GRAPH_NONE ? view->op : update, error);
    }
    return true;
}

static void price_plans(const Pricer *pricer, const OpView *view, uint32_t p,
                        PlanSet *set)
{
    TensorId parameter = graph_get_op(pricer->graph, view->op)->in[view->parameter[p]];
    g_clear_pointer(&set->plans, g_array_unref);
    set->plans = parameter_plans(pricer, parameter, view->plans[p].prices, set->read,
                                 set->kept, set->made);
    for (uint32_t h = 0; h < pricer->n_classes; h++) {
        set->least.s[h] = INFINITY;
        array_each (const ParameterPlan, plan, set->plans)
            set->least.s[h] =
                fmin(set->least.s[h], plan->comm_s + plan->initial.s[h] +
                                          plan->work.s[h] + plan->tail.s[h]);
    }
}

void op_view_price(const Pricer *pricer, OpView *view)
{
    price_rules(pricer, &view->forward);
    for (uint32_t k = 0; k < view->n_backward; k++)
        price_rules(pricer, &view->backward[k]);
    for (uint32_t i = 0; i < view->n_in; i++)
        op_view_price_accumulation(pricer, view, i);
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        *view->plans[p].prices = (ParameterPrices){0};
        for (uint32_t k = 0; k < view->plans[p].sets->len; k++)
            price_plans(pricer, view, p, view->plans[p].sets->pdata[k]);
    }
}

bool op_view_find(const Pricer *pricer, OpView *view, GError **error)
{
    find_rules(pricer, &view->forward);
    for (uint32_t k = 0; k < view->n_backward; k++)
        find_rules(pricer, &view->backward[k]);
    for (uint32_t i = 0; i < view->n_in; i++)
        find_accumulation(pricer, view, i);
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        view->plans[p].sets =
            g_ptr_array_new_with_free_func((GDestroyNotify)plan_set_free);
        view->plans[p].prices = g_new(ParameterPrices, 1);
    }
    op_view_price(pricer, view);
    return !pricer->pins || check_pins(pricer, view, error);
}

void op_view_clear(OpView *view)
{
    g_free(view->forward.rule);
    for (uint32_t k = 0; k < view->n_backward; k++)
        g_free(view->backward[k].rule);
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        g_clear_pointer(&view->plans[p].sets, g_ptr_array_unref);
        index_clear(&view->plans[p].keys);
        g_free(view->plans[p].prices);
    }
}

static void describe_op(GString *key, const Graph *graph, const OpReads *reads)
{
    const Op *op = graph_get_op(graph, reads->op);
    uint32_t class = graph_op_class_index(graph, reads->op);
    TensorId of;
    const uint32_t kept = graph_op_kept_bytes(graph, reads->op, &of);
    g_string_append_len(key, (const char *)&class, sizeof class);
    g_string_append_len(key, (const char *)&kept, sizeof kept);
    for (uint32_t operand = 0; operand < op->n_in + op->n_out; operand++) {
        TensorId id = operand < op->n_in ? op->in[operand] : op->out[operand - op->n_in];
        const Tensor *t = graph_tensor(graph, id);
        uint8_t slot = operand < op->n_in ? reads->slot[operand] : SLOTS;
        const uint8_t seen[] = {slot, (uint8_t)t->role, (uint8_t)t->dtype,
                                forms_of_tensor(graph, id)};
        g_string_append_len(key, (const char *)seen, sizeof seen);
    }
}

/* Describes the pins on the op, its backward ops, the sums of its contributions and the updates of
 * its parameters. */
static void describe_pins(GString *key, const Pricer *pricer, const OpView *view)
{
    const Graph *graph = pricer->graph;
    const Op *op = graph_get_op(graph, view->op);
    pins_describe(pricer->pins, graph, view->op, key);
    for (uint32_t k = 0; k < view->n_backward; k++)
        pins_describe(pricer->pins, graph, view->backward[k].op, key);
    for (uint32_t i = 0; i < view->n_in; i++)
        if (view->accumulation[i] != GRAPH_NONE)
            pins_describe(pricer->pins, graph, view->accumulation[i], key);
    for (uint32_t p = 0; p < view->n_parameters; p++) {
        const OpId update = parameter_update(graph, op->in[view->parameter[p]]);
        if (update != GRAPH_NONE)
            pins_describe(pricer->pins, graph, update, key);
    }
}

/* Describes the segments of the op and its backward ops, and those between which its tensors and
 * their gradients cross. */
static void describe_segments(GString *key, const Pricer *pricer, const OpView *view)
{
    const Graph *graph = pricer->graph;
    const Op *op = graph_get_op(graph, view->op);
    const uint16_t *of = pricer->segments.of;
    g_string_append_len(key, (const char *)&of[view->op], sizeof *of);
    for (uint32_t k = 0; k < view->n_backward; k++)
        g_string_append_len(key, (const char *)&of[view->backward[k].op], sizeof *of);
    for (uint32_t i = 0; i < view->n_in; i++) {
        price_describe_segments(pricer, view->tensor[i], key);
        price_describe_segments(pricer, view->contribution[i], key);
        if (view->accumulation[i] != GRAPH_NONE)
            g_string_append_len(key, (const char *)&of[view->accumulation[i]],
                                sizeof *of);
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        price_describe_segments(pricer, op->out[o], key);
        price_describe_segments(pricer, graph_gradient(graph, op->out[o]), key);
    }
}

void op_view_describe(const Pricer *pricer, const OpView *view, GString *key)
{
    const Graph *graph = pricer->graph;
    if (pricer->segments.n > 0)
        describe_segments(key, pricer, view);
    describe_op(key, graph, &view->forward);
    for (uint32_t k = 0; k < view->n_backward; k++)
        describe_op(key, graph, &view->backward[k]);
    if (graph_is_timed(graph) || graph_op_times(graph, view->op)) /* of its own */
        g_string_append_len(key, (const char *)&view->op, sizeof view->op);
    for (uint32_t i = 0; i < view->n_in; i++) {
        const uint8_t seen[] = {
            view->contribution[i] != GRAPH_NONE, view->accumulation[i] != GRAPH_NONE,
            (uint8_t)view->alias[i], view->tensor[i] == view->tensor[0]};
        g_string_append_len(key, (const char *)seen, sizeof seen);
    }
    const Op *op = graph_get_op(graph, view->op);
    for (uint32_t o = 0; o < op->n_out; o++)
        g_string_append_c(key, graph_gradient(graph, op->out[o]) != GRAPH_NONE);
    if (pricer->pins)
        describe_pins(key, pricer, view);
    if (pricer->charges)
        g_string_append_c(key, view->op < pricer->fullest    ? 0
                               : view->op == pricer->fullest ? 1
                                                             : 2);
    for (uint32_t o = 0; pricer->charges && o < op->n_out; o++)
        g_string_append_c(key, pricer->saver[op->out[o]] == view->op);
    for (uint32_t i = 0; pricer->charges && i < view->n_in; i++)
        g_string_append_c(key, pricer->saver[view->tensor[i]] == view->op);
}

uint32_t op_view_plans(const Pricer *pricer, OpView *view, uint32_t p, FormSet read,
                       FormSet kept, Form made)
{
    G_STATIC_ASSERT(sizeof(FormSet) == 1); /* the key packs them in bytes */
    g_assert(p < view->n_parameters && made < FORM_MAX);
    Plans *plans = &view->plans[p];
    if (!pricer->charges)
        kept = 0; /* no price depends on it */
    uint32_t number =
        index_add(&plans->keys, ((uint64_t)kept << 8 | read) * FORM_MAX + made);
    if (number == plans->sets->len) {
        PlanSet *set = g_new0(PlanSet, 1);
        *set = (PlanSet){.read = read, .kept = kept, .made = made};
        price_plans(pricer, view, p, set);
        g_ptr_array_add(plans->sets, set);
    }
    return number;
}

bool op_view_is_alias(const OpView *view, uint32_t o)
{
    g_assert(o < TRANSITION_OUT && view->n_in <= TRANSITION_IN);
    return any_of(i, view->n_in,
                  view->contribution[i] != GRAPH_NONE && view->alias[i] == (int)o);
}
