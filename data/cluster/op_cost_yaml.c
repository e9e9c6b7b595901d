/* The schema of fitted costs in a cluster's file. */
#include "data/cluster/op_cost_yaml.h"

#include <math.h>

#include "data/base/error.h"

enum { WAVE_MAX = 1000000000 };

static const cyaml_schema_field_t OP[] = {
    TEXT("kind", OpCostText, kind, NAME_MAX_BYTES),
    TEXT("overhead", OpCostText, overhead, NAME_MAX_BYTES),
    OPTIONAL_TEXT("rate", OpCostText, rate, NAME_MAX_BYTES),
    OPTIONAL_TEXT("bandwidth", OpCostText, bandwidth, NAME_MAX_BYTES),
    TEXT("smallest", OpCostText, smallest, NAME_MAX_BYTES),
    TEXT("largest", OpCostText, largest, NAME_MAX_BYTES),
    OPTIONAL_TEXT("launch", OpCostText, launch, NAME_MAX_BYTES),
    OPTIONAL_TEXT("wave", OpCostText, wave, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};
const cyaml_schema_value_t OP_COST_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, OpCostText, OP)};

bool launch_read(const Yaml *yaml, const char *parent, const char *text, double *launch_s,
                 GError **error)
{
    g_autofree char *key = yaml_key(parent, "launch");
    return !text ||
           yaml_quantity(yaml, key, text, (YamlRange){QUANTITY_TIME, 0, LONGEST_S},
                         launch_s, error);
}

static bool read_op(const Yaml *yaml, const char *key, const OpCostText *text,
                    double launch_s, OpCost *list, GError **error)
{
    const OpKind kind = op_kind_from_name(text->kind);
    g_autofree char *kind_key = yaml_key(key, "kind"),
                    *overhead = yaml_key(key, "overhead");
    g_autofree char *rate = yaml_key(key, "rate"),
                    *bandwidth = yaml_key(key, "bandwidth");
    g_autofree char *smallest = yaml_key(key, "smallest"),
                    *largest = yaml_key(key, "largest");
    g_autofree char *wave = yaml_key(key, "wave");
    if (kind == OP_KINDS || list[kind].largest > 0)
        return yaml_fail(yaml, error, kind_key,
                         "expected the name of an op kind that was not given yet, got "
                         "'%s'",
                         text->kind);
    OpCost *cost = &list[kind];
    cost->rate = cost->bandwidth = INFINITY;
    cost->launch_s = launch_s;
    return yaml_quantity(yaml, overhead, text->overhead,
                         (YamlRange){QUANTITY_TIME, 0, LONGEST_S}, &cost->overhead_s,
                         error) &&
           (!text->rate || yaml_quantity(yaml, rate, text->rate,
                                         (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                                         &cost->rate, error)) &&
           (!text->bandwidth ||
            yaml_quantity(yaml, bandwidth, text->bandwidth,
                          (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                          &cost->bandwidth, error)) &&
           yaml_quantity(yaml, smallest, text->smallest,
                         (YamlRange){QUANTITY_BYTES, 0, LARGEST}, &cost->smallest,
                         error) &&
           yaml_quantity(
               yaml, largest, text->largest,
               (YamlRange){QUANTITY_BYTES, fmax(cost->smallest, SMALLEST), LARGEST},
               &cost->largest, error) &&
           launch_read(yaml, key, text->launch, &cost->launch_s, error) &&
           (!text->wave ||
            yaml_uint(yaml, wave, text->wave, 0, WAVE_MAX, &cost->wave, error));
}

bool op_costs_read(const Yaml *yaml, const char *key, uint32_t n, const OpCostText *text,
                   double launch_s, OpCost *cost, GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *entry = g_strdup_printf("%s[%u]", key, i);
        if (!read_op(yaml, entry, &text[i], launch_s, cost, error))
            return false;
    }
    return true;
}
