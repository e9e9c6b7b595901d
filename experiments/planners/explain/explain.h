/* A plan in words: per layer of the model the pattern that it follows, the forms of its tensors and
 * its collectives; then the stages that take the time and the devices that they wait for.
 *
 * The names of patterns, as far as one fits, by what the loop that an op is sharded over runs
 * through:
 *
 *     data parallel        the batch                             column parallel      output features of the weight
 *     sequence parallel    another dim of the activation alone   row parallel         its input features
 *     expert parallel      weight, input and output              vocabulary parallel  rows of the table
 *     SFB                  data parallel, but the weight's gradient is computed in full from its gathered factors
 *     one device           none, in a group of one            (in a group with replicas they have the batch's parts: data parallel)
 *     replicated           none                                  partial sums         none; what comes in is a partial sum
 *
 * and "with ZeRO-1, -2, -3": moments, moments and gradients, or the parameters too are sharded
 * where the op uses them whole. Collectives are priced one by one: under --set bucket=... those
 * that are fused share a latency which they show each. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_EXPLAIN_EXPLAIN_H
#define KILTER_EXPERIMENTS_PLANNERS_EXPLAIN_EXPLAIN_H

#include <jansson.h>

#include "sim/sim.h"

/* {"layers": [{"names", "pattern" (null: no op of it has a weight), "patterns", "parameters",
 * "activations", "collectives"}], "stages": [...]}, where layers that are alike in all but name are
 * one entry, in the order of the first; of a program with groups a layer has its "stages" (see
 * explain/stages.h). Tensors are named without their layer's prefix. The report
 * is of the plan. */
json_t *explain_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                     const SimReport *report);

/* The same as text. words: what the iteration waits for, as sim_timeline_explain() says it of the
 * report's timeline, in place of the stages; NULL where the report has none. Caller frees. */
char *explain_text(const json_t *explanation, const char *words);

#endif
