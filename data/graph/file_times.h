/* Measured times as JSON, of graph files and of profiles (private to data). Readers return what is
 * wrong, or NULL. */
#pragma once

#include "data/graph/graph.h"

#include <jansson.h>

/* {op: {type: [[samples, seconds], ...], ...}, ...}. A new reference. */
json_t *graph_times_json(const Graph *graph);

/* Reads that; every opaque op has to have times. `times` may be NULL. Caller frees the message. */
char *graph_times_read(Graph *graph, const json_t *times);

/* {type: points, ...} of one op, which takes the given part of these seconds. Caller frees the
 * message. */
char *op_times_read(Graph *graph, OpId id, const json_t *value, double samples,
                    double part);
