/* Splits: which shares divide a sharded tensor or computation. Private to sim.
 *
 * A split is (segment, units of the sharded dim). A computation belongs to its op's segment; an
 * instance to the segment that plan_segments() gives. */
#pragma once

#include "sim/sim.h"

#define SPLIT_NONE UINT32_MAX

/* The splits that the program shards, sorted by (segment, units); *n gets how many.
 * Caller frees. */
SimSplit *sim_split_collect(const Program *program, const Graph *graph,
                            const uint16_t *segment, const uint16_t *instance_segment,
                            uint32_t *n);

/* Index of the split that divides a tensor in this form; SPLIT_NONE unless the form is Gather. */
uint32_t sim_split_of_form(const SimSplit *split, uint32_t n, const Graph *graph,
                           const uint16_t *instance_segment, TensorId tensor, Form form);

/* Index of the split that divides an op under a rule; SPLIT_NONE if no loop is sharded. */
uint32_t sim_split_of_rule(const SimSplit *split, uint32_t n, const uint16_t *segment,
                           OpId op, const Rule *rule);

/* The rule that a computation runs under. */
Rule sim_split_rule(const Graph *graph, const Instr *instr);
