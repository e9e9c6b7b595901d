/* How known strategies assign forms, op by op (private to synth/baseline*.c). Each returns false where it cannot. */
#ifndef KILTER_SYNTH_BASELINE_PARTS_H
#define KILTER_SYNTH_BASELINE_PARTS_H

#include "synth/assignment.h"

/* The rule that goes along with what comes in cut; the one by columns, for so many `ways`; the form of a gradient. */
bool baseline_rule_following(const Graph *graph, OpId id, const Form *held, Rule *rule);
bool baseline_rule_columns(const Graph *graph, OpId id, OpId loss, uint32_t ways,
                           const FormSet *absorbed, Rule *rule);
Form baseline_dual(Form form);

/* The backward op's rule; sums of gradients before what they are added to; gradients and updates of parameters. */
bool baseline_assign_backward(const Graph *graph, OpId id, Assignment *a);
void baseline_add_sums_first(const Graph *graph, OpId loss, Assignment *a);
bool baseline_assign_gradients(const Graph *graph, OpId id, Baseline baseline,
                               Assignment *a);

#endif
