/* Attention to chosen keys, on GPUs. */
// See exec/kernels/sparse_attention.c for the equations. A thread takes one query, or in the backward one sample's head.
#include <cmath>

#include "exec/cuda/launch.cuh"

template <typename T> static void top_keys(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    const uint64_t queries = shard->dim[1], heads = shard->dim[2], size = shard->dim[3],
                   keys = call->in[1].dim[1], top = call->out[0].dim[2],
                   all = (uint64_t)shard->dim[0] * queries;
    const bool causal = call->op->attr.causal;
    const In<T> q = in<T>(call, 0), k = in<T>(call, 1), w = in<T>(call, 2);
    Out<T> chosen = out<T>(call, 0);
    T *room = scratch<T>(call->queue, all * keys);
    const T equal = sizeof(T) == sizeof(double) ? T(1e-9) : T(1e-5); // as on the CPU
    each(
        call->queue, all, BODY(uint64_t row) {
            const uint64_t b = row / queries, i = row % queries,
                           seen = causal && i + 1 < keys ? i + 1 : keys;
            T *score = room + row * keys;
            for (uint64_t j = 0; j < seen; j++) {
                score[j] = 0;
                for (uint64_t h = 0; h < heads; h++) {
                    T sum = 0;
                    for (uint64_t d = 0; d < size; d++)
                        sum += q[(row * heads + h) * size + d] *
                               k[(b * keys + j) * size + d];
                    score[j] += w[row * heads + h] * (sum > 0 ? sum : T(0));
                }
            }
            for (uint64_t t = 0; t < top; t++) {
                uint64_t best = seen;
                for (uint64_t j = 0; j < seen; j++)
                    if (score[j] == score[j] &&
                        (best == seen ||
                         score[j] > score[best] + equal * fabs(score[best])))
                        best = j;
                chosen[row * top + t] = best < seen ? T(best) : T(-1);
                if (best < seen)
                    score[best] = T(NAN);
            }
        });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_top_keys, top_keys)

template <typename T> static void top_keys_dx(const CudaCall *call)
{
    for (uint32_t o = 0; o < 3; o++)
        zero(call->queue, out<T>(call, o), exec_shard_elements(&call->out[o]));
}
CUDA_KERNEL(cuda_top_keys_dx, top_keys_dx)

struct Sparse {
    uint64_t batch, queries, heads, group, size, value, keys, top;
    bool causal;

    // The first element of a query's t-th key in kv; false if there is none.
    template <typename T>
    __host__ __device__ bool key(In<T> chosen, uint64_t b, uint64_t i, uint64_t h,
                                 uint64_t t, uint64_t *at) const
    {
        const T j = chosen[(b * queries + i) * top + t];
        if (!(j >= 0) || j >= T(keys) || (causal && j > T(i)))
            return false;
        *at = ((b * keys + (uint64_t)j) * heads + h) * (size + value);
        return true;
    }
};

static Sparse sparse_of(const CudaCall *call, uint32_t q)
{
    const ExecShard *x = &call->in[q], *kv = &call->in[q + 1];
    return {x->dim[0],
            x->dim[1],
            x->dim[2],
            x->dim[3],
            x->dim[4],
            (uint64_t)kv->dim[3] - x->dim[4],
            kv->dim[1],
            call->in[q + 2].dim[2],
            call->op->attr.causal};
}

template <typename T>
__host__ __device__ static T sparse_dot(In<T> a, uint64_t i, In<T> b, uint64_t j,
                                        uint64_t n)
{
    T sum = 0;
    for (uint64_t d = 0; d < n; d++)
        sum += a[i + d] * b[j + d];
    return sum;
}

template <typename T> static void sparse_attention(const CudaCall *call)
{
    const Sparse n = sparse_of(call, 0);
    const In<T> q = in<T>(call, 0), kv = in<T>(call, 1), chosen = in<T>(call, 2);
    Out<T> y = out<T>(call, 0), log_sum = out<T>(call, 1);
    each(
        call->queue, n.batch * n.queries * n.heads * n.group, BODY(uint64_t r) {
            const uint64_t g = r % n.group, h = r / n.group % n.heads,
                           i = r / n.group / n.heads % n.queries,
                           b = r / n.group / n.heads / n.queries;
            const T scale = 1 / sqrt(T(n.size));
            T most = -INFINITY, sum = 0;
            uint64_t at;
            for (uint64_t t = 0; t < n.top; t++)
                if (n.key<T>(chosen, b, i, h, t, &at)) {
                    const T s = scale * sparse_dot<T>(q, r * n.size, kv, at, n.size);
                    sum = s > most ? sum * exp(most - s) + 1 : sum + exp(s - most);
                    most = s > most ? s : most;
                }
            const T log = sum > 0 ? most + ::log(sum) : T(0);
            log_sum[((b * n.heads + h) * n.group + g) * n.queries + i] = log;
            for (uint64_t v = 0; v < n.value; v++) {
                T value = 0;
                for (uint64_t t = 0; t < n.top; t++)
                    if (n.key<T>(chosen, b, i, h, t, &at))
                        value +=
                            exp(scale * sparse_dot<T>(q, r * n.size, kv, at, n.size) -
                                log) *
                            kv[at + n.size + v];
                y[r * n.value + v] = value;
            }
        });
}
CUDA_KERNEL(cuda_sparse_attention, sparse_attention)

template <typename T> static void sparse_attention_dx(const CudaCall *call)
{
    const Sparse n = sparse_of(call, 1);
    const In<T> dy = in<T>(call, 0), q = in<T>(call, 1), kv = in<T>(call, 2),
                chosen = in<T>(call, 3), log_sum = in<T>(call, 4);
    Out<T> dq = out<T>(call, 0), dkv = out<T>(call, 1);
    zero(call->queue, dq, exec_shard_elements(&call->out[0]));
    zero(call->queue, dkv, exec_shard_elements(&call->out[1]));
    zero(call->queue, out<T>(call, 2), exec_shard_elements(&call->out[2]));
    each(
        call->queue, n.batch * n.heads, BODY(uint64_t run) {
            const uint64_t b = run / n.heads, h = run % n.heads;
            const T scale = 1 / sqrt(T(n.size));
            for (uint64_t i = 0; i < n.queries; i++)
                for (uint64_t g = 0; g < n.group; g++) {
                    const uint64_t r = ((b * n.queries + i) * n.heads + h) * n.group + g;
                    const T log =
                        log_sum[((b * n.heads + h) * n.group + g) * n.queries + i];
                    T mean = 0;
                    uint64_t at;
                    for (uint64_t t = 0; t < n.top; t++)
                        if (n.key<T>(chosen, b, i, h, t, &at))
                            mean +=
                                exp(scale * sparse_dot<T>(q, r * n.size, kv, at, n.size) -
                                    log) *
                                sparse_dot<T>(dy, r * n.value, kv, at + n.size, n.value);
                    for (uint64_t t = 0; t < n.top; t++) {
                        if (!n.key<T>(chosen, b, i, h, t, &at))
                            continue;
                        const T p = exp(
                            scale * sparse_dot<T>(q, r * n.size, kv, at, n.size) - log);
                        const T ds =
                            scale * p *
                            (sparse_dot<T>(dy, r * n.value, kv, at + n.size, n.value) -
                             mean);
                        for (uint64_t d = 0; d < n.size; d++) {
                            dq[r * n.size + d] += ds * kv[at + d];
                            dkv[at + d] += ds * q[r * n.size + d];
                        }
                        for (uint64_t v = 0; v < n.value; v++)
                            dkv[at + n.size + v] += p * dy[r * n.value + v];
                    }
                }
        });
}
CUDA_KERNEL(cuda_sparse_attention_dx, sparse_attention_dx)
