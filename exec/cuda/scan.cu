/* Linear recurrences and their gates, on GPUs. */
// See exec/kernels/scan.c for the equations. A thread takes one head of one sample, with all of its states in scratch memory.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/position.h"

#define SCAN_EPSILON 1e-6

struct Scan {
    uint64_t batch, seq, heads, group, keys, values, gates;
    bool delta;
    double scale;
    uint64_t first_head, first_of_group, all_heads, all_of_group;

    __host__ __device__ uint64_t row(uint64_t b, uint64_t t, uint64_t h, uint64_t g) const
    {
        return ((b * seq + t) * heads + h) * group + g;
    }
    __host__ __device__ uint64_t qk(uint64_t b, uint64_t t, uint64_t h) const
    {
        return ((b * seq + t) * heads + h) * 2 * keys;
    }
    // Numbers of scratch memory for one head: its states, the rows r, and q, k, a, dq, dk of a token with dr and dS.
    __host__ __device__ uint64_t room() const
    {
        return (seq + 1) * keys * values + (seq + 1) * values + 5 * keys;
    }
};

static Scan scan_of(const CudaCall *call, uint32_t first)
{
    const ExecShard *qk = &call->in[first], *v = &call->in[first + 1];
    const OpKind kind = call->op->kind;
    const bool fixed = kind == OP_LINEAR_ATTENTION || kind == OP_LINEAR_ATTENTION_DX;
    const Tensor *whole = graph_tensor(call->graph, call->op->in[first + 1]);
    return {v->dim[0],
            v->dim[1],
            v->dim[2],
            v->dim[3],
            qk->dim[3] / 2,
            v->dim[4],
            fixed ? 0 : call->in[first + 2].dim[4],
            kind == OP_DELTA_SCAN || kind == OP_DELTA_SCAN_DX,
            call->op->attr.scale,
            v->offset[2],
            v->offset[3],
            (uint64_t)whole->dim[2] * whole->dim[3],
            whole->dim[3]};
}

// One head's scratch memory.
template <typename T> struct ScanRun {
    T *state, *r, *q, *k, *a, *dq, *dk, *dr, *ds;
    T b, q_length, k_length, q_scale;

    __host__ __device__ ScanRun(const Scan &n, T *room)
    {
        state = room;
        ds = state + n.seq * n.keys * n.values;
        r = ds + n.keys * n.values;
        dr = r + n.seq * n.values;
        q = dr + n.values;
        k = q + n.keys;
        a = k + n.keys;
        dq = a + n.keys;
        dk = dq + n.keys;
    }

    __host__ __device__ void token(const Scan &n, In<T> qk, In<T> gates, uint64_t row,
                                   uint64_t from, uint64_t h, uint64_t g)
    {
        T q2 = T(SCAN_EPSILON), k2 = T(SCAN_EPSILON);
        for (uint64_t d = 0; d < n.keys; d++) {
            q2 += qk[from + d] * qk[from + d];
            k2 += qk[from + n.keys + d] * qk[from + n.keys + d];
        }
        q_length = n.delta ? sqrt(q2) : T(1);
        k_length = n.delta ? sqrt(k2) : T(1);
        q_scale = n.delta ? 1 / sqrt(T(n.keys)) : T(1);
        const uint64_t head = (n.first_head + h) * n.all_of_group + n.first_of_group + g;
        const T fixed = T(exp(-n.scale * attention_slope(true, head, n.all_heads)));
        b = n.gates ? T(gates[row * n.gates + n.gates - 1]) : T(1);
        for (uint64_t d = 0; d < n.keys; d++) {
            q[d] = qk[from + d] / q_length * q_scale;
            k[d] = qk[from + n.keys + d] / k_length;
            a[d] = n.gates ? T(exp(T(gates[row * n.gates + (n.gates == 2 ? 0 : d)])))
                           : fixed;
        }
    }

    // The state after token t, from the one before.
    __host__ __device__ void step(const Scan &n, In<T> v, uint64_t row, uint64_t t)
    {
        const uint64_t size = n.keys * n.values;
        T *now = state + t * size, *rest = r + t * n.values;
        for (uint64_t i = 0; i < size; i++)
            now[i] = t ? a[i / n.values] * now[i - size] : T(0);
        for (uint64_t j = 0; j < n.values; j++) {
            rest[j] = v[row * n.values + j];
            for (uint64_t d = 0; d < n.keys && n.delta; d++)
                rest[j] -= k[d] * now[d * n.values + j];
        }
        for (uint64_t i = 0; i < size; i++)
            now[i] += b * k[i / n.values] * rest[i % n.values];
    }
};

template <typename T> static void scan(const CudaCall *call)
{
    const Scan n = scan_of(call, 0);
    const In<T> qk = in<T>(call, 0), v = in<T>(call, 1),
                gates = n.gates ? in<T>(call, 2) : in<T>(call, 1);
    const uint64_t runs = n.batch * n.heads;
    Out<T> y = out<T>(call, 0);
    T *room = scratch<T>(call->queue, runs * n.room());
    each(
        call->queue, runs, BODY(uint64_t i) {
            ScanRun<T> run(n, room + i * n.room());
            const uint64_t b = i / n.heads, h = i % n.heads;
            for (uint64_t g = 0; g < n.group; g++)
                for (uint64_t t = 0; t < n.seq; t++) {
                    const uint64_t row = n.row(b, t, h, g);
                    const T *state = run.state + t * n.keys * n.values;
                    run.token(n, qk, gates, row, n.qk(b, t, h), h, g);
                    run.step(n, v, row, t);
                    for (uint64_t j = 0; j < n.values; j++) {
                        T sum = 0;
                        for (uint64_t d = 0; d < n.keys; d++)
                            sum += run.q[d] * state[d * n.values + j];
                        y[row * n.values + j] = sum;
                    }
                }
        });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_scan, scan)

// Adds the gradient of a vector that was divided by its length.
template <typename T>
__host__ __device__ static void scan_unscale(const T *dn, const T *unit, T by, T length,
                                             uint64_t n, bool divided, Out<T> dx)
{
    T along = 0;
    for (uint64_t i = 0; i < n && divided; i++)
        along += dn[i] * unit[i] / by;
    for (uint64_t i = 0; i < n; i++)
        dx[i] += (dn[i] - unit[i] / by * along) / length;
}

template <typename T> static void scan_dx(const CudaCall *call)
{
    const Scan n = scan_of(call, 1);
    const In<T> dy = in<T>(call, 0), qk = in<T>(call, 1), v = in<T>(call, 2),
                gates = n.gates ? in<T>(call, 3) : in<T>(call, 2);
    const uint64_t runs = n.batch * n.heads, size = n.keys * n.values;
    Out<T> dqk = out<T>(call, 0), dv = out<T>(call, 1),
           dgates = n.gates ? out<T>(call, 2) : out<T>(call, 1);
    T *room = scratch<T>(call->queue, runs * n.room());
    zero(call->queue, dqk, exec_shard_elements(&call->out[0]));
    each(
        call->queue, runs, BODY(uint64_t i) {
            ScanRun<T> run(n, room + i * n.room());
            const uint64_t b = i / n.heads, h = i % n.heads;
            for (uint64_t g = 0; g < n.group; g++) {
                for (uint64_t t = 0; t < n.seq; t++) {
                    const uint64_t row = n.row(b, t, h, g);
                    run.token(n, qk, gates, row, n.qk(b, t, h), h, g);
                    run.step(n, v, row, t);
                }
                for (uint64_t j = 0; j < size; j++)
                    run.ds[j] = 0;
                for (uint64_t t = n.seq; t-- > 0;) {
                    const uint64_t row = n.row(b, t, h, g), from = n.qk(b, t, h);
                    const T *state = run.state + t * size, *r = run.r + t * n.values;
                    T db = 0, dg = 0;
                    run.token(n, qk, gates, row, from, h, g);
                    for (uint64_t j = 0; j < n.values; j++)
                        run.dr[j] = 0;
                    for (uint64_t d = 0; d < n.keys; d++) {
                        T along = 0, dq = 0;
                        for (uint64_t j = 0; j < n.values; j++) {
                            T *ds = &run.ds[d * n.values + j];
                            *ds += run.q[d] * dy[row * n.values + j];
                            dq += state[d * n.values + j] * dy[row * n.values + j];
                            along += *ds * r[j];
                            run.dr[j] += run.b * run.k[d] * *ds;
                        }
                        run.dq[d] = dq * run.q_scale;
                        run.dk[d] = run.b * along;
                        db += run.k[d] * along;
                    }
                    for (uint64_t j = 0; j < n.values; j++)
                        dv[row * n.values + j] = run.dr[j];
                    for (uint64_t d = 0; d < n.keys; d++) {
                        T da = 0;
                        for (uint64_t j = 0; j < n.values; j++) {
                            T *ds = &run.ds[d * n.values + j];
                            const T before = t ? state[d * n.values + j - size] : T(0);
                            if (n.delta) {
                                *ds -= run.k[d] * run.dr[j];
                                run.dk[d] -= run.a[d] * before * run.dr[j];
                            }
                            da += run.a[d] * *ds * before;
                            *ds *= run.a[d];
                        }
                        if (n.gates > 2 || (n.gates == 2 && n.keys == 1))
                            dgates[row * n.gates + d] = da;
                        dg += da;
                    }
                    if (n.gates == 2)
                        dgates[row * n.gates] = dg;
                    if (n.gates)
                        dgates[row * n.gates + n.gates - 1] = db;
                    scan_unscale<T>(run.dq, run.q, run.q_scale, run.q_length, n.keys,
                                    n.delta, dqk + from);
                    scan_unscale<T>(run.dk, run.k, T(1), run.k_length, n.keys, n.delta,
                                    dqk + from + n.keys);
                }
            }
        });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_scan_dx, scan_dx)

template <typename T> __host__ __device__ static T scan_sigmoid(T x)
{
    return 1 / (1 + exp(-x));
}

template <typename T> __host__ __device__ static T scan_softplus(T x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

struct ScanGates {
    uint64_t rows, heads, raw, decays;
    bool sigmoid;
};

static ScanGates scan_gates_of(const CudaCall *call, uint32_t first)
{
    const ExecShard *x = &call->in[first];
    return {exec_shard_elements(x) / x->dim[4], (uint64_t)x->dim[2] * x->dim[3],
            x->dim[4], call->in[first + 2].dim[2], call->op->attr.sigmoid};
}

template <typename T> static void scan_gates(const CudaCall *call)
{
    const ScanGates n = scan_gates_of(call, 0);
    const In<T> x = in<T>(call, 0), rate = in<T>(call, 1), bias = in<T>(call, 2);
    Out<T> gate = out<T>(call, 0);
    each(
        call->queue, n.rows * (n.decays + 1), BODY(uint64_t at) {
            const uint64_t i = at % (n.decays + 1), r = at / (n.decays + 1),
                           head = r % n.heads, from = i < n.decays ? i : 0;
            const T rise =
                scan_softplus<T>(x[r * n.raw + from] + bias[head * n.decays + from]);
            gate[at] = i < n.decays ? -T(exp(T(rate[head]))) * rise
                       : n.sigmoid  ? scan_sigmoid<T>(x[r * n.raw + n.decays])
                                    : rise;
        });
}
CUDA_KERNEL(cuda_scan_gates, scan_gates)

template <typename T> static void scan_gates_dx(const CudaCall *call)
{
    const ScanGates n = scan_gates_of(call, 1);
    const In<T> dgate = in<T>(call, 0), x = in<T>(call, 1), rate = in<T>(call, 2),
                bias = in<T>(call, 3);
    Out<T> dx = out<T>(call, 0);
    each(
        call->queue, n.rows * n.raw, BODY(uint64_t at) {
            const uint64_t i = at % n.raw, r = at / n.raw, head = r % n.heads,
                           first = r * (n.decays + 1);
            if (i == n.decays) {
                const T b = scan_sigmoid<T>(x[at]);
                dx[at] = dgate[first + i] * b * (1 - b);
                return;
            }
            const T slope = scan_sigmoid<T>(x[at] + bias[head * n.decays + i]);
            dx[at] = (-T(exp(T(rate[head]))) * dgate[first + i] +
                      (n.sigmoid ? T(0) : T(dgate[first + n.decays]))) *
                     slope;
        });
}
CUDA_KERNEL(cuda_scan_gates_dx, scan_gates_dx)

template <typename T> static void scan_gates_dw(const CudaCall *call)
{
    const ScanGates n = scan_gates_of(call, 1);
    const In<T> dgate = in<T>(call, 0), x = in<T>(call, 1), rate = in<T>(call, 2),
                bias = in<T>(call, 3);
    Out<T> drate = out<T>(call, 0), dbias = out<T>(call, 1);
    each(
        call->queue, n.heads, BODY(uint64_t head) {
            const T a = -T(exp(T(rate[head])));
            T all = 0;
            for (uint64_t i = 0; i < n.decays; i++) {
                T sum = 0;
                for (uint64_t r = head; r < n.rows; r += n.heads) {
                    const T u = x[r * n.raw + i] + bias[head * n.decays + i];
                    const T d = a * dgate[r * (n.decays + 1) + i];
                    all += d * scan_softplus<T>(u);
                    sum += (d + (n.sigmoid ? T(0)
                                           : T(dgate[r * (n.decays + 1) + n.decays]))) *
                           scan_sigmoid<T>(u);
                }
                dbias[head * n.decays + i] = sum;
            }
            drate[head] = all;
        });
}
CUDA_KERNEL(cuda_scan_gates_dw, scan_gates_dw)
