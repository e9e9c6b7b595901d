/* Contractions as matrix products of cuBLAS, or by a loop over all indices. */
// Sums of products over an op's loops: see exec/contraction.h and exec/kernels/contract.c.
#include "exec/cuda/launch.cuh"

extern "C" {
#include "exec/contraction.h"
}

// The places of the elements of a row-major tensor over the loops, in a shard's memory.
struct Places {
    uint32_t n;
    Divisor extent[OP_MAX_LOOPS];
    uint64_t stride[OP_MAX_LOOPS];

    Places(const LoopOrder &order) : n(order.n)
    {
        for (uint32_t d = 0; d < n; d++) {
            extent[d] = Divisor(order.extent[d]);
            stride[d] = order.stride[d];
        }
    }
    __host__ __device__ uint64_t operator[](uint64_t i) const
    {
        uint64_t at = 0;
        for (uint32_t d = n; d-- > 0;) {
            const uint64_t rest = i / extent[d];
            at += (i - rest * extent[d].by) * stride[d];
            i = rest;
        }
        return at;
    }
};

static uint64_t size_of(const LoopOrder &order)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < order.n; d++)
        n *= order.extent[d];
    return n;
}

// --- two factors ---

// An operand as matrices, in its own memory or in a packed copy.
struct Packed {
    CudaMatrix matrix;
    void *owned;
};

template <typename T>
static Packed pack(const CudaCall *call, const Contraction *c, uint32_t which,
                   const ExecShard *shard, uint32_t rows, uint32_t columns, bool fill)
{
    const LoopOrder order = contraction_order(c, which, shard, rows, columns),
                    swapped = contraction_order(c, which, shard, columns, rows);
    const uint64_t m = c->group[rows].size, n = c->group[columns].size;
    const In<T> from = operand<T>(shard);
    if (loop_order_is_dense(&order))
        return {matrix(from, false, n, m * n), NULL};
    if (loop_order_is_dense(&swapped))
        return {matrix(from, true, m, m * n), NULL};
    const Out<T> copy = scratch_like<T>(call->queue, size_of(order), from);
    const Places places(order);
    if (fill)
        each(
            call->queue, size_of(order), BODY(uint64_t i) { copy[i] = from[places[i]]; });
    return {matrix(copy, false, n, m * n), raw(copy)};
}

// A swapped out[m, n] is y'[n, k] x'[k, m].
static void multiply(const CudaCall *call, const Contraction *c, CudaMatrix x,
                     CudaMatrix y, const CudaMatrix *z)
{
    const uint64_t m = c->group[GROUP_M].size, n = c->group[GROUP_N].size,
                   k = c->group[GROUP_K].size, batch = c->group[GROUP_B].size;
    void *data = const_cast<void *>(z->data);
    if (!z->transposed) {
        queue_multiply(call->queue,
                       {m, n, k, batch, 1.0, &x, &y, data, z->ld, z->step, z->numbers});
        return;
    }
    x.transposed = !x.transposed;
    y.transposed = !y.transposed;
    queue_multiply(call->queue,
                   {n, m, k, batch, 1.0, &y, &x, data, z->ld, z->step, z->numbers});
}

template <typename T>
static void contract_pair(const CudaCall *call, const Contraction *c)
{
    const ExecShard *shard = &call->out[0];
    Out<T> y = out<T>(call, 0);
    if (c->group[GROUP_K].size == 0) {
        zero(call->queue, y, exec_shard_elements(shard));
    } else {
        const Packed a = pack<T>(call, c, c->x, &call->in[c->x], GROUP_M, GROUP_K, true);
        const Packed b = pack<T>(call, c, c->y, &call->in[c->y], GROUP_K, GROUP_N, true);
        const Packed z = pack<T>(call, c, c->out, shard, GROUP_M, GROUP_N, false);
        multiply(call, c, a.matrix, b.matrix, &z.matrix);
        if (z.owned) {
            const LoopOrder order = contraction_order(c, c->out, shard, GROUP_M, GROUP_N);
            const ExecShard packed = {0, {}, {}, shard->numbers, z.owned};
            const In<T> from = operand<T>(&packed);
            const Places places(order);
            each(
                call->queue, size_of(order),
                BODY(uint64_t i) { y[places[i]] = from[i]; });
        }
        for (void *owned : {a.owned, b.owned, z.owned})
            if (owned)
                release(call->queue, owned);
    }
    if (c->added < 0)
        return;
    const In<T> bias = in<T>(call, (uint32_t)c->added);
    const Divisor period(exec_shard_elements(&call->in[c->added]));
    each(
        call->queue, exec_shard_elements(shard),
        BODY(uint64_t i) { y[i] += bias[i % period]; });
}

// --- one factor: a sum over some loops, or a permutation ---

// The input's strides along the output's dims, and along the loops that the output lacks.
static void single_orders(const CudaCall *call, LoopOrder *kept, LoopOrder *summed)
{
    OpSpace space;
    graph_op_space(call->graph, call->id, &space);
    const ExecShard *x = &call->in[0], *y = &call->out[0];
    uint64_t stride[OP_MAX_LOOPS] = {0}, size = 1;
    bool keeps[OP_MAX_LOOPS] = {false};
    for (uint32_t d = x->rank; d-- > 0;) {
        stride[space.dim_loop[0][d]] = size;
        size *= x->dim[d];
    }
    kept->n = summed->n = 0;
    for (uint32_t d = 0; d < y->rank; d++) {
        const int8_t loop = space.dim_loop[1][d];
        keeps[loop] = true;
        kept->extent[kept->n] = y->dim[d];
        kept->stride[kept->n++] = stride[loop];
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        const int8_t loop = space.dim_loop[0][d];
        if (keeps[loop])
            continue;
        summed->extent[summed->n] = x->dim[d];
        summed->stride[summed->n++] = stride[loop];
    }
}

template <typename T> static void contract_single(const CudaCall *call)
{
    LoopOrder kept, summed;
    single_orders(call, &kept, &summed);
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    const uint64_t n = exec_shard_elements(&call->out[0]), terms = size_of(summed);
    const bool leading = loop_order_is_dense(&kept); // whole rows are summed
    const Places place(kept), term(summed);
    if (terms == 1) {
        each(
            call->queue, n, BODY(uint64_t i) { y[i] = x[place[i]]; });
    } else if (leading && terms > 0) {
        const Out<T> ones = scratch_like<T>(call->queue, terms, x);
        each(
            call->queue, terms, BODY(uint64_t i) { ones[i] = 1; });
        const CudaMatrix row = matrix(ones, false, terms, 0),
                         table = matrix(x, false, n, 0);
        queue_multiply(call->queue,
                       {1, n, terms, 1, 1.0, &row, &table, raw(y), n, 0, numbers_of(y)});
        release(call->queue, ones);
    } else {
        rows(
            call->queue, n, BODY(uint64_t i, Lane lane) {
                const uint64_t first = place[i];
                T sum = 0;
                for (uint64_t s = lane.id; s < terms; s += lane.n)
                    sum += x[first + term[s]];
                sum = lane.sum(sum);
                if (lane.id == 0)
                    y[i] = sum;
            });
    }
}

template <typename T> static void contract(const CudaCall *call)
{
    Contraction c;
    if (exec_shard_elements(&call->out[0]) == 0)
        return;
    if (contraction_bind(call->graph, call->id, call->in, call->out, &c))
        contract_pair<T>(call, &c);
    else
        contract_single<T>(call);
}
CUDA_KERNEL(cuda_contract, contract)
