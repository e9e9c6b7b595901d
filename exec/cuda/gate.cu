/* Gates of mixtures of experts, on GPUs. */
// Gating with capacity, top-1 and top-2; see exec/kernels/gate.c. First each token chooses on its
// own; then each expert gives out its slots in the order of tokens, first choices before second
// ones.
#include <cmath>

#include "exec/cuda/launch.cuh"

// Where one token goes: two experts (n_experts where there is no choice), their probabilities,
// weights and slots (capacity: dropped).
template <typename T> struct Route {
    uint32_t expert[2], slot[2];
    T p[2], weight[2];
};

struct Shape {
    uint64_t groups, seq;
    uint32_t experts, capacity;
};

template <typename T>
__host__ __device__ static T softmax_sum(In<T> logit, uint32_t n, T *top)
{
    T sum = 0;
    *top = logit[0];
    for (uint32_t e = 1; e < n; e++)
        *top = logit[e] > *top ? logit[e] : *top;
    for (uint32_t e = 0; e < n; e++)
        sum += exp(logit[e] - *top);
    return sum;
}

// The first of the largest numbers, not counting `except`; n if no number is left.
template <typename T>
__host__ __device__ static uint32_t argmax(In<T> logit, uint32_t n, uint32_t except)
{
    uint32_t best = n;
    for (uint32_t e = 0; e < n; e++)
        if (e != except && (best == n || logit[e] > logit[best]))
            best = e;
    return best;
}

template <typename T>
__host__ __device__ static Route<T> choose(In<T> logit, uint32_t experts, uint32_t best)
{
    Route<T> route;
    T top;
    const T sum = softmax_sum<T>(logit, experts, &top);
    route.expert[0] = argmax<T>(logit, experts, experts);
    route.expert[1] = best < 2 ? experts : argmax<T>(logit, experts, route.expert[0]);
    for (uint32_t c = 0; c < 2; c++)
        route.p[c] =
            route.expert[c] < experts ? exp(logit[route.expert[c]] - top) / sum : 0;
    const T both = best < 2 ? 1 : route.p[0] + route.p[1];
    for (uint32_t c = 0; c < 2; c++)
        route.weight[c] = route.p[c] / both;
    return route;
}

// Routes of all tokens; the caller releases them.
template <typename T>
static Route<T> *route_tokens(const CudaCall *call, In<T> logit, const Shape &n,
                              uint32_t best)
{
    const uint64_t tokens = n.groups * n.seq, numbers = sizeof(Route<T>) / sizeof(T) + 1;
    const uint32_t experts = n.experts, capacity = n.capacity;
    const uint64_t seq = n.seq;
    Route<T> *route = (Route<T> *)cuda_queue_scratch(call->queue, tokens * numbers);
    each(
        call->queue, tokens,
        BODY(uint64_t s) { route[s] = choose<T>(logit + s * experts, experts, best); });
    rows(
        call->queue, n.groups * experts, BODY(uint64_t i, Lane lane) {
            Route<T> *group = route + i / experts * seq;
            const uint32_t expert = (uint32_t)(i % experts);
            uint32_t used = 0;
            for (uint32_t c = 0; c < 2; c++)
                for (uint64_t first = 0; first < seq; first += lane.n) {
                    const uint64_t s = first + lane.id;
                    const uint32_t one = s < seq && group[s].expert[c] == expert;
                    const uint32_t slot = used + lane.before(one);
                    if (one)
                        group[s].slot[c] = slot < capacity ? slot : capacity;
                    used += lane.sum(one);
                }
        });
    return route;
}

template <typename T> static void gate(const CudaCall *call, uint32_t best)
{
    const ExecShard *shard = &call->out[0];
    const Shape n = {call->in[0].dim[0], call->in[0].dim[1], call->in[0].dim[2],
                     shard->dim[3]};
    Out<T> combine = out<T>(call, 0), dispatch = out<T>(call, 1);
    Route<T> *route = route_tokens<T>(call, in<T>(call, 0), n, best);
    zero(call->queue, combine, exec_shard_elements(shard));
    zero(call->queue, dispatch, exec_shard_elements(shard));
    each(
        call->queue, n.groups * n.seq, BODY(uint64_t s) {
            for (uint32_t c = 0; c < 2; c++) {
                const Route<T> &r = route[s];
                if (r.expert[c] >= n.experts || r.slot[c] >= n.capacity)
                    continue;
                const uint64_t at =
                    (s * n.experts + r.expert[c]) * n.capacity + r.slot[c];
                combine[at] = r.weight[c];
                dispatch[at] = r.weight[c] > 0 ? T(1) : T(0);
            }
        });
    release(call->queue, route);
}

template <typename T> static void gate_top1(const CudaCall *call)
{
    gate<T>(call, 1);
}
CUDA_KERNEL(cuda_gate_top1, gate_top1)

template <typename T> static void gate_top2(const CudaCall *call)
{
    gate<T>(call, 2);
}
CUDA_KERNEL(cuda_gate_top2, gate_top2)

template <typename T> static void gate_dx(const CudaCall *call, uint32_t best)
{
    const ExecShard *logits = &call->in[1];
    const Shape n = {logits->dim[0], logits->dim[1], logits->dim[2], call->in[0].dim[3]};
    const In<T> dcombine = in<T>(call, 0), logit = in<T>(call, 1);
    Out<T> dlogit = out<T>(call, 0);
    Route<T> *route = route_tokens<T>(call, logit, n, best);
    each(
        call->queue, n.groups * n.seq, BODY(uint64_t s) {
            const Route<T> &r = route[s];
            T dw[2] = {0, 0}, top;
            for (uint32_t c = 0; c < 2; c++)
                if (r.expert[c] < n.experts && r.slot[c] < n.capacity)
                    dw[c] =
                        dcombine[(s * n.experts + r.expert[c]) * n.capacity + r.slot[c]];
            const T sum = softmax_sum<T>(logit + s * n.experts, n.experts, &top);
            const T both = r.p[0] + r.p[1];
            const bool two = r.expert[1] < n.experts;
            const T slope = two ? (dw[0] - dw[1]) / (both * both) : 0;
            const T dp[2] = {best < 2 ? dw[0] : r.p[1] * slope, -r.p[0] * slope};
            const T mean = r.p[0] * dp[0] + r.p[1] * dp[1];
            for (uint32_t e = 0; e < n.experts; e++) {
                const T p = exp(logit[s * n.experts + e] - top) / sum;
                const T own = e == r.expert[0]          ? dp[0]
                              : two && e == r.expert[1] ? dp[1]
                                                        : 0;
                dlogit[s * n.experts + e] = p * (own - mean);
            }
        });
    release(call->queue, route);
}

template <typename T> static void gate_top1_dx(const CudaCall *call)
{
    gate_dx<T>(call, 1);
}
CUDA_KERNEL(cuda_gate_top1_dx, gate_top1_dx)

template <typename T> static void gate_top2_dx(const CudaCall *call)
{
    gate_dx<T>(call, 2);
}
CUDA_KERNEL(cuda_gate_top2_dx, gate_top2_dx)
