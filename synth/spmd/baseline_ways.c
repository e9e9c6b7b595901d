/* Megatron's assignment for layers divided over different numbers of devices (ways). */
#include "synth/spmd/baseline_parts.h"
#include "synth/spmd/columns.h"

/* The absorbed forms (synth/spmd/columns.h), without tensors that pass between layers of different
 * ways. The caller frees them. */
static FormSet *absorbed_within(const Graph *graph, OpId loss, const uint32_t *ways,
                                uint32_t here)
{
    FormSet *absorbed = columns_absorbed(graph, loss, here);
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++)
            if (ways[op->layer] != here)
                absorbed[op->in[i]] = 0;
        for (uint32_t o = 0; o < op->n_out; o++)
            if (ways[op->layer] != here)
                absorbed[op->out[o]] = 0;
    }
    return absorbed;
}

/* Assigns the layers of `here` ways; they read tensors of other layers whole. */
static void assign_ways(const Graph *graph, OpId loss, const uint32_t *ways,
                        uint32_t here, Form *held, Assignment *a)
{
    g_autofree FormSet *absorbed = absorbed_within(graph, loss, ways, here);
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        Rule all[OP_MAX_RULES], *rule = &a->rule[id];
        if (ways[op->layer] != here)
            continue;
        if (here == 1 ||
            (!baseline_rule_following(graph, id, held, rule) &&
             !baseline_rule_columns(graph, id, loss, here, absorbed, rule))) {
            op_rules(graph, id, all);
            *rule = all[0];
        }
        for (uint32_t o = 0; o < op->n_out; o++) {
            const Form form = baseline_dual(rule->form[op->n_in + o]);
            a->gradient[op->out[o]] = form;
            held[op->out[o]] = absorbed[op->out[o]] >> form & 1u ? form : FORM_IDENTITY;
        }
    }
}

/* Keeps gradients whole to which layers of different ways contribute. */
static void keep_borders_whole(const Graph *graph, OpId loss, const uint32_t *ways,
                               Assignment *a)
{
    g_autofree uint32_t *reader = g_new0(uint32_t, graph_n_tensors(graph));
    for (OpId id = 0; id <= loss; id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++) {
            uint32_t *of = &reader[op->in[i]];
            if (*of > 0 && *of != ways[op->layer])
                a->gradient[op->in[i]] = FORM_IDENTITY;
            *of = ways[op->layer];
        }
    }
}

static bool assign_all_ways(const Graph *graph, OpId loss, const uint32_t *ways,
                            Assignment *a)
{
    g_autofree Form *held = g_new0(Form, graph_n_tensors(graph));
    for (uint32_t l = 0; l < graph_n_layers(graph); l++) {
        const bool known = any_of(k, l, ways[k] == ways[l]);
        if (!known)
            assign_ways(graph, loss, ways, ways[l], held, a);
    }
    for (OpId id = 0; id <= loss; id++)
        if (!baseline_assign_backward(graph, id, a))
            return false;
    baseline_add_sums_first(graph, loss, a);
    keep_borders_whole(graph, loss, ways, a);
    for (OpId id = 0; id <= loss; id++)
        if (!baseline_assign_gradients(graph, id, BASELINE_MEGATRON, a))
            return false;
    return true;
}

static bool assign_layers(const Graph *graph, const void *ways, Assignment *a)
{
    const OpId loss = graph_tensor(graph, graph_loss(graph))->producer;
    return assign_all_ways(graph, loss, ways, a);
}

Program *synth_megatron_ways(const Graph *graph, const ClusterView *view,
                             const uint32_t *ways, GError **error)
{
    return baseline_program(graph, view, assign_layers, ways, error);
}
