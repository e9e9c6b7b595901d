/* The few numbers that a graph comes down to. */
#ifndef KILTER_DATA_GRAPH_FACTS_H
#define KILTER_DATA_GRAPH_FACTS_H

#include "data/graph/graph.h"

typedef struct {
    uint64_t parameters;
    uint64_t active_parameters; /* that work on one token: of its experts only */
    uint32_t layers; /* that repeat, "layers.0" and so on; all if none has such a name */
    uint64_t
        tokens; /* of an iteration: looked up, or patches and class token; else what has a label */
    double forward_flops;
} GraphFacts;

GraphFacts graph_facts(const Graph *graph);

#endif
