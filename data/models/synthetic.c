/* A workload given by its durations: a chain of `layers` layers, each with a forward time, a
 * backward time and the bytes of a gradient, which is ready when its layer's backward ends. The
 * loss and the updates take no time.
 *
 * A layer adds its parameter to each sample, so that the gradient is a sum over the batch: the
 * smallest layer that data parallelism treats like any other. */
#include "data/models/models.h"

static double gradient_elements(const ModelParams *params)
{
    const DType format = precision_states(params->precision).of[STATE_GRADIENTS];
    return model_param(params, "gradient") / dtype_bytes(format);
}

TensorId model_synthetic(Graph *graph, const ModelParams *params)
{
    const uint32_t batch = model_size(params, "global_batch");
    const uint32_t elements = (uint32_t)gradient_elements(params);
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){batch, elements});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, &batch);
    for (uint32_t i = 0; i < model_size(params, "layers"); i++) {
        g_autofree char *name = g_strdup_printf("layers.%u", i);
        g_autofree char *weight = g_strdup_printf("layers.%u.weight", i);
        graph_layer(graph, name);
        TensorId w = graph_parameter(graph, weight, 1, &elements);
        x = graph_op(graph, OP_ADD_ROWS, name, (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    }
    graph_layer(graph, "loss");
    return graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){x, labels},
                    NULL);
}

void model_synthetic_times(Graph *graph, const ModelParams *params)
{
    graph_set_timed(graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpKind kind = graph_get_op(graph, id)->kind;
        if (kind == OP_ADD_ROWS)
            graph_set_seconds(graph, id, model_param(params, "forward"));
        else if (kind == OP_SUM_ROWS)
            graph_set_seconds(graph, id, model_param(params, "backward"));
    }
}

const char *model_synthetic_check(const ModelParams *params)
{
    const double elements = gradient_elements(params);
    return elements == (uint32_t)elements ? NULL
                                          : "gradient: expected a multiple of 4 B, or of "
                                            "2 B in half precision";
}
