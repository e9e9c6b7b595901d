/* The functions by which known strategies assign forms, op by op (private to synth/baseline*.c).
 * Each returns false if it finds none. */
#pragma once

#include "synth/spmd/assignment.h"

/* The rule that follows cut inputs, the rule by columns over `ways` devices, and the form of a
 * gradient. */
bool baseline_rule_following(const Graph *graph, OpId id, const Form *held, Rule *rule);
bool baseline_rule_columns(const Graph *graph, OpId id, OpId loss, uint32_t ways,
                           const FormSet *absorbed, Rule *rule);
Form baseline_dual(Form form);

/* Assign the backward ops' rules, sums of gradients before communication, and gradients and updates
 * of parameters. */
bool baseline_assign_backward(const Graph *graph, OpId id, Assignment *a);
void baseline_add_sums_first(const Graph *graph, OpId loss, Assignment *a);
bool baseline_assign_gradients(const Graph *graph, OpId id, Baseline baseline,
                               Assignment *a);
/* Assigns forms to a whole graph; false: it cannot be divided so. */
typedef bool BaselineAssign(const Graph *graph, const void *how, Assignment *a);

/* The program of an assignment, at even ratios; KILTER_ERROR_INPUT where there is none. */
Program *baseline_program(const Graph *graph, const ClusterView *view,
                          BaselineAssign *assign, const void *how, GError **error);
