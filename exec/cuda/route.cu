/* Routing of tokens to experts, on GPUs. */
// Routing to the best experts, and the copies that they work on; see exec/kernels/route.c. Each
// token chooses on its own; an expert gives out its slots in the order of tokens.
#include <cmath>

#include "exec/cuda/launch.cuh"

// --- weights ---

// Scores of one token's experts.
template <typename T> struct Scores {
    In<T> logit;
    uint32_t n, best, size; // size: experts of a group
    bool sigmoid;
    T top, sum;
    uint64_t open; // bits of the groups that the token may choose

    __host__ __device__ T of(uint32_t e) const
    {
        return sigmoid ? 1 / (1 + exp(-logit[e])) : exp(logit[e] - top) / sum;
    }

    // Whether experts of a group may be chosen.
    __host__ __device__ bool opens(uint32_t group) const
    {
        return open >> group & 1;
    }

    __host__ __device__ bool chosen(uint32_t e) const
    {
        uint32_t better = 0;
        for (uint32_t i = 0; i < n; i++)
            better += opens(i / size) &&
                      (logit[i] > logit[e] || (logit[i] == logit[e] && i < e));
        return opens(e / size) && better < best;
    }

    // The sum of a group's two best scores.
    __host__ __device__ T best_two(uint32_t group) const
    {
        T first = 0, second = 0;
        for (uint32_t e = group * size; e < (group + 1) * size; e++) {
            const T score = of(e), less = score < first ? score : first;
            second = less > second ? less : second;
            first = score > first ? score : first;
        }
        return first + second;
    }
};

template <typename T>
__host__ __device__ static Scores<T> scores_of(In<T> logit, uint32_t n,
                                               const OpAttr &attr)
{
    const uint32_t groups = attr.groups ? attr.groups : 1;
    Scores<T> s = {logit, n, attr.top, n / groups, attr.sigmoid, logit[0], 0, 0};
    for (uint32_t e = 1; e < n; e++)
        s.top = logit[e] > s.top ? logit[e] : s.top;
    for (uint32_t e = 0; e < n; e++)
        s.sum += exp(logit[e] - s.top);
    for (uint32_t g = 0; g < groups; g++) {
        const T own = groups > 1 ? s.best_two(g) : T(0);
        uint32_t better = 0;
        for (uint32_t i = 0; groups > 1 && i < groups; i++) {
            const T other = s.best_two(i);
            better += other > own || (other == own && i < g);
        }
        if (groups == 1 || better < attr.top_groups)
            s.open |= uint64_t(1) << g;
    }
    return s;
}

static uint64_t tokens_of(const ExecShard *shard)
{
    uint64_t tokens = 1;
    for (uint32_t d = 0; d + 1 < shard->rank; d++)
        tokens *= shard->dim[d];
    return tokens;
}

template <typename T> static void gate_topk(const CudaCall *call)
{
    const OpAttr attr = call->op->attr;
    const uint32_t n = call->in[0].dim[call->in[0].rank - 1];
    const In<T> logit = in<T>(call, 0);
    Out<T> weight = out<T>(call, 0);
    each(
        call->queue, tokens_of(&call->in[0]), BODY(uint64_t s) {
            const Scores<T> score = scores_of<T>(logit + s * n, n, attr);
            T sum = 0;
            for (uint32_t e = 0; e < n; e++)
                sum += score.chosen(e) ? score.of(e) : T(0);
            const T unit = attr.normalised ? T(attr.scale) / sum : T(attr.scale);
            for (uint32_t e = 0; e < n; e++)
                weight[s * n + e] = score.chosen(e) ? unit * score.of(e) : T(0);
        });
}
CUDA_KERNEL(cuda_gate_topk, gate_topk)

template <typename T> static void gate_topk_dx(const CudaCall *call)
{
    const OpAttr attr = call->op->attr;
    const uint32_t n = call->in[1].dim[call->in[1].rank - 1];
    const In<T> dweight = in<T>(call, 0), logit = in<T>(call, 1);
    Out<T> dlogit = out<T>(call, 0);
    each(
        call->queue, tokens_of(&call->in[1]), BODY(uint64_t s) {
            const Scores<T> score = scores_of<T>(logit + s * n, n, attr);
            const In<T> dw = dweight + s * n;
            T sum = 0, dot = 0, mean = 0;
            for (uint32_t e = 0; e < n; e++)
                if (score.chosen(e)) {
                    sum += score.of(e);
                    dot += score.of(e) * dw[e];
                }
            const T unit = attr.normalised ? T(attr.scale) / sum : T(attr.scale);
            const T common = attr.normalised ? dot / sum : T(0);
            for (uint32_t e = 0; e < n; e++)
                if (score.chosen(e))
                    mean += score.of(e) * unit * (dw[e] - common);
            for (uint32_t e = 0; e < n; e++) {
                const T p = score.of(e);
                const T dp = score.chosen(e) ? unit * (dw[e] - common) : T(0);
                dlogit[s * n + e] = attr.sigmoid ? p * (1 - p) * dp : p * (dp - mean);
            }
        });
}
CUDA_KERNEL(cuda_gate_topk_dx, gate_topk_dx)

// --- copies ---

struct Routing {
    uint64_t groups, seq, experts, slots, size;
};

static Routing routing_of(const ExecShard *weight, const ExecShard *slots)
{
    return {weight->dim[0], weight->dim[1], weight->dim[2], slots->dim[2], slots->dim[3]};
}

// The slot of each token at each expert [b, S, e], n.slots if it has none; the caller releases
// it.
template <typename T>
static T *slots_of(CudaQueue *queue, const Routing &routing, In<T> weight)
{
    const Routing n = routing;
    T *slot = scratch<T>(queue, n.groups * n.seq * n.experts);
    rows(
        queue, n.groups * n.experts, BODY(uint64_t i, Lane lane) {
            const uint64_t group = i / n.experts * n.seq, expert = i % n.experts;
            uint64_t used = 0;
            for (uint64_t first = 0; first < n.seq; first += lane.n) {
                const uint64_t s = first + lane.id, at = (group + s) * n.experts + expert;
                const uint32_t one = s < n.seq && weight[at] > 0;
                const uint64_t own = used + lane.before(one);
                if (s < n.seq)
                    slot[at] = T(one && own < n.slots ? own : n.slots);
                used += lane.sum(one);
            }
        });
    return slot;
}

// Calls body(s, slot, at) for each copy: the token s (counted over all groups), the number of the
// first element of its slot, and that of its weight.
template <typename T, typename Body>
static void each_copy(CudaQueue *queue, const Routing &routing, In<T> weight, Body body)
{
    const Routing n = routing;
    T *slot = slots_of<T>(queue, n, weight);
    each(
        queue, n.groups * n.seq * n.experts, BODY(uint64_t at) {
            const uint64_t s = at / n.experts, e = at % n.experts, c = (uint64_t)slot[at];
            if (c < n.slots)
                body(s, ((s / n.seq * n.experts + e) * n.slots + c) * n.size, at);
        });
    release(queue, slot);
}

template <typename T> static void route(const CudaCall *call)
{
    const Routing n = routing_of(&call->in[0], &call->out[0]);
    const In<T> token = in<T>(call, 1);
    const Out<T> to = out<T>(call, 0);
    zero(call->queue, to, exec_shard_elements(&call->out[0]));
    each_copy<T>(
        call->queue, n, in<T>(call, 0), BODY(uint64_t s, uint64_t slot, uint64_t) {
            for (uint64_t i = 0; i < n.size; i++)
                to[slot + i] = token[s * n.size + i];
        });
}
CUDA_KERNEL(cuda_route, route)

template <typename T> static void unroute(const CudaCall *call)
{
    const Routing n = routing_of(&call->in[1], &call->in[0]);
    const In<T> from = in<T>(call, 0), weight = in<T>(call, 1);
    const Out<T> token = out<T>(call, 0);
    T *slot = slots_of<T>(call->queue, n, weight);
    each(
        call->queue, n.groups * n.seq * n.size, BODY(uint64_t at) {
            const uint64_t s = at / n.size, i = at % n.size;
            T sum = 0;
            for (uint64_t e = 0; e < n.experts; e++) {
                const uint64_t c = (uint64_t)slot[s * n.experts + e];
                if (c < n.slots)
                    sum += from[((s / n.seq * n.experts + e) * n.slots + c) * n.size + i];
            }
            token[at] = sum;
        });
    release(call->queue, slot);
}
CUDA_KERNEL(cuda_unroute, unroute)

template <typename T> static void route_weigh(const CudaCall *call)
{
    const Routing n = routing_of(&call->in[1], &call->in[0]);
    const In<T> x = in<T>(call, 0), weight = in<T>(call, 1);
    const Out<T> y = out<T>(call, 0);
    zero(call->queue, y, exec_shard_elements(&call->out[0]));
    each_copy<T>(
        call->queue, n, weight, BODY(uint64_t, uint64_t slot, uint64_t at) {
            for (uint64_t i = 0; i < n.size; i++)
                y[slot + i] = weight[at] * x[slot + i];
        });
}
CUDA_KERNEL(cuda_route_weigh, route_weigh)

template <typename T> static void route_weigh_dw(const CudaCall *call)
{
    const Routing n = routing_of(&call->in[2], &call->in[1]);
    const In<T> dy = in<T>(call, 0), y = in<T>(call, 1), weight = in<T>(call, 2);
    const Out<T> dweight = out<T>(call, 0);
    zero(call->queue, dweight, exec_shard_elements(&call->out[0]));
    each_copy<T>(
        call->queue, n, weight, BODY(uint64_t, uint64_t slot, uint64_t at) {
            T sum = 0;
            for (uint64_t i = 0; i < n.size; i++)
                sum += dy[slot + i] * y[slot + i];
            dweight[at] = sum / weight[at];
        });
}
CUDA_KERNEL(cuda_route_weigh_dw, route_weigh_dw)

template <typename T> static void expert_bias(const CudaCall *call)
{
    const ExecShard *shard = &call->in[0];
    uint64_t inner = 1;
    for (uint32_t d = 3; d < shard->rank; d++)
        inner *= shard->dim[d];
    const uint64_t experts = shard->dim[1], slots = shard->dim[2] * inner;
    const In<T> x = in<T>(call, 0), bias = in<T>(call, 1);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t i) {
            y[i] = x[i] + bias[i / slots % experts * inner + i % inner];
        });
}
CUDA_KERNEL(cuda_expert_bias, expert_bias)
