/* Rules from an iteration space. */
#include "data/base/assert.h"
#include "data/graph/op_class.h"

int space_driven_dim(const OpSpace *space, uint32_t operand, uint32_t l)
{
    KILTER_ASSERT(operand < OP_MAX_OPERANDS && l < space->n_loops);
    for (int d = 0; d < TENSOR_MAX_RANK; d++)
        if (space->dim_loop[operand][d] == (int)l)
            return d;
    return -1;
}

static void rule_shard(OpKind kind, uint32_t n_in, uint32_t n_out, const OpSpace *space,
                       uint32_t l, double flops, Rule *rule)
{
    KILTER_ASSERT(l < space->n_loops && n_in + n_out <= OP_MAX_OPERANDS);
    *rule = (Rule){.loop = (int8_t)l, .units = space->loop[l].units};
    rule->flops_sharded = space_flops(kind, space, (int)l);
    rule->flops_replicated = flops - rule->flops_sharded;
    bool sums = false; /* l is a reduction: outputs are partial sums */
    for (uint32_t o = n_in; o < n_in + n_out; o++) {
        int d = space_driven_dim(space, o, l);
        rule->form[o] = d >= 0 ? form_gather((uint32_t)d) : FORM_REDUCE;
        sums |= d < 0;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        int d = space_driven_dim(space, i, l);
        rule->form[i] = d >= 0                             ? form_gather((uint32_t)d)
                        : sums && (space->added >> i & 1u) ? FORM_REDUCE
                                                           : FORM_IDENTITY;
    }
}

static void rule_linear(uint32_t n_in, uint32_t n_out, const OpSpace *space,
                        uint8_t group, double flops, Rule *rule)
{
    KILTER_ASSERT(group != 0 && n_in + n_out <= OP_MAX_OPERANDS);
    *rule = (Rule){.loop = -1, .flops_replicated = flops};
    uint32_t reduced = group | space->added;
    for (uint32_t operand = 0; operand < n_in + n_out; operand++)
        rule->form[operand] =
            operand >= n_in || (reduced >> operand & 1u) ? FORM_REDUCE : FORM_IDENTITY;
}

uint32_t space_rules(OpKind kind, uint32_t n_in, uint32_t n_out, const OpSpace *space,
                     uint32_t least_units, Rule rule[OP_MAX_RULES])
{
    double flops = space_flops(kind, space, -1);
    uint32_t n = 0;
    rule[n++] = (Rule){.loop = -1, .flops_replicated = flops};
    for (uint32_t g = 0; g < space->n_linear; g++)
        rule_linear(n_in, n_out, space, space->linear[g], flops, &rule[n++]);
    for (uint32_t l = 0; l < space->n_loops; l++)
        if (space->loop[l].shardable && space->loop[l].units >= least_units)
            rule_shard(kind, n_in, n_out, space, l, flops, &rule[n++]);
    KILTER_ASSERT(n > 0 && n <= OP_MAX_RULES);
    return n;
}

bool space_queries_rule(OpKind kind, uint32_t n_in, uint32_t n_out, const OpSpace *space,
                        Rule *rule)
{
    for (uint32_t l = 0; l < space->n_loops; l++)
        if (space->loop[l].divided && space->loop[l].units > 1) {
            rule_shard(kind, n_in, n_out, space, l, space_flops(kind, space, -1), rule);
            return true;
        }
    return false;
}
