/* Weights cut by columns, and whether their results can stay cut (synth/spmd/columns.h). */
#include "synth/spmd/columns.h"

#include <string.h>

/* The rule that shards loop `l`, if it can be. */
static bool rule_over(const Graph *graph, OpId op, int l, Rule *rule)
{
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, op, all);
    for (uint32_t r = 0; r < n; r++)
        if (all[r].loop >= 0 && all[r].loop == l) {
            *rule = all[r];
            return true;
        }
    return false;
}

/* The number of the op's factors (inputs that are not added), except factor `except`, that have
 * loop `l`. */
static uint32_t count_factors(const Op *op, const OpSpace *space, uint32_t except, int l)
{
    KILTER_ASSERT(except <= op->n_in);
    return sum_over(uint32_t, i, op->n_in,
                    i != except && !(space->added >> i & 1u) &&
                        space_driven_dim(space, i, l) >= 0);
}

bool columns_rule(const Graph *graph, OpId id, bool experts, uint32_t ways, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    graph_op_space(graph, id, &space);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Tensor *weight = graph_tensor(graph, op->in[i]);
        bool is_weight = false;
        int over = -1;
        for (uint32_t d = weight->rank; weight->role == ROLE_PARAMETER && d-- > 0;) {
            int l = space.dim_loop[i][d];
            bool column = !(space.added >> i & 1u) && !count_factors(op, &space, i, l);
            is_weight |= column;
            if ((experts ? !column && space_driven_dim(&space, op->n_in, l) >= 0
                         : column) &&
                space.loop[l].shardable && (over < 0 || weight->units[d] >= ways))
                over = l;
        }
        if (is_weight && rule_over(graph, id, over, rule))
            return true;
    }
    return false;
}

/* Whether an op can read activation `tensor` in a form: it is whole, or among the available forms
 * `had`. */
static bool can_read(const Graph *graph, TensorId tensor, Form form, const FormSet *had)
{
    return !is_activation(graph, tensor) || form == FORM_IDENTITY ||
           (form_is_gather(form) && (had[tensor] >> form & 1u));
}

/* The forms in which the op can read input `i` cut, and its other activations whole or in available
 * forms, so that the cut ends in partial sums. */
static FormSet absorbed_forms(const Graph *graph, OpId id, uint32_t i,
                              const FormSet *absorbed, const FormSet *had)
{
    const Op *op = graph_get_op(graph, id);
    Rule all[OP_MAX_RULES];
    FormSet forms = 0;
    for (uint32_t r = op_rules(graph, id, all); r-- > 0;) {
        bool ends = form_is_gather(all[r].form[i]);
        for (uint32_t k = 0; k < op->n_in; k++)
            ends &= k == i || can_read(graph, op->in[k], all[r].form[k], had);
        for (uint32_t o = 0; o < op->n_out; o++) {
            Form out = all[r].form[op->n_in + o];
            ends &= out == FORM_REDUCE || (absorbed[op->out[o]] >> out & 1u);
        }
        if (ends)
            forms |= (FormSet)(1u << all[r].form[i]);
    }
    return forms;
}

/* Finds the forms in which the op's outputs can be made cut, and sets them in `had`: by columns of
 * its weight, or along with its inputs, as far as all readers absorb them. */
static bool find_made(const Graph *graph, OpId id, uint32_t ways, const FormSet *absorbed,
                      FormSet *had)
{
    const Op *op = graph_get_op(graph, id);
    Rule all[OP_MAX_RULES], columns = {.loop = -1};
    const bool by_columns = columns_rule(graph, id, false, ways, &columns);
    uint32_t can = 0; /* bit r: rule r */
    const uint32_t n = op_rules(graph, id, all);
    for (uint32_t r = 0; r < n; r++) {
        bool follows = true, cut = by_columns && all[r].loop == columns.loop;
        for (uint32_t i = 0; i < op->n_in; i++) {
            follows &= can_read(graph, op->in[i], all[r].form[i], had);
            cut |= is_activation(graph, op->in[i]) && form_is_gather(all[r].form[i]);
        }
        can |= (uint32_t)(follows && cut) << r;
    }
    bool changed = false;
    for (uint32_t o = 0; o < op->n_out; o++) {
        FormSet made = 0;
        for (uint32_t r = 0; r < n; r++)
            made |= (FormSet)((can >> r & 1u) << all[r].form[op->n_in + o]);
        made &= absorbed[op->out[o]];
        changed |= made != had[op->out[o]];
        had[op->out[o]] = made;
    }
    return changed;
}

/* Starts from all forms and removes forms until all absorbed forms are available. */
FormSet *columns_absorbed(const Graph *graph, OpId loss, uint32_t ways)
{
    const size_t n = graph_n_tensors(graph);
    FormSet *absorbed = g_new(FormSet, n);
    g_autofree FormSet *had = g_new(FormSet, n);
    memset(had, 0xff, n * sizeof *had);
    for (bool changed = true; changed;) {
        memset(absorbed, 0xff, n * sizeof *absorbed);
        for (OpId id = loss + 1; id-- > 0;) {
            const Op *op = graph_get_op(graph, id);
            for (uint32_t i = 0; i < op->n_in; i++)
                absorbed[op->in[i]] &= absorbed_forms(graph, id, i, absorbed, had);
        }
        changed = false;
        for (OpId id = 0; id <= loss; id++)
            changed |= find_made(graph, id, ways, absorbed, had);
    }
    return absorbed;
}
