/* A plan in words: for each layer of the model its pattern, the forms of its tensors and its
 * collectives; then the stages that take the time and the devices that they wait for.
 *
 * The names of patterns, as far as one applies, by the dimension over which an op is sharded:
 *
 *     data parallel        the batch                             column parallel      output features of the weight
 *     sequence parallel    another dim of the activation alone   row parallel         its input features
 *     expert parallel      weight, input and output              vocabulary parallel  rows of the table
 *     SFB                  data parallel, but the weight's gradient is computed in full from its gathered factors
 *     one device           none, in a group of one device (replicas in a group have parts of the batch: data parallel)
 *     replicated           none                                  partial sums         none; the input is a partial sum
 *
 * and "with ZeRO-1, -2, -3": moments, moments and gradients, or the parameters too are sharded
 * where the op uses them whole. Collectives are priced one by one: under --set bucket=... fused
 * collectives share one latency, which each of them shows. */
#pragma once

#include <jansson.h>

#include "sim/sim.h"

/* {"layers": [{"names", "pattern" (null: no op of it has a weight), "patterns", "parameters",
 * "activations", "collectives"}], "stages": [...]}, where layers that differ only in name are one
 * entry, in the order of the first. In a program with groups a layer has "stages" (see
 * explain.c). Tensors are named without their layer's prefix. `report`: the plan's. */
json_t *explain_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                     const SimReport *report);

/* The same as text. words: the text of sim_timeline_explain() on the report's timeline, which
 * replaces the stages; NULL where the report has no timeline. Caller frees. */
char *explain_text(const json_t *explanation, const char *words);
