/* Facts: a few numbers that characterise a graph. */
#pragma once

#include "data/graph/graph.h"

typedef struct {
    uint64_t parameters;
    uint64_t active_parameters; /* parameters used by one token: of its experts only */
    /* layers named "layers.0" and so on; all layers if none has such a name */
    uint32_t layers;
    uint64_t
        /* tokens of an iteration: looked up, or patches and class tokens; else elements with a
         * label */
        tokens;
    double forward_flops;
} GraphFacts;

GraphFacts graph_facts(const Graph *graph);
