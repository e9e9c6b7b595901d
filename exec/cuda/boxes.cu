/* Overlaps of shards, copied or added on a GPU. */
// The part of a tensor that two shards share, moved between them.
#include "exec/cuda/launch.cuh"

// A box of elements, and where they lie in two shards.
struct Boxes {
    uint32_t rank;
    Divisor dim[TENSOR_MAX_RANK];
    uint64_t from_stride[TENSOR_MAX_RANK], to_stride[TENSOR_MAX_RANK];
    uint64_t from_first, to_first, n;
};

static uint64_t strides(const ExecShard *shard, const ExecShard *box, uint64_t *stride)
{
    uint64_t first = 0, size = 1;
    for (uint32_t d = shard->rank; d-- > 0;) {
        stride[d] = size;
        first += (uint64_t)(box->offset[d] - shard->offset[d]) * size;
        size *= shard->dim[d];
    }
    return first;
}

static bool boxes(const ExecShard *from, const ExecShard *to, Boxes *boxes)
{
    ExecShard box;
    if (!exec_shard_overlap(from, to, &box))
        return false;
    boxes->rank = box.rank;
    boxes->n = exec_shard_elements(&box);
    boxes->from_first = strides(from, &box, boxes->from_stride);
    boxes->to_first = strides(to, &box, boxes->to_stride);
    for (uint32_t d = 0; d < box.rank; d++)
        boxes->dim[d] = box.dim[d];
    return true;
}

template <typename T, bool add>
static void move(CudaQueue *queue, In<T> from, Out<T> to, Boxes box)
{
    each(
        queue, box.n, BODY(uint64_t i) {
            uint64_t source = box.from_first, target = box.to_first;
            for (uint32_t d = box.rank; d-- > 0;) {
                const uint64_t rest = i / box.dim[d], at = i - rest * box.dim[d].by;
                source += at * box.from_stride[d];
                target += at * box.to_stride[d];
                i = rest;
            }
            to[target] = from[source] + (add ? T(to[target]) : T(0));
        });
}

template <bool add>
static void move_overlap(CudaQueue *queue, const ExecShard *from, const ExecShard *to)
{
    Boxes box;
    if (!boxes(from, to, &box))
        return;
    if (queue->single)
        move<float, add>(queue, operand<float>(from), operand<float>(to), box);
    else
        move<double, add>(queue, operand<double>(from), operand<double>(to), box);
}

extern "C" void cuda_copy_overlap(CudaQueue *queue, const ExecShard *from,
                                  const ExecShard *to)
{
    move_overlap<false>(queue, from, to);
}

extern "C" void cuda_add_overlap(CudaQueue *queue, const ExecShard *from,
                                 const ExecShard *to)
{
    move_overlap<true>(queue, from, to);
}
