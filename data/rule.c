#include "data/rule.h"

#include "data/space.h"

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

/* Dim of `operand` that loop `l` drives, or -1. */
static int driven_dim(const OpSpace *space, uint32_t operand, uint32_t l)
{
    for (int d = 0; d < TENSOR_MAX_RANK; d++)
        if (space->dim_loop[operand][d] == (int)l)
            return d;
    return -1;
}

static void rule_shard(const Op *op, const OpSpace *space, uint32_t l, Rule *rule)
{
    double flops = space_flops(op->kind, space, -1);
    *rule = (Rule){.loop = (int8_t)l, .units = space->loop[l].units};
    rule->flops_sharded = space_flops(op->kind, space, (int)l);
    rule->flops_replicated = flops - rule->flops_sharded;
    bool sums = false; /* l is a reduction: outputs are partial sums */
    for (uint32_t o = op->n_in; o < op->n_in + op->n_out; o++) {
        int d = driven_dim(space, o, l);
        rule->form[o] = d >= 0 ? form_gather((uint32_t)d) : FORM_REDUCE;
        sums |= d < 0;
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        int d = driven_dim(space, i, l);
        rule->form[i] = d >= 0                             ? form_gather((uint32_t)d)
                        : sums && (space->added >> i & 1u) ? FORM_REDUCE
                                                           : FORM_IDENTITY;
    }
}

static void rule_linear(const Op *op, const OpSpace *space, uint8_t group, Rule *rule)
{
    *rule = (Rule){.loop = -1, .flops_replicated = space_flops(op->kind, space, -1)};
    uint32_t reduced = group | space->added;
    for (uint32_t operand = 0; operand < op->n_in + op->n_out; operand++)
        rule->form[operand] = operand >= op->n_in || (reduced >> operand & 1u)
                                  ? FORM_REDUCE
                                  : FORM_IDENTITY;
}

uint32_t op_rules(const Graph *graph, OpId id, Rule rule[OP_MAX_RULES])
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    graph_op_space(graph, id, &space);
    uint32_t n = 0;
    rule[n++] = (Rule){.loop = -1, .flops_replicated = space_flops(op->kind, &space, -1)};
    for (uint32_t g = 0; g < space.n_linear; g++)
        rule_linear(op, &space, space.linear[g], &rule[n++]);
    for (uint32_t l = 0; l < space.n_loops; l++)
        if (space.loop[l].shardable && space.loop[l].units > 1)
            rule_shard(op, &space, l, &rule[n++]);
    return n;
}

bool op_rule_find(const Graph *graph, OpId id, const Form *form, Rule *rule)
{
    const Op *op = graph_get_op(graph, id);
    Rule all[OP_MAX_RULES];
    uint32_t n = op_rules(graph, id, all);
    for (uint32_t r = 0; r < n; r++)
        if (memcmp(all[r].form, form, op->n_in + op->n_out) == 0) {
            *rule = all[r];
            return true;
        }
    return false;
}
