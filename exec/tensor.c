/* Tensors in float64, and their slices. */
#include <string.h>

#include "exec/tensor.h"

ExecTensor exec_tensor_new(uint32_t rank, const uint32_t *dim)
{
    g_assert(rank <= TENSOR_MAX_RANK);
    ExecTensor tensor = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++)
        tensor.dim[d] = dim[d];
    /* One element more than needed, so that the data of an empty shard is not NULL. */
    tensor.data = g_new0(double, exec_tensor_elements(&tensor) + 1);
    return tensor;
}

void exec_tensor_clear(ExecTensor *tensor)
{
    g_free(tensor->data);
    *tensor = (ExecTensor){0};
}

uint64_t exec_tensor_elements(const ExecTensor *tensor)
{
    KILTER_ASSERT(tensor->rank <= TENSOR_MAX_RANK);
    return dims_elements(tensor->dim, 0, tensor->rank);
}

ExecTensor exec_tensor_slice(const ExecTensor *tensor, uint32_t dim, uint32_t from,
                             uint32_t to)
{
    g_assert(dim < tensor->rank && from <= to && to <= tensor->dim[dim]);
    uint32_t shape[TENSOR_MAX_RANK];
    memcpy(shape, tensor->dim, sizeof shape);
    shape[dim] = to - from;
    ExecTensor slice = exec_tensor_new(tensor->rank, shape);
    memcpy(slice.offset, tensor->offset, sizeof slice.offset);
    slice.offset[dim] += from;
    const uint64_t outer = dims_elements(tensor->dim, 0, dim),
                   inner = dims_elements(tensor->dim, dim + 1, tensor->rank),
                   run = (to - from) * inner;
    for (uint64_t o = 0; o < outer; o++)
        memcpy(slice.data + o * run, tensor->data + (o * tensor->dim[dim] + from) * inner,
               run * sizeof(double));
    return slice;
}
