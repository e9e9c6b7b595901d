/* Deterministic values of a graph's inputs, and differences. */
#include <math.h>

#include "exec/kernels/mask.h"
#include "exec/tensor.h"

/* Twice the sum of three uniform numbers in [-1/2, 1/2): variance 1, and close to normal. */
static double near_normal(uint64_t hash)
{
    const uint64_t mask = (UINT64_C(1) << 21) - 1;
    const uint64_t sum = (hash & mask) + (hash >> 21 & mask) + (hash >> 42 & mask);
    return 2 * ((double)sum * 0x1p-21 - 1.5);
}

/* How the consumers of a tensor read it. */
struct ExecReading {
    uint32_t vocabulary; /* the range of the indices it holds; 0: it holds numbers */
    bool squared;        /* a second moment or a sum of exponentials */
    bool master;         /* the copy of a parameter that is updated */
};

static uint32_t vocabulary_of(const Graph *graph, OpId id)
{
    OpSpace space;
    graph_op_space(graph, id, &space);
    for (uint32_t l = 0; l < space.n_loops; l++)
        if (space.loop[l].letter == LOOP_VOCABULARY)
            return space.loop[l].extent;
    g_assert_not_reached();
}

ExecReading *exec_readings_new(const Graph *graph)
{
    ExecReading *readings = g_new0(ExecReading, graph_n_tensors(graph));
    ops_each (op, o, graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            ExecReading *reading = &readings[op->in[i]];
            if (i == op_kind_index(op->kind))
                reading->vocabulary = vocabulary_of(graph, o);
            reading->squared |=
                (g_str_has_prefix(op_kind_name(op->kind), "adam") && i == 3) ||
                (g_str_has_prefix(op_kind_name(op->kind), "adafactor") && i >= 2) ||
                (op->kind == OP_LOG_SUM_EXP && i == 0);
            reading->master |= i + 1 == op->n_in && op_kind_has_master(op->kind);
        }
    }
    return readings;
}

ExecTensor exec_value_new(const Graph *graph, const ExecReading *readings, TensorId id,
                          uint64_t seed)
{
    g_assert(id < graph_n_tensors(graph));
    const Tensor *tensor = graph_tensor(graph, id);
    const ExecReading reading = readings[id];
    if (reading.master && tensor->of != GRAPH_NONE)
        return exec_value_new(graph, readings, tensor->of, seed);
    ExecTensor value = exec_tensor_new(tensor->rank, tensor->dim);
    const uint64_t n = tensor_elements(tensor), stream = mask_mix(seed ^ mask_mix(id));
    if (graph_loss(graph) != GRAPH_NONE &&
        id == graph_gradient(graph, graph_loss(graph))) {
        value.data[0] = 1;
        return value;
    }
    const bool weight = tensor->role == ROLE_PARAMETER && tensor->rank > 1;
    const double scale = weight && n > 0 ? sqrt(2.0 * tensor->dim[0] / (double)n) : 1;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t hash = mask_mix(stream + i);
        const double x = scale * near_normal(hash);
        value.data[i] = reading.vocabulary ? (double)(hash % reading.vocabulary)
                        : reading.squared  ? x * x
                                           : x;
    }
    return value;
}

ExecTensor *exec_values_new(const Graph *graph, uint64_t seed)
{
    g_autofree ExecReading *readings = exec_readings_new(graph);
    ExecTensor *value = g_new0(ExecTensor, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->producer == GRAPH_NONE)
            value[t] = exec_value_new(graph, readings, t, seed);
    return value;
}

void exec_values_free(const Graph *graph, ExecTensor *value)
{
    for (TensorId t = 0; value && t < graph_n_tensors(graph); t++)
        exec_tensor_clear(&value[t]);
    g_free(value);
}

double exec_difference(const double *got, const double *want, uint64_t n, double scale)
{
    g_assert(scale >= 0);
    double largest = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double difference = fabs(got[i] - want[i]);
        if (!isfinite(difference))
            return INFINITY;
        largest = fmax(largest, difference);
    }
    return largest > 0 ? largest / scale : 0;
}

double exec_magnitude(const ExecTensor *tensor)
{
    double largest = 0;
    for (uint64_t i = 0; i < exec_tensor_elements(tensor); i++)
        largest = fmax(largest, fabs(tensor->data[i]));
    return largest;
}
