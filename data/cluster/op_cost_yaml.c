/* Fitted costs in a cluster's file. */
#include "data/cluster/op_cost_yaml.h"

#include <math.h>

static const Member MEMBERS[] = {OP_MEMBERS(MEMBER_ROW)};

static const cyaml_schema_field_t OP[] = {
    TEXT("kind", OpCostText, kind, NAME_MAX_BYTES),
    OP_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END,
};
const cyaml_schema_value_t OP_COST_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, OpCostText, OP)};

static bool read_op(const Yaml *yaml, const char *key, const OpCostText *text,
                    double launch_s, OpCost *list)
{
    const OpKind kind = op_kind_from_name(text->kind);
    if (kind == OP_KINDS || list[kind].largest > 0)
        return yaml_wrong(yaml, yaml_at(yaml, "%s.kind", key),
                          "expected the name of an op kind that was not given yet, got "
                          "'%s'",
                          text->kind);
    OpCost *cost = &list[kind];
    cost->rate = cost->bandwidth = INFINITY;
    cost->launch_s = launch_s;
    return MEMBERS_READ(yaml, key, MEMBERS, text, cost);
}

bool op_costs_read(const Yaml *yaml, const char *key, uint32_t n, const OpCostText *text,
                   double launch_s, OpCost *cost)
{
    return all_of(
        i, n, read_op(yaml, yaml_at(yaml, "%s[%u]", key, i), &text[i], launch_s, cost));
}

bool op_cost_check(const OpCost *cost, const char *what, GError **error)
{
    return MEMBERS_CHECK(MEMBERS, cost, what, error);
}

json_t *op_costs_json(const OpCost *cost, double launch_s)
{
    json_t *list = json_array();
    for (uint32_t kind = 0; kind < OP_KINDS; kind++) {
        if (cost[kind].largest == 0)
            continue;
        json_t *op = json_pack("{s:s}", "kind", op_kind_name((OpKind)kind));
        MEMBERS_JSON(MEMBERS, &cost[kind], op);
        if (cost[kind].launch_s == launch_s)
            json_object_del(op, "launch");
        json_array_append_new(list, op);
    }
    return list;
}
