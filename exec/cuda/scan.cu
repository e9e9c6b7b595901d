/* Linear recurrences and their gates, on GPUs. */
// See exec/kernels/scan.c for the equations. A thread takes one head of one sample, with all of its states in scratch memory.
#include <cmath>

#include "exec/cuda/launch.cuh"
#include "exec/kernels/position.h"

#define SCAN_EPSILON  1e-6
#define SCAN_STEEPEST 0.6065306597126334

template <typename T> __host__ __device__ static T scan_sigmoid(T x)
{
    return 1 / (1 + exp(-x));
}

template <typename T> __host__ __device__ static T scan_softplus(T x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

struct Scan {
    uint64_t batch, seq, heads, group, keys, values, gates;
    bool delta, selective, early, removes;
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
    // Numbers of scratch memory for one head: its states, the rows r, and q, k, a, dq, dk, log a, n, c, dn of a token with dr, dp
    // and dS; and sums over this sample of the gradients of rates.
    __host__ __device__ uint64_t room() const
    {
        return (seq + 1) * keys * values + (seq + 2) * values + 9 * keys +
               (selective ? group * keys : 0);
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
            kind == OP_SELECTIVE_SCAN || kind == OP_SELECTIVE_SCAN_DX,
            kind == OP_WKV || kind == OP_WKV_DX,
            kind == OP_DELTA_WKV || kind == OP_DELTA_WKV_DX,
            call->op->attr.scale,
            v->offset[2],
            v->offset[3],
            (uint64_t)whole->dim[2] * whole->dim[3],
            whole->dim[3]};
}

// One head's scratch memory.
template <typename T> struct ScanRun {
    T *state, *r, *q, *k, *a, *dq, *dk, *dr, *ds, *log_a, *n, *c, *dn, *dp, *drate;
    T b, q_length, k_length, q_scale, n_length;

    __host__ __device__ ScanRun(const Scan &of, T *room)
    {
        state = room;
        ds = state + of.seq * of.keys * of.values;
        r = ds + of.keys * of.values;
        dr = r + of.seq * of.values;
        dp = dr + of.values;
        q = dp + of.values;
        k = q + of.keys;
        a = k + of.keys;
        dq = a + of.keys;
        dk = dq + of.keys;
        log_a = dk + of.keys;
        n = log_a + of.keys;
        c = n + of.keys;
        dn = c + of.keys;
        drate = dn + of.keys;
    }

    // `more`: rates, or what is taken away.
    __host__ __device__ void token(const Scan &of, In<T> qk, In<T> gates, In<T> more,
                                   uint64_t row, uint64_t from, uint64_t h, uint64_t g)
    {
        T q2 = T(SCAN_EPSILON), k2 = T(SCAN_EPSILON), n2 = T(SCAN_EPSILON);
        for (uint64_t d = 0; d < of.keys; d++) {
            q2 += qk[from + d] * qk[from + d];
            k2 += qk[from + of.keys + d] * qk[from + of.keys + d];
            n2 += of.removes ? more[from + d] * more[from + d] : T(0);
        }
        q_length = of.delta ? sqrt(q2) : T(1);
        k_length = of.delta ? sqrt(k2) : T(1);
        n_length = of.removes ? sqrt(n2) : T(1);
        q_scale = of.delta ? 1 / sqrt(T(of.keys)) : T(1);
        const uint64_t head =
                           (of.first_head + h) * of.all_of_group + of.first_of_group + g,
                       rate = (h * of.group + g) * of.keys;
        const T fixed = T(-of.scale * attention_slope(true, head, of.all_heads));
        const T rise = of.selective ? scan_softplus<T>(gates[row]) : T(1);
        b = of.selective ? rise
            : !of.gates || of.early || of.removes
                ? T(1)
                : T(gates[row * of.gates + of.gates - 1]);
        for (uint64_t d = 0; d < of.keys; d++) {
            q[d] = qk[from + d] / q_length * q_scale;
            k[d] = qk[from + of.keys + d] / k_length;
            n[d] = of.removes ? more[from + d] / n_length : T(0);
            c[d] = of.removes ? n[d] * scan_sigmoid<T>(more[from + of.keys + d]) : T(0);
            const uint64_t at =
                row * of.gates + (of.gates > 2 || of.early || of.removes ? d : 0);
            log_a[d] = !of.gates      ? fixed
                       : of.selective ? -exp(T(more[rate + d])) * rise
                       : of.early     ? -exp(T(gates[at]))
                       : of.removes   ? -T(SCAN_STEEPEST) * scan_sigmoid<T>(gates[at])
                                      : T(gates[at]);
            a[d] = exp(log_a[d]);
        }
    }

    // The state after token t, from the one before.
    __host__ __device__ void step(const Scan &of, In<T> v, uint64_t row, uint64_t t)
    {
        const uint64_t size = of.keys * of.values;
        T *now = state + t * size, *rest = r + t * of.values;
        for (uint64_t i = 0; i < size; i++)
            now[i] = t ? a[i / of.values] * now[i - size] : T(0);
        for (uint64_t j = 0; j < of.values; j++) {
            rest[j] = of.removes ? T(0) : T(v[row * of.values + j]);
            for (uint64_t d = 0; d < of.keys && of.delta; d++)
                rest[j] -= k[d] * now[d * of.values + j];
            for (uint64_t d = 0; d < of.keys && of.removes && t; d++)
                rest[j] += n[d] * now[d * of.values + j - size];
        }
        for (uint64_t i = 0; i < size; i++)
            now[i] += of.removes ? k[i / of.values] * v[row * of.values + i % of.values] -
                                       c[i / of.values] * rest[i % of.values]
                                 : b * k[i / of.values] * rest[i % of.values];
    }
};

template <typename T> static void scan(const CudaCall *call)
{
    const Scan n = scan_of(call, 0);
    const In<T> qk = in<T>(call, 0), v = in<T>(call, 1),
                gates = n.gates ? in<T>(call, 2) : in<T>(call, 1),
                more = n.selective || n.removes ? in<T>(call, 3) : in<T>(call, 1);
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
                    run.token(n, qk, gates, more, row, n.qk(b, t, h), h, g);
                    run.step(n, v, row, t);
                    for (uint64_t j = 0; j < n.values; j++) {
                        T sum = 0;
                        for (uint64_t d = 0; d < n.keys && (t || !n.early); d++)
                            sum += run.q[d] * state[d * n.values + j -
                                                    (n.early ? n.keys * n.values : 0)];
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
    const bool extra = n.selective || n.removes;
    const In<T> dy = in<T>(call, 0), qk = in<T>(call, 1), v = in<T>(call, 2),
                gates = n.gates ? in<T>(call, 3) : in<T>(call, 2),
                more = extra ? in<T>(call, 4) : in<T>(call, 2);
    const uint64_t runs = n.batch * n.heads, size = n.keys * n.values;
    Out<T> dqk = out<T>(call, 0), dv = out<T>(call, 1),
           dgates = n.gates ? out<T>(call, 2) : out<T>(call, 1),
           dmore = extra ? out<T>(call, 3) : out<T>(call, 1);
    T *room = scratch<T>(call->queue, runs * n.room());
    zero(call->queue, dqk, exec_shard_elements(&call->out[0]));
    if (n.removes)
        zero(call->queue, dmore, exec_shard_elements(&call->out[3]));
    each(
        call->queue, runs, BODY(uint64_t i) {
            ScanRun<T> run(n, room + i * n.room());
            const uint64_t b = i / n.heads, h = i % n.heads;
            for (uint64_t g = 0; g < n.group; g++) {
                for (uint64_t t = 0; t < n.seq; t++) {
                    const uint64_t row = n.row(b, t, h, g);
                    run.token(n, qk, gates, more, row, n.qk(b, t, h), h, g);
                    run.step(n, v, row, t);
                }
                for (uint64_t j = 0; j < size; j++)
                    run.ds[j] = 0;
                for (uint64_t d = 0; d < n.keys && n.selective; d++)
                    run.drate[g * n.keys + d] = 0;
                for (uint64_t t = n.seq; t-- > 0;) {
                    const uint64_t row = n.row(b, t, h, g), from = n.qk(b, t, h);
                    const T *state = run.state + t * size, *r = run.r + t * n.values;
                    T db = 0, dg = 0;
                    run.token(n, qk, gates, more, row, from, h, g);
                    for (uint64_t j = 0; j < n.values; j++)
                        run.dr[j] = run.dp[j] = 0;
                    for (uint64_t d = 0; d < n.keys; d++) {
                        T along = 0, dq = 0;
                        for (uint64_t j = 0; j < n.values; j++) {
                            const uint64_t at = d * n.values + j;
                            T *ds = &run.ds[at];
                            const T slope = dy[row * n.values + j];
                            *ds += n.early ? T(0) : run.q[d] * slope;
                            dq += (!n.early ? state[at]
                                   : t      ? state[at - size]
                                            : T(0)) *
                                  slope;
                            along += *ds * (n.removes ? T(v[row * n.values + j]) : r[j]);
                            run.dr[j] += run.b * run.k[d] * *ds;
                            run.dp[j] -= run.c[d] * *ds;
                        }
                        run.dq[d] = dq * run.q_scale;
                        run.dk[d] = run.b * along;
                        db += run.k[d] * along;
                    }
                    for (uint64_t j = 0; j < n.values; j++)
                        dv[row * n.values + j] = run.dr[j];
                    for (uint64_t d = 0; d < n.keys; d++) {
                        T da = 0, dc = 0, before_dp = 0;
                        for (uint64_t j = 0; j < n.values; j++) {
                            T *ds = &run.ds[d * n.values + j];
                            const T before = t ? state[d * n.values + j - size] : T(0);
                            if (n.delta) {
                                *ds -= run.k[d] * run.dr[j];
                                run.dk[d] -= run.a[d] * before * run.dr[j];
                            }
                            dc -= *ds * r[j];
                            before_dp += before * run.dp[j];
                            da += run.a[d] * *ds * before;
                            *ds = *ds * run.a[d] + run.n[d] * run.dp[j] +
                                  (n.early ? run.q[d] * dy[row * n.values + j] : T(0));
                        }
                        if (n.removes) {
                            const T part = scan_sigmoid<T>(more[from + n.keys + d]);
                            run.dn[d] = dc * part + before_dp;
                            dmore[from + n.keys + d] += dc * run.c[d] * (1 - part);
                        }
                        const uint64_t at = row * n.gates + d;
                        if (n.selective) {
                            run.drate[g * n.keys + d] += da * run.log_a[d];
                            da *= -exp(T(more[(h * n.group + g) * n.keys + d]));
                        } else if (n.early)
                            dgates[at] = da * run.log_a[d];
                        else if (n.removes)
                            dgates[at] =
                                da * run.log_a[d] * (1 - scan_sigmoid<T>(gates[at]));
                        else if (n.gates > 2 || (n.gates == 2 && n.keys == 1))
                            dgates[at] = da;
                        dg += da;
                    }
                    if (n.selective)
                        dgates[row] = (dg + db) * scan_sigmoid<T>(gates[row]);
                    else if (n.gates && !n.early && !n.removes) {
                        if (n.gates == 2)
                            dgates[row * n.gates] = dg;
                        dgates[row * n.gates + n.gates - 1] = db;
                    }
                    scan_unscale<T>(run.dq, run.q, run.q_scale, run.q_length, n.keys,
                                    n.delta, dqk + from);
                    scan_unscale<T>(run.dk, run.k, T(1), run.k_length, n.keys, n.delta,
                                    dqk + from + n.keys);
                    if (n.removes)
                        scan_unscale<T>(run.dn, run.n, T(1), run.n_length, n.keys, true,
                                        dmore + from);
                }
            }
        });
    const uint64_t each_head = n.group * n.keys;
    if (n.selective)
        each(
            call->queue, n.heads * each_head, BODY(uint64_t at) {
                T sum = 0;
                for (uint64_t b = 0; b < n.batch; b++)
                    sum += ScanRun<T>(n, room + (b * n.heads + at / each_head) * n.room())
                               .drate[at % each_head];
                dmore[at] = sum;
            });
    release(call->queue, room);
}
CUDA_KERNEL(cuda_scan_dx, scan_dx)

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

// --- the part of a token that its own state does not have ---

template <typename T> static void bonus(const CudaCall *call)
{
    const ExecShard *shard = &call->in[1];
    const uint64_t keys = call->in[0].dim[3] / 2, heads = shard->dim[2],
                   width = (uint64_t)shard->dim[3] * shard->dim[4];
    const In<T> qk = in<T>(call, 0), v = in<T>(call, 1), u = in<T>(call, 2);
    Out<T> y = out<T>(call, 0);
    each(
        call->queue, exec_shard_elements(shard), BODY(uint64_t at) {
            const uint64_t i = at / width, q = i * 2 * keys, head = i % heads * keys;
            T c = 0;
            for (uint64_t d = 0; d < keys; d++)
                c += qk[q + d] * u[head + d] * qk[q + keys + d];
            y[at] = c * v[at];
        });
}
CUDA_KERNEL(cuda_bonus, bonus)

template <typename T> static void bonus_dx(const CudaCall *call)
{
    const ExecShard *shard = &call->in[2];
    const uint64_t keys = call->in[1].dim[3] / 2, heads = shard->dim[2],
                   width = (uint64_t)shard->dim[3] * shard->dim[4],
                   tokens = (uint64_t)shard->dim[0] * shard->dim[1];
    const In<T> dy = in<T>(call, 0), qk = in<T>(call, 1), v = in<T>(call, 2),
                u = in<T>(call, 3);
    Out<T> dqk = out<T>(call, 0), dv = out<T>(call, 1), du = out<T>(call, 2);
    each(
        call->queue, heads, BODY(uint64_t h) {
            for (uint64_t d = 0; d < keys; d++)
                du[h * keys + d] = 0;
            for (uint64_t token = 0; token < tokens; token++) {
                const uint64_t i = token * heads + h, q = i * 2 * keys;
                T s = 0, c = 0;
                for (uint64_t j = i * width; j < (i + 1) * width; j++)
                    s += dy[j] * v[j];
                for (uint64_t d = 0; d < keys; d++) {
                    const T a = qk[q + d], b = qk[q + keys + d], w = u[h * keys + d];
                    c += a * w * b;
                    dqk[q + d] = s * w * b;
                    dqk[q + keys + d] = s * w * a;
                    du[h * keys + d] += s * a * b;
                }
                for (uint64_t j = i * width; j < (i + 1) * width; j++)
                    dv[j] = c * dy[j];
            }
        });
}
CUDA_KERNEL(cuda_bonus_dx, bonus_dx)
