/* Tensors of the reference: whole, or a device's shard. */
#pragma once

#include "data/graph/graph.h"

/* A tensor or a device's shard of one: row-major doubles (integers stored exactly). `offset` is
 * where the shard begins in the whole tensor, so that masks (dropout, vocabulary shards) see global
 * indices. */
typedef struct {
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
    uint32_t offset[TENSOR_MAX_RANK];
    double *data;
} ExecTensor;

ExecTensor exec_tensor_new(uint32_t rank, const uint32_t *dim); /* zeros, offset 0 */
void exec_tensor_clear(ExecTensor *tensor);
uint64_t exec_tensor_elements(const ExecTensor *tensor);

/* Elements [from, to) of dim `dim` of a tensor (a copy that knows its offset). */
ExecTensor exec_tensor_slice(const ExecTensor *tensor, uint32_t dim, uint32_t from,
                             uint32_t to);

/* Runs one op on (shards of) its inputs in [n_in]; the allocated outputs out [n_out] give the
 * shapes and offsets to fill. An op whose added operand is absent gets fewer inputs. Empty shards
 * are allowed. Elementwise ops and updates may work in place: an output with an input's data. */
void exec_run_op(const Graph *graph, OpId op, const ExecTensor *in, ExecTensor *out);

/* Runs the whole graph on one device: value[t] for every tensor t; inputs, parameters and optimizer
 * states are given by the caller, the rest is allocated here. */
void exec_run_graph(const Graph *graph, ExecTensor *value);
/* The same for one op, whose inputs must be there. */
void exec_run_one(const Graph *graph, OpId id, ExecTensor *value);

/* [tensor]: how ops read it. Free with g_free. */
typedef struct ExecReading ExecReading;
ExecReading *exec_readings_new(const Graph *graph);

/* Random values of a tensor that no op makes, as a function of tensor and seed only: near-normal
 * numbers (for a weight scaled so that sums over its inputs stay near 1), indices within their
 * vocabulary, second moments that are not negative, 1 for the gradient of the loss. */
ExecTensor exec_value_new(const Graph *graph, const ExecReading *readings,
                          TensorId tensor, uint64_t seed);

/* The values [tensor] of all tensors that no op makes; exec_run_graph fills in the others. */
ExecTensor *exec_values_new(const Graph *graph, uint64_t seed);
void exec_values_free(const Graph *graph, ExecTensor *value);

/* Largest |got - want| over elements [0, n), as a share of `scale`; infinity if a difference is not
 * a number. */
double exec_difference(const double *got, const double *want, uint64_t n, double scale);

/* Largest absolute value of a tensor. */
double exec_magnitude(const ExecTensor *tensor);
