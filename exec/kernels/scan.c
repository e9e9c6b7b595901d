/* Linear recurrences over a sequence: one matrix S[D,V] for each sample and head, zero before the
 * first token. With E = 2D elements qk = (q, k), decays a = exp(gate) of one number or D, and a
 * factor b:
 *
 *     P = a S                          what is left of the state
 *     r = v                            scan (Mamba-2: Dao and Gu 2024, Eq. 5; lightning: Qin et al. 2024)
 *     r = v - P^T k                    delta_scan (gated delta net: Yang et al. 2024, Eq. 10; KDA 2025)
 *     P = a S - c n^T S, b = 1         delta_wkv (RWKV-7: Peng et al. 2025, Eq. 16)
 *     S = P + b k r^T,   y = S^T q
 *
 * linear_attention has no gates: b = 1, and a falls with the head as ALiBi's slopes do, times
 * `scale`. selective_scan makes a and b from rates A[D] and a step, wkv and delta_wkv make a from
 * numbers of their own; wkv reads S before the token. n is divided by its length, and c = n f(its
 * own numbers), f the sigmoid. In delta_scan q and k are divided by their lengths, and q by sqrt(D)
 * as well. The backward goes through the tokens in reverse with the states that a forward pass has
 * kept. Batch and heads are independent, so shards along them are too. */
#include <math.h>
#include <string.h>

#include "exec/kernels/kernels.h"
#include "exec/kernels/position.h"
#include "exec/kernels/vector.h"

/* Added to squares of lengths. */
#define SCAN_EPSILON 1e-6
/* exp(-1/2): the steepest decay of delta_wkv. */
#define SCAN_STEEPEST 0.6065306597126334

typedef struct {
    uint64_t batch, seq, heads, group, keys, values, gates; /* gates 0: fixed decays */
    bool delta, selective, early, removes; /* early: wkv; removes: delta_wkv */
    /* of fixed decays: the whole tensor's heads, and the place of this shard's */
    double scale;
    uint64_t first_head, first_of_group, all_heads, all_of_group;
} Scan;

/* One token of one head, ready to be used. */
typedef struct {
    const double *v;
    double *q, *k;   /* for delta_scan of length 1, and q scaled */
    double *a, *log; /* [keys], and their logarithms */
    double *n, *c;   /* [keys] what delta_wkv takes away */
    double b, q_length, k_length, q_scale, n_length;
} ScanToken;

static double scan_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* `first`: the index of qk among the op's inputs; v and gates follow. */
static Scan scan_of(const KernelCall *call, uint32_t first)
{
    const ExecTensor *qk = &call->in[first], *v = &call->in[first + 1];
    const OpKind kind = call->op->kind;
    const bool fixed = kind == OP_LINEAR_ATTENTION || kind == OP_LINEAR_ATTENTION_DX;
    const Tensor *whole = graph_tensor(call->graph, call->op->in[first + 1]);
    return (Scan){.batch = v->dim[0],
                  .seq = v->dim[1],
                  .heads = v->dim[2],
                  .group = v->dim[3],
                  .keys = qk->dim[3] / 2,
                  .values = v->dim[4],
                  .gates = fixed ? 0 : call->in[first + 2].dim[4],
                  .delta = kind == OP_DELTA_SCAN || kind == OP_DELTA_SCAN_DX,
                  .selective = kind == OP_SELECTIVE_SCAN || kind == OP_SELECTIVE_SCAN_DX,
                  .early = kind == OP_WKV || kind == OP_WKV_DX,
                  .removes = kind == OP_DELTA_WKV || kind == OP_DELTA_WKV_DX,
                  .scale = call->op->attr.scale,
                  .first_head = v->offset[2],
                  .first_of_group = v->offset[3],
                  .all_heads = (uint64_t)whole->dim[2] * whole->dim[3],
                  .all_of_group = whole->dim[3]};
}

/* The token's row in v[b,S,h,g,.] and in gates[b,S,h,g,.]. */
static uint64_t scan_row(const Scan *n, uint64_t b, uint64_t t, uint64_t h, uint64_t g)
{
    return ((b * n->seq + t) * n->heads + h) * n->group + g;
}

/* The token's first element in qk[b,S,h,.]. */
static uint64_t scan_keys(const Scan *n, uint64_t b, uint64_t t, uint64_t h)
{
    return ((b * n->seq + t) * n->heads + h) * 2 * n->keys;
}

static double scan_length(const double *x, uint64_t n)
{
    return sqrt(dot(x, x, n) + SCAN_EPSILON);
}

/* The logarithm of the decay of element d, from the numbers of a head's token; `rate`: A of this
 * channel. */
static double scan_log_decay(const Scan *n, const double *gate, const double *rate,
                             uint64_t d)
{
    return n->selective   ? -exp(rate[d]) * scan_softplus(gate[0])
           : n->early     ? -exp(gate[d])
           : n->removes   ? -SCAN_STEEPEST * sigmoid_of(gate[d]).value
           : n->gates > 2 ? gate[d]
                          : gate[0];
}

/* Fills in a token. `in`: qk, v, gates, and rates or what is taken away. */
static void scan_token(const Scan *n, const ExecTensor *in, uint64_t b, uint64_t t,
                       uint64_t h, uint64_t g, ScanToken *token)
{
    const double *qk = in[0].data + scan_keys(n, b, t, h);
    const uint64_t row = scan_row(n, b, t, h, g);
    const double *gate = n->gates ? in[2].data + row * n->gates : NULL;
    const uint64_t head = (n->first_head + h) * n->all_of_group + n->first_of_group + g;
    token->v = in[1].data + row * n->values;
    token->q_length = n->delta ? scan_length(qk, n->keys) : 1;
    token->k_length = n->delta ? scan_length(qk + n->keys, n->keys) : 1;
    token->q_scale = n->delta ? 1 / sqrt((double)n->keys) : 1;
    token->b = !gate || n->early || n->removes ? 1
               : n->selective                  ? scan_softplus(gate[0])
                                               : gate[n->gates - 1];
    const double *rate = n->selective ? in[3].data + (h * n->group + g) * n->keys : NULL,
                 *away = n->removes ? in[3].data + scan_keys(n, b, t, h) : NULL;
    token->n_length = away ? scan_length(away, n->keys) : 1;
    for (uint64_t d = 0; d < n->keys; d++) {
        token->q[d] = qk[d] / token->q_length * token->q_scale;
        token->k[d] = qk[n->keys + d] / token->k_length;
        token->log[d] = gate ? scan_log_decay(n, gate, rate, d)
                             : -n->scale * attention_slope(true, head, n->all_heads);
        token->a[d] = exp(token->log[d]);
        token->n[d] = away ? away[d] / token->n_length : 0;
        token->c[d] = away ? token->n[d] * sigmoid_of(away[n->keys + d]).value : 0;
    }
}

/* S = a before + b k r^T; r is kept, of delta_wkv n^T before in its place. */
static void scan_step(const Scan *n, const ScanToken *token, const double *before,
                      double *state, double *r)
{
    memcpy(r, token->v, n->values * sizeof *r);
    for (uint64_t d = 0; d < n->keys; d++)
        for (uint64_t v = 0; v < n->values; v++)
            state[d * n->values + v] =
                token->a[d] * (before ? before[d * n->values + v] : 0);
    for (uint64_t d = 0; d < n->keys && n->delta; d++)
        add_scaled(r, -token->k[d], state + d * n->values, n->values);
    for (uint64_t d = 0; d < n->keys; d++)
        add_scaled(state + d * n->values, token->b * token->k[d], r, n->values);
    if (!n->removes)
        return;
    memset(r, 0, n->values * sizeof *r);
    for (uint64_t d = 0; d < n->keys && before; d++)
        add_scaled(r, token->n[d], before + d * n->values, n->values);
    for (uint64_t d = 0; d < n->keys; d++)
        add_scaled(state + d * n->values, -token->c[d], r, n->values);
}

/* All states and r of one head, token after token; a token's arrays lie behind them. */
typedef struct {
    double *state, *r;
    ScanToken token;
} ScanRun;

static ScanRun scan_run_new(const Scan *n)
{
    const uint64_t states = n->seq * n->keys * n->values, rs = n->seq * n->values;
    ScanRun run = {.state = g_new0(double, states + rs + 6 * n->keys)};
    double **const array[] = {&run.token.q,   &run.token.k, &run.token.a,
                              &run.token.log, &run.token.n, &run.token.c};
    run.r = run.state + states;
    for (uint32_t i = 0; i < G_N_ELEMENTS(array); i++)
        *array[i] = run.r + rs + i * n->keys;
    return run;
}

static void scan_forward(const Scan *n, const ExecTensor *in, uint64_t b, uint64_t h,
                         uint64_t g, ScanRun *run)
{
    const uint64_t size = n->keys * n->values;
    for (uint64_t t = 0; t < n->seq; t++) {
        double *state = run->state + t * size;
        scan_token(n, in, b, t, h, g, &run->token);
        scan_step(n, &run->token, t ? state - size : NULL, state, run->r + t * n->values);
    }
}

/* In: qk[b,S,h,E], v[b,S,h,g,V], gates[b,S,h,g,G] or none, rates[h,g,D] or what is taken away
 * [b,S,h,E] or none. Out: y[b,S,h,g,V]. */
void kernel_scan(const KernelCall *call)
{
    const Scan n = scan_of(call, 0);
    ScanRun run = scan_run_new(&n);
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t g = 0; g < n.group; g++) {
                scan_forward(&n, call->in, b, h, g, &run);
                for (uint64_t t = n.early; t < n.seq; t++) {
                    const double *state = run.state + (t - n.early) * n.keys * n.values;
                    scan_token(&n, call->in, b, t, h, g, &run.token);
                    for (uint64_t d = 0; d < n.keys; d++)
                        add_scaled(call->out[0].data +
                                       scan_row(&n, b, t, h, g) * n.values,
                                   run.token.q[d], state + d * n.values, n.values);
                }
            }
    g_free(run.state);
}

/* A token's backward, beside its states. ds is the gradient of S, which becomes that of the state
 * before. */
typedef struct {
    const double *dy, *state, *before, *r, *gate, *rate, *away, *v;
    double *ds, *dr, *dq, *dk, *dv, *dgate, *drate, *daway;
} ScanSlope;

/* Adds the gradient of a vector that was divided by its length: dx += (dn - n (n . dn)) / length, n
 * = x / length. */
static void scan_unscale(const double *dn, const double *unit, double length, uint64_t n,
                         bool divided, double *dx)
{
    const double along = divided ? dot(dn, unit, n) : 0;
    for (uint64_t i = 0; i < n; i++)
        dx[i] += (dn[i] - unit[i] * along) / length;
}

/* Hands on the gradients of the decays' logarithms and of the factor. */
static void scan_gate_dx(const Scan *n, const ScanToken *token, const double *dlog,
                         double db, ScanSlope *s)
{
    double step = db;
    for (uint64_t d = 0; d < n->keys; d++)
        if (n->selective) {
            step -= dlog[d] * exp(s->rate[d]);
            s->drate[d] += dlog[d] * token->log[d];
        } else if (n->early || n->removes)
            s->dgate[d] += dlog[d] * token->log[d] *
                           (n->removes ? 1 - sigmoid_of(s->gate[d]).value : 1);
        else
            s->dgate[n->gates == 2 ? 0 : d] += dlog[d];
    if (n->selective)
        s->dgate[0] += step * sigmoid_of(s->gate[0]).value;
    else if (!n->early && !n->removes)
        s->dgate[n->gates - 1] += db;
}

static void scan_token_dx(const Scan *n, const ScanToken *token, ScanSlope *s)
{
    const uint64_t keys = n->keys, values = n->values;
    g_autofree double *dq = g_new0(double, 5 * keys + values);
    double *dk = dq + keys, *unit = dk + keys, *dlog = unit + keys, *dn = dlog + keys,
           *dp = dn + keys, db = 0;
    const double *seen = n->early ? s->before : s->state;
    memset(s->dr, 0, values * sizeof *s->dr);
    for (uint64_t d = 0; d < keys; d++) {
        double *ds = s->ds + d * values;
        if (!n->early)
            add_scaled(ds, token->q[d], s->dy, values);
        dq[d] = seen ? dot(seen + d * values, s->dy, values) : 0;
        const double along = dot(ds, n->removes ? s->v : s->r, values);
        db += token->k[d] * along;
        dk[d] = token->b * along;
        add_scaled(s->dr, token->b * token->k[d], ds, values);
        add_scaled(dp, -token->c[d], ds, values);
    }
    add_scaled(s->dv, 1, s->dr, values);
    for (uint64_t d = 0; d < keys; d++) {
        double *ds = s->ds + d * values;
        const double *before = s->before ? s->before + d * values : NULL;
        if (n->delta) {
            add_scaled(ds, -token->k[d], s->dr, values);
            dk[d] -= before ? token->a[d] * dot(before, s->dr, values) : 0;
        }
        if (n->removes) {
            const double part = sigmoid_of(s->away[keys + d]).value,
                         dc = -dot(ds, s->r, values);
            dn[d] = dc * part + (before ? dot(before, dp, values) : 0);
            s->daway[keys + d] += dc * token->c[d] * (1 - part);
        }
        dlog[d] = before ? token->a[d] * dot(ds, before, values) : 0;
        for (uint64_t v = 0; v < values; v++)
            ds[v] = token->a[d] * ds[v] + token->n[d] * dp[v] +
                    (n->early ? token->q[d] * s->dy[v] : 0);
    }
    if (n->gates)
        scan_gate_dx(n, token, dlog, db, s);
    for (uint64_t d = 0; d < keys; d++) {
        dq[d] *= token->q_scale;
        unit[d] = token->q[d] / token->q_scale;
    }
    scan_unscale(dq, unit, token->q_length, keys, n->delta, s->dq);
    scan_unscale(dk, token->k, token->k_length, keys, n->delta, s->dk);
    if (n->removes)
        scan_unscale(dn, token->n, token->n_length, keys, true, s->daway);
}

/* In: dy[b,S,h,g,V] and the forward's. Out: their gradients. */
void kernel_scan_dx(const KernelCall *call)
{
    const Scan n = scan_of(call, 1);
    const uint64_t size = n.keys * n.values;
    const ExecTensor *in = call->in + 1, *out = call->out;
    ScanRun run = scan_run_new(&n);
    g_autofree double *slope = g_new(double, size + n.values);
    for (uint64_t b = 0; b < n.batch; b++)
        for (uint64_t h = 0; h < n.heads; h++)
            for (uint64_t g = 0; g < n.group; g++) {
                scan_forward(&n, in, b, h, g, &run);
                memset(slope, 0, size * sizeof *slope);
                for (uint64_t t = n.seq; t-- > 0;) {
                    const uint64_t row = scan_row(&n, b, t, h, g),
                                   at = scan_keys(&n, b, t, h),
                                   rate = (h * n.group + g) * n.keys;
                    const double *state = run.state + t * size;
                    scan_token(&n, in, b, t, h, g, &run.token);
                    ScanSlope s = {.dy = call->in[0].data + row * n.values,
                                   .state = state,
                                   .before = t ? state - size : NULL,
                                   .r = run.r + t * n.values,
                                   .v = run.token.v,
                                   .ds = slope,
                                   .dr = slope + size,
                                   .dq = out[0].data + at,
                                   .dk = out[0].data + at + n.keys,
                                   .dv = out[1].data + row * n.values};
                    if (n.gates) {
                        s.gate = in[2].data + row * n.gates;
                        s.dgate = out[2].data + row * n.gates;
                    }
                    if (n.selective) {
                        s.rate = in[3].data + rate;
                        s.drate = out[3].data + rate;
                    } else if (n.removes) {
                        s.away = in[3].data + at;
                        s.daway = out[3].data + at;
                    }
                    scan_token_dx(&n, &run.token, &s);
                }
            }
    g_free(run.state);
}

/* --- gates --- */

/* One head's numbers: u = x + bias, [B] of them; with `sigmoid` one more number makes b. */
typedef struct {
    uint64_t rows, heads, raw, decays;
    bool sigmoid;
    const double *x, *log_rate, *bias;
} ScanGates;

static ScanGates scan_gates_of(const KernelCall *call, uint32_t first)
{
    const ExecTensor *x = &call->in[first];
    return (ScanGates){.rows = exec_tensor_elements(x) / MAX(1, x->dim[4]),
                       .heads = (uint64_t)x->dim[2] * x->dim[3],
                       .raw = x->dim[4],
                       .decays = call->in[first + 2].dim[2],
                       .sigmoid = call->op->attr.sigmoid,
                       .x = x->data,
                       .log_rate = call->in[first + 1].data,
                       .bias = call->in[first + 2].data};
}

/* In: x[b,s,h,g,R], A[h,g], bias[h,g,B]. Out: gates[b,s,h,g,G]. */
void kernel_scan_gates(const KernelCall *call)
{
    const ScanGates n = scan_gates_of(call, 0);
    for (uint64_t r = 0; r < n.rows; r++) {
        const uint64_t head = r % n.heads;
        double *gate = call->out[0].data + r * (n.decays + 1);
        for (uint64_t i = 0; i < n.decays; i++) {
            const double rise =
                scan_softplus(n.x[r * n.raw + i] + n.bias[head * n.decays + i]);
            gate[i] = -exp(n.log_rate[head]) * rise;
            gate[n.decays] = rise;
        }
        if (n.sigmoid)
            gate[n.decays] = sigmoid_of(n.x[r * n.raw + n.decays]).value;
    }
}

/* The gradient of u_i = x_i + bias_i, from that of the row's gates. */
static double scan_gate_slope(const ScanGates *n, uint64_t r, uint64_t i,
                              const double *dgate)
{
    const uint64_t head = r % n->heads;
    const double slope =
        sigmoid_of(n->x[r * n->raw + i] + n->bias[head * n->decays + i]).value;
    return (-exp(n->log_rate[head]) * dgate[i] + (n->sigmoid ? 0 : dgate[n->decays])) *
           slope;
}

/* In: dgates, x, A, bias. Out: dx. */
void kernel_scan_gates_dx(const KernelCall *call)
{
    const ScanGates n = scan_gates_of(call, 1);
    for (uint64_t r = 0; r < n.rows; r++) {
        const double *dgate = call->in[0].data + r * (n.decays + 1);
        double *dx = call->out[0].data + r * n.raw;
        for (uint64_t i = 0; i < n.decays; i++)
            dx[i] = scan_gate_slope(&n, r, i, dgate);
        if (n.sigmoid) {
            const double b = sigmoid_of(n.x[r * n.raw + n.decays]).value;
            dx[n.decays] = dgate[n.decays] * b * (1 - b);
        }
    }
}

/* In: dgates, x, A, bias. Out: dA[h,g], dbias[h,g,B]. */
void kernel_scan_gates_dw(const KernelCall *call)
{
    const ScanGates n = scan_gates_of(call, 1);
    for (uint64_t r = 0; r < n.rows; r++) {
        const uint64_t head = r % n.heads;
        const double *dgate = call->in[0].data + r * (n.decays + 1);
        for (uint64_t i = 0; i < n.decays; i++) {
            const double rise =
                scan_softplus(n.x[r * n.raw + i] + n.bias[head * n.decays + i]);
            call->out[0].data[head] -= dgate[i] * exp(n.log_rate[head]) * rise;
            call->out[1].data[head * n.decays + i] += scan_gate_slope(&n, r, i, dgate);
        }
    }
}

/* --- the part of a token that its own state does not have (RWKV) --- */

/* y = (q . u k) v. In: qk[b,s,h,E], v[b,s,h,g,V], u[h,D]. */
void kernel_bonus(const KernelCall *call)
{
    const ExecTensor *qk = &call->in[0], *v = &call->in[1];
    const uint64_t keys = qk->dim[3] / 2, heads = qk->dim[2],
                   row = (uint64_t)v->dim[3] * v->dim[4],
                   n = exec_tensor_elements(qk) / MAX(1, 2 * keys);
    for (uint64_t i = 0; i < n; i++) {
        const double *q = qk->data + i * 2 * keys,
                     *u = call->in[2].data + i % heads * keys;
        double c = 0;
        for (uint64_t d = 0; d < keys; d++)
            c += q[d] * u[d] * q[keys + d];
        add_scaled(call->out[0].data + i * row, c, v->data + i * row, row);
    }
}

/* In: dy, qk, v, u. Out: dqk, dv, du. */
void kernel_bonus_dx(const KernelCall *call)
{
    const ExecTensor *qk = &call->in[1], *v = &call->in[2];
    const uint64_t keys = qk->dim[3] / 2, heads = qk->dim[2],
                   row = (uint64_t)v->dim[3] * v->dim[4],
                   n = exec_tensor_elements(qk) / MAX(1, 2 * keys);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = i * 2 * keys, head = i % heads * keys;
        const double *q = qk->data + at, *u = call->in[3].data + head,
                     *dy = call->in[0].data + i * row;
        const double s = dot(dy, v->data + i * row, row);
        double c = 0, *dq = call->out[0].data + at, *du = call->out[2].data + head;
        for (uint64_t d = 0; d < keys; d++) {
            c += q[d] * u[d] * q[keys + d];
            dq[d] += s * u[d] * q[keys + d];
            dq[keys + d] += s * u[d] * q[d];
            du[d] += s * q[d] * q[keys + d];
        }
        add_scaled(call->out[1].data + i * row, c, dy, row);
    }
}
