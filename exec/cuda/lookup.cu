/* Lookups in a vocabulary that may be a shard, losses, and the class token, on GPUs. */
// Ops indexed by integers, the loss of sharded logits, and the class token; see
// exec/kernels/vocabulary.c and exec/kernels/token.c.
#include "exec/cuda/launch.cuh"

// Index of `id` among `n` entries from `offset` on; n if it is on another device.
template <typename T>
__host__ __device__ static uint64_t find_entry(T id, uint64_t offset, uint64_t n)
{
    const uint64_t entry = (uint64_t)id;
    return entry >= offset && entry < offset + n ? entry - offset : n;
}

template <typename T> static void embedding(const CudaCall *call)
{
    const In<T> ids = in<T>(call, 0), table = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    const uint64_t v = call->in[1].dim[0], offset = call->in[1].offset[0];
    const Divisor h(call->in[1].dim[1]);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t row = find_entry(ids[i / h], offset, v);
            y[i] = row < v ? table[row * h + i % h] : 0;
        });
}
CUDA_KERNEL(cuda_embedding, embedding)

__host__ __device__ static void add_to(float *sum, float value)
{
#ifdef __CUDA_ARCH__
    atomicAdd(sum, value);
#else
    *sum += value;
#endif
}

__host__ __device__ static void add_to(double *sum, double value)
{
#ifdef __CUDA_ARCH__
    atomicAdd(sum, value);
#else
    *sum += value;
#endif
}

template <typename T> static void embedding_dw(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0), ids = in<T>(call, 1);
    Out<T> dtable = out<T>(call, 0);
    const uint64_t v = call->out[0].dim[0], h = call->out[0].dim[1],
                   offset = call->out[0].offset[0];
    const uint64_t n = exec_shard_elements(&call->out[0]);
    // Sums of numbers of two bytes are kept in float32 until they are complete.
    const bool narrow = numbers_of(dtable) != EXEC_PLAIN;
    T *sum = narrow ? scratch<T>(call->queue, n) : (T *)raw(dtable);
    zero(call->queue, sum, n);
    each(
        call->queue, exec_shard_elements(&call->in[0]), BODY(uint64_t i) {
            const uint64_t row = find_entry(ids[i / h], offset, v);
            if (row < v)
                add_to(&sum[row * h + i % h], dy[i]);
        });
    if (!narrow)
        return;
    each(
        call->queue, n, BODY(uint64_t i) { dtable[i] = sum[i]; });
    release(call->queue, sum);
}
CUDA_KERNEL(cuda_embedding_dw, embedding_dw)

// Sum of z[*] - x[*,label[*]] over the labels that this device has; a NULL z counts as 0.
template <typename T> static void sum_at_labels(const CudaCall *call, In<T> z)
{
    const In<T> x = in<T>(call, 0), label = in<T>(call, 1);
    Out<T> loss = out<T>(call, 0);
    const ExecShard *shard = &call->in[0];
    const uint64_t v = shard->dim[shard->rank - 1],
                   offset = shard->offset[shard->rank - 1],
                   n = exec_shard_elements(&call->in[1]);
    zero(call->queue, loss, 1);
    rows(
        call->queue, n > 0, BODY(uint64_t, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < n; i += lane.n) {
                const uint64_t entry = find_entry(label[i], offset, v);
                if (entry < v)
                    sum += (z ? T(z[i]) : T(0)) - x[i * v + entry];
            }
            sum = lane.sum(sum);
            if (lane.id == 0)
                loss[0] = sum;
        });
}

template <typename T> static void nll_sum(const CudaCall *call)
{
    sum_at_labels<T>(call, In<T>());
}
CUDA_KERNEL(cuda_nll_sum, nll_sum)

template <typename T> static void nll_sum_dx(const CudaCall *call)
{
    const In<T> dloss = in<T>(call, 0), label = in<T>(call, 1);
    Out<T> dlogp = out<T>(call, 0);
    const ExecShard *shard = &call->out[0];
    const uint64_t v = shard->dim[shard->rank - 1],
                   offset = shard->offset[shard->rank - 1];
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            dlogp[i] = find_entry(label[i / v], offset, v) == i % v ? -dloss[0] : 0;
        });
}
CUDA_KERNEL(cuda_nll_sum_dx, nll_sum_dx)

template <typename T> static void label_logit(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), label = in<T>(call, 1);
    Out<T> t = out<T>(call, 0);
    const ExecShard *shard = &call->in[0];
    const uint64_t v = shard->dim[shard->rank - 1],
                   offset = shard->offset[shard->rank - 1];
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t entry = find_entry(label[i], offset, v);
            t[i] = entry < v ? x[i * v + entry] : 0;
        });
}
CUDA_KERNEL(cuda_label_logit, label_logit)

template <typename T> static void sum_exp(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), t = in<T>(call, 1);
    Out<T> s = out<T>(call, 0);
    const uint64_t v = call->in[0].dim[call->in[0].rank - 1];
    rows(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t r, Lane lane) {
            T sum = 0;
            for (uint64_t i = lane.id; i < v; i += lane.n)
                sum += exp(x[r * v + i] - t[r]);
            sum = lane.sum(sum);
            if (lane.id == 0)
                s[r] = sum;
        });
}
CUDA_KERNEL(cuda_sum_exp, sum_exp)

template <typename T> static void log_sum_exp(const CudaCall *call)
{
    const In<T> s = in<T>(call, 0), t = in<T>(call, 1);
    Out<T> z = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { z[i] = t[i] + log(s[i]); });
}
CUDA_KERNEL(cuda_log_sum_exp, log_sum_exp)

template <typename T> static void cross_entropy(const CudaCall *call)
{
    sum_at_labels<T>(call, in<T>(call, 2));
}
CUDA_KERNEL(cuda_cross_entropy, cross_entropy)

template <typename T> static void cross_entropy_dx(const CudaCall *call)
{
    const In<T> dloss = in<T>(call, 0), x = in<T>(call, 1), label = in<T>(call, 2),
                z = in<T>(call, 3);
    Out<T> dx = out<T>(call, 0);
    const ExecShard *shard = &call->out[0];
    const uint64_t v = shard->dim[shard->rank - 1],
                   offset = shard->offset[shard->rank - 1];
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            const T is_label = find_entry(label[i / v], offset, v) == i % v ? 1 : 0;
            dx[i] = dloss[0] * (exp(x[i] - z[i / v]) - is_label);
        });
}
CUDA_KERNEL(cuda_cross_entropy_dx, cross_entropy_dx)

template <typename T> static void append_token(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0), token = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    const Divisor length(call->out[0].dim[1]), h(call->out[0].dim[2]);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t row = i / h, b = row / length, t = row % length;
            y[i] = t == 0 ? token[i % h] : x[(b * (length - 1) + t - 1) * h + i % h];
        });
}
CUDA_KERNEL(cuda_append_token, append_token)

template <typename T> static void drop_token(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0);
    Out<T> dx = out<T>(call, 0);
    const Divisor length(call->out[0].dim[1]), h(call->out[0].dim[2]);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t b = i / h / length;
            dx[i] = dy[i + (b + 1) * h];
        });
}
CUDA_KERNEL(cuda_drop_token, drop_token)

template <typename T> static void sum_token(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0);
    Out<T> dtoken = out<T>(call, 0);
    const uint64_t batch = call->in[0].dim[0], length = call->in[0].dim[1],
                   h = call->in[0].dim[2];
    each(
        call->queue, h, BODY(uint64_t i) {
            T sum = 0;
            for (uint64_t b = 0; b < batch; b++)
                sum += dy[b * length * h + i];
            dtoken[i] = sum;
        });
}
CUDA_KERNEL(cuda_sum_token, sum_token)

template <typename T> static void take_token(const CudaCall *call)
{
    const In<T> x = in<T>(call, 0);
    Out<T> y = out<T>(call, 0);
    const uint64_t length = call->in[0].dim[1];
    const Divisor h(call->in[0].dim[2]);
    each(
        call->queue, exec_shard_elements(&call->out[0]),
        BODY(uint64_t i) { y[i] = x[i / h * length * h + i % h]; });
}
CUDA_KERNEL(cuda_take_token, take_token)

template <typename T> static void pad_token(const CudaCall *call)
{
    const In<T> dy = in<T>(call, 0);
    Out<T> dx = out<T>(call, 0);
    const Divisor length(call->out[0].dim[1]), h(call->out[0].dim[2]);
    each(
        call->queue, exec_shard_elements(&call->out[0]), BODY(uint64_t i) {
            const uint64_t row = i / h;
            dx[i] = row % length == 0 ? dy[row / length * h + i % h] : 0;
        });
}
CUDA_KERNEL(cuda_pad_token, pad_token)
