/* A small graph, and a cluster on which, at the right bandwidth, one number per state is not enough
 * for the search. */
#ifndef KILTER_TESTS_SUPPORT_TWO_LINEARS_H
#define KILTER_TESTS_SUPPORT_TWO_LINEARS_H

#include "data/data.h"

/* x [batch, width] -> y1 [batch, width] -> y2 [batch, width] -> cross entropy. */
static inline Graph *two_linears(uint32_t batch, uint32_t width)
{
    static const char *const name[][2] = {{"w1", "y1"}, {"w2", "y2"}};
    Graph *graph = graph_new("two-linears");
    const TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, &batch);
    TensorId y = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){batch, width});
    for (uint32_t i = 0; i < 2; i++) {
        const TensorId w =
            graph_parameter(graph, name[i][0], 2, (uint32_t[]){width, width});
        y = graph_op(graph, OP_LINEAR, name[i][1], (OpAttr){0}, 2, (TensorId[]){y, w},
                     NULL);
    }
    y = graph_op(graph, OP_LOG_SOFTMAX, "p", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){y, labels},
                 NULL);
    graph_differentiate(graph, y, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

/* Two devices of 2 and 1 MFLOP/s; collectives 0.2 ms + V / bandwidth. */
static inline ClusterView two_devices(Device device[2], double bandwidth)
{
    device[0] = (Device){.name = "fast", .type_name = "fast", .rate = 2e6, .gpus = 1};
    device[1] =
        (Device){.name = "slow", .type_name = "slow", .type = 1, .rate = 1e6, .gpus = 1};
    ClusterView view = {.n_devices = 2, .device = device};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        view.collective[kind] = (LinkCost){2e-4, bandwidth};
    return view;
}

#endif
