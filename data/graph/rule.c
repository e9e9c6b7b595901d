/* Forms as text, and the rules of an op in a graph. */
#include "data/graph/rule.h"

#include "data/graph/build.h"

#include <stdio.h>
#include <string.h>

const char *form_text(Form form, char buffer[FORM_TEXT])
{
    if (form_is_gather(form))
        snprintf(buffer, FORM_TEXT, "gather(%u)", form_dim(form) % 10);
    else
        snprintf(buffer, FORM_TEXT, "%s", form == FORM_REDUCE ? "reduce" : "identity");
    return buffer;
}

bool form_parse(const char *text, Form *form)
{
    char buffer[FORM_TEXT];
    for (Form candidate = 0; candidate < FORM_MAX; candidate++)
        if (strcmp(text, form_text(candidate, buffer)) == 0) {
            *form = candidate;
            return true;
        }
    return false;
}

uint32_t op_rules(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES])
{
    const OpClass *class = graph_op_class(graph, id);
    if (!class->rule)
        return space_rules(class->kind, class->n_in, class->n_out, &class->space, 2,
                           rule);
    memcpy(rule, class->rule, class->n_rules * sizeof *rule);
    return class->n_rules;
}

uint32_t op_rules_of_one(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES])
{
    const OpClass *class = graph_op_class(graph, id);
    return space_rules(class->kind, class->n_in, class->n_out, &class->space, 1, rule);
}

uint32_t op_cut_with(const Op *op, const Form *form, uint32_t operand)
{
    KILTER_ASSERT(operand < op->n_in + op->n_out);
    const uint32_t index = op_kind_index(op->kind);
    return operand == op_kind_looked_up(op->kind) && form_is_gather(form[index])
               ? index
               : operand;
}

bool op_rule_find(const Graph *graph, OpId id, const Form *form, Rule *rule)
{
    KILTER_ASSERT(id < graph_n_ops(graph));
    const OpClass *class = graph_op_class(graph, id);
    for (uint32_t r = 0; r < class->n_rules; r++)
        if (memcmp(class->rule[r].form, form, class->n_in + class->n_out) == 0) {
            *rule = class->rule[r];
            return true;
        }
    return false;
}
