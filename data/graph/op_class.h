/* Classes of ops: ops of equal kind and shapes, and of equal units once the graph is sealed, share
 * their iteration space and their rules (private to data). */
#pragma once

#include "data/graph/rule.h"
#include "data/graph/space.h"

typedef struct {
    uint32_t index; /* dense */
    OpKind kind;
    OpSpace space;
    uint32_t n_in, n_out;
    Shape out[OP_MAX_OUT];
    uint32_t n_rules; /* 0 before the graph is sealed */
    Rule *rule;       /* NULL before the graph is sealed */
    bool has_queries; /* there is one more rule, for shards only */
    Rule queries;
} OpClass;

typedef struct OpClasses OpClasses;
OpClasses *op_classes_new(void);
void op_classes_free(OpClasses *classes);

/* The class of ops with inputs of these shapes, units 1; see space_bind. Among the constants only
 * attention's masks distinguish classes. */
const OpClass *op_classes_bind(OpClasses *classes, OpKind kind, const OpAttr *attr,
                               uint32_t n_in, const Shape *in, const char *extents);

/* The class, with its rules, of ops of class `plain` whose loops are cut into `units` [n_loops]
 * pieces. */
const OpClass *op_classes_cut(OpClasses *classes, const OpClass *plain,
                              const uint32_t *units);

/* The rule that divides queries; false if the space has none. */
bool space_queries_rule(OpKind kind, uint32_t n_in, uint32_t n_out, const OpSpace *space,
                        Rule *rule);

/* All rules of a space, for loops of at least `least_units` units; returns their number. */
uint32_t space_rules(OpKind kind, uint32_t n_in, uint32_t n_out, const OpSpace *space,
                     uint32_t least_units, Rule rule[OP_MAX_RULES]);
