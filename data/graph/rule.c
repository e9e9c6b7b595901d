/* Forms as text, and the rules of an op in a graph. */
#include "data/graph/rule.h"

#include "data/base/assert.h"
#include "data/graph/build.h"

#include <stdio.h>
#include <string.h>

static char *append_form(char *to, const char *end, Form form)
{
    const int n =
        form_is_gather(form)
            ? snprintf(to, (size_t)(end - to), "gather(%u)", form_dim(form) % 10)
            : snprintf(to, (size_t)(end - to), "%s",
                       form == FORM_REDUCE ? "reduce" : "identity");
    return to + n;
}

const char *form_text(Form form, char buffer[FORM_TEXT])
{
    const char *end = buffer + FORM_TEXT;
    char *to = append_form(buffer, end, form_inside(form));
    if (form_outer(form)) {
        *to++ = '/';
        to = append_form(to, end, form_shards(form));
    }
    if (form_replicas(form)) {
        *to++ = '/';
        append_form(to, end, form_replicas(form));
    }
    return buffer;
}

bool form_parse(const char *text, Form *form)
{
    char buffer[FORM_TEXT];
    for (uint32_t candidate = 0; candidate < FORM_OUTERS * 8; candidate++)
        if (form_inside((Form)candidate) < FORM_MAX &&
            form_shards((Form)candidate) < FORM_MAX &&
            strcmp(text, form_text((Form)candidate, buffer)) == 0) {
            *form = (Form)candidate;
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
    KILTER_ASSERT(class->n_rules <= OP_MAX_RULES);
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

static bool find_rule(const OpClass *class, const Form *plain, Rule *rule)
{
    const uint32_t n = class->n_in + class->n_out;
    for (const Rule *r = class->rule; r < class->rule + class->n_rules; r++) {
        uint32_t i = 0;
        while (i < n && r->form[i] == plain[i])
            i++;
        if (i == n) {
            *rule = *r;
            return true;
        }
    }
    return false;
}

bool op_rule_find(const Graph *graph, OpId id, const Form *form, Rule *rule)
{
    KILTER_ASSERT(id < graph_n_ops(graph));
    const OpClass *class = graph_op_class(graph, id);
    Form plain[OP_MAX_OPERANDS];
    for (uint32_t i = 0; i < class->n_in + class->n_out; i++)
        plain[i] = form_inside(form[i]);
    return find_rule(class, plain, rule);
}

uint32_t op_shard_rules(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES + 1])
{
    const OpClass *class = graph_op_class(graph, id);
    const uint32_t n = op_rules(graph, id, rule);
    if (class->has_queries)
        rule[n] = class->queries;
    return n + class->has_queries;
}

bool op_rule_of_shards(const Graph *graph, OpId id, const Form *form, Rule *rule)
{
    const OpClass *class = graph_op_class(graph, id);
    const uint32_t n = class->n_in + class->n_out;
    Form plain[OP_MAX_OPERANDS], any = 0;
    for (uint32_t i = 0; i < n; i++)
        any |= plain[i] = form_shards(form[i]);
    if (any == FORM_IDENTITY) {
        *rule = class->rule[0];
        return true;
    }
    if (find_rule(class, plain, rule))
        return true;
    *rule = class->queries;
    return class->has_queries && memcmp(plain, rule->form, n * sizeof *plain) == 0;
}

bool op_rule_of_replicas(const Graph *graph, OpId id, const Form *form, Rule *rule)
{
    const OpClass *class = graph_op_class(graph, id);
    Form plain[OP_MAX_OPERANDS], any = 0;
    for (uint32_t i = 0; i < class->n_in + class->n_out; i++)
        any |= plain[i] = form_replicas(form[i]);
    if (any != FORM_IDENTITY)
        return find_rule(class, plain, rule);
    *rule = class->rule[0];
    return true;
}
