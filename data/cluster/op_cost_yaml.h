/* Fitted times of op kinds in a cluster's YAML (data/cluster/read.c). Private to data. */
#pragma once

#include "data/cluster/members.h"

typedef struct {
    char *kind;
    OP_MEMBERS(MEMBER_TEXT)
} OpCostText;

extern const cyaml_schema_value_t OP_COST_SCHEMA; /* schema of an OpCostText */

/* Reads the sequence `key` into cost [OP_KINDS] for the kinds that it names; `launch_s` is the
 * default of their launch. KILTER_ERROR_INPUT. */
bool op_costs_read(const Yaml *yaml, const char *key, uint32_t n, const OpCostText *text,
                   double launch_s, OpCost *cost);
/* Whether the numbers are such as a file may say. KILTER_ERROR_INPUT names `what`. */
bool op_cost_check(const OpCost *cost, const char *what, GError **error);
/* The file's sequence of kinds that have costs, without launches equal to the type's `launch_s`. */
json_t *op_costs_json(const OpCost *cost, double launch_s);
