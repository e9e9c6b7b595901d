/* The splits by which a program divides tensors and work. */
#include "sim/cost/split.h"

#include <stdlib.h>

#include "data/base/order.h"

static uint32_t op_segment(const uint16_t *segment, OpId op)
{
    KILTER_ASSERT(op != GRAPH_NONE);
    return segment ? segment[op] : 0;
}

static ORDER_DEFINE(compare, SimSplit, ASCENDING(segment), ASCENDING(units));

/* Adds a split if it is new. Most splits repeat those of the last instructions, so the latest
 * splits stand last and are searched first. */
static void collect(GArray *splits, SimSplit split)
{
    enum { LATEST = 16 };
    for (uint32_t i = 1; i <= splits->len && i <= LATEST; i++) {
        SimSplit *known = &g_array_index(splits, SimSplit, splits->len - i);
        if (known->segment == split.segment && known->units == split.units) {
            *known = g_array_index(splits, SimSplit, splits->len - 1);
            g_array_index(splits, SimSplit, splits->len - 1) = split;
            return;
        }
    }
    g_array_append_val(splits, split);
}

static void collect_form(GArray *splits, const Graph *graph,
                         const uint16_t *instance_segment, TensorId tensor, Form form)
{
    if (!form_is_gather(form))
        return;
    collect(splits,
            (SimSplit){instance_segment[(size_t)tensor * FORM_MAX + form_inside(form)],
                       graph_tensor(graph, tensor)->units[form_dim(form)]});
}

static void collect_instr(GArray *splits, const Graph *graph, const uint16_t *segment,
                          const uint16_t *instance_segment, const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE) {
        if (instr->kind != INSTR_LOAD)
            collect_form(splits, graph, instance_segment, instr->tensor, instr->from);
        collect_form(splits, graph, instance_segment, instr->tensor, instr->to);
        return;
    }
    const Op *op = graph_get_op(graph, instr->op);
    const Rule rule = sim_split_rule(graph, instr);
    if (rule.loop >= 0)
        collect(splits, (SimSplit){op_segment(segment, instr->op), rule.units});
    for (uint32_t i = 0; i < op->n_in; i++)
        collect_form(splits, graph, instance_segment, op->in[i], instr->form[i]);
    for (uint32_t i = 0; i < op->n_out; i++)
        collect_form(splits, graph, instance_segment, op->out[i],
                     instr->form[op->n_in + i]);
}

SimSplit *sim_split_collect(const Program *program, const Graph *graph,
                            const uint16_t *segment, const uint16_t *instance_segment,
                            uint32_t *n)
{
    GArray *splits = g_array_new(false, false, sizeof(SimSplit));
    for (uint32_t i = 0; i < program->n; i++)
        collect_instr(splits, graph, segment, instance_segment, &program->instr[i]);
    g_array_sort(splits, compare);
    SimSplit *split = (SimSplit *)(void *)splits->data;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < splits->len; i++)
        if (kept == 0 || compare(&split[kept - 1], &split[i]) != 0)
            split[kept++] = split[i];
    *n = kept;
    return (SimSplit *)(void *)g_array_free(splits, false);
}

static uint32_t split_find(const SimSplit *split, uint32_t n, uint32_t segment,
                           uint32_t units)
{
    const SimSplit key = {segment, units};
    const SimSplit *found = n ? bsearch(&key, split, n, sizeof key, compare) : NULL;
    g_assert(found);
    return (uint32_t)(found - split);
}

uint32_t sim_split_of_form(const SimSplit *split, uint32_t n, const Graph *graph,
                           const uint16_t *instance_segment, TensorId tensor, Form form)
{
    if (!form_is_gather(form))
        return SPLIT_NONE;
    return split_find(split, n,
                      instance_segment[(size_t)tensor * FORM_MAX + form_inside(form)],
                      graph_tensor(graph, tensor)->units[form_dim(form)]);
}

uint32_t sim_split_of_rule(const SimSplit *split, uint32_t n, const uint16_t *segment,
                           OpId op, const Rule *rule)
{
    if (rule->loop < 0)
        return SPLIT_NONE;
    return split_find(split, n, op_segment(segment, op), rule->units);
}

Rule sim_split_rule(const Graph *graph, const Instr *instr)
{
    Rule rule = {.loop = -1};
    const bool found = op_rule_find(graph, instr->op, instr->form, &rule);
    g_assert(found); /* the program passed program_check */
    return rule;
}
