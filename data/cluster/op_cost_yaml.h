/* Fitted times of op kinds in a cluster's YAML (data/cluster/read.c), and what its other numbers
 * share. Private to data. */
#ifndef KILTER_DATA_CLUSTER_OP_COST_YAML_H
#define KILTER_DATA_CLUSTER_OP_COST_YAML_H

#include <cyaml/cyaml.h>

#include "data/base/yaml.h"
#include "data/cluster/cluster.h"

enum { NAME_MAX_BYTES = 100 };

/* No hardware is outside of these; inside them sums and quotients of costs stay finite. */
static const double SMALLEST = 1, LARGEST = 1e18, LONGEST_S = 1000;

typedef struct {
    char *kind, *overhead, *rate, *bandwidth, *smallest, *largest, *launch, *wave;
} OpCostText;

#define TEXT(key, type, member, max) \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 1, max)
#define OPTIONAL_TEXT(key, type, member, max)                                           \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
                           1, max)

/* "parent.name". Caller frees. */
static inline char *yaml_key(const char *parent, const char *name)
{
    return g_strconcat(parent, ".", name, NULL);
}

extern const cyaml_schema_value_t OP_COST_SCHEMA; /* of an OpCostText */

/* The `launch` of the section `parent`; nothing where there is none. KILTER_ERROR_INPUT. */
bool launch_read(const Yaml *yaml, const char *parent, const char *text, double *launch_s,
                 GError **error);

/* The sequence `key`: cost[OP_KINDS] of the kinds that it names; `launch_s` where they say none.
 * KILTER_ERROR_INPUT. */
bool op_costs_read(const Yaml *yaml, const char *key, uint32_t n, const OpCostText *text,
                   double launch_s, OpCost *cost, GError **error);

#endif
