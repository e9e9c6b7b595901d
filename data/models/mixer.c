/* The parts of layers that mix tokens: attention of all kinds, linear recurrences, short
 * convolutions. */
#include "data/base/assert.h"
#include "data/models/architecture.h"

#include <string.h>

/* --- attention --- */

/* Turns the last `rotary` elements of MLA's heads, and the first `rotary` of other heads. */
static TensorId turn(const Layer *l, const char *part, TensorId x, uint32_t first)
{
    const OpAttr attr = {.first = first, .span = l->facts->rotary};
    return attr.span && !l->crosses ? layer_op(l, OP_ROTARY, part, attr, 1, &x, NULL) : x;
}

/* An op of x and a weight for each of its channels. */
static TensorId by_channel(const Layer *l, OpKind kind, const char *part, TensorId x)
{
    const Tensor in = *graph_tensor(l->graph, x);
    g_autofree char *weight = g_strdup_printf("%s.weight", part);
    return layer_binary(l, kind, part, x,
                        layer_parameter(l, weight, in.rank - 2, in.dim + 2));
}

static TensorId heads_normed(const Layer *l, const char *part, TensorId x)
{
    return l->a->qk_norm == QK_NORM_HEAD   ? layer_rms_norm(l, part, x)
           : l->a->qk_norm == QK_NORM_EACH ? by_channel(l, OP_GROUP_NORM, part, x)
           : l->a->qk_norm == QK_NORM_ALL  ? layer_norm_of_all(l, part, x)
                                           : x;
}

/* The vector that queries are made from. */
static TensorId query_source(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    if (a->q_rank == 0)
        return x;
    x = layer_linear(l, "attention.q_low", x, a->q_rank, a->rank_bias);
    return layer_rms_norm(l, "attention.q_low.norm", x);
}

static TensorId queries(const Layer *l, TensorId x)
{
    const LayerFacts *f = l->facts;
    const uint32_t out[] = {f->kv_heads, f->heads / f->kv_heads, f->head_size};
    TensorId q = layer_project(l, OP_Q_PROJ, "attention.q", x, 3, out, l->a->qkv_bias);
    q = heads_normed(l, "attention.q.norm", q);
    return turn(l, "attention.q.rotary", q,
                f->mixer == MIXER_LATENT ? f->head_size - f->rotary : 0);
}

/* MLA's keys and values: the part of each head is made from the latent vector, the part that all
 * heads share from x. */
static TensorId low_rank_keys(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const LayerFacts *f = l->facts;
    const uint32_t own = f->head_size - a->shared_key;
    TensorId low = layer_linear(l, "attention.kv_low", x, a->kv_rank, a->rank_bias);
    low = layer_rms_norm(l, "attention.kv_low.norm", low);
    const uint32_t out[] = {f->kv_heads, own + f->value_size};
    const TensorId kv = layer_project(l, OP_KV_PROJ, "attention.kv", low, 2, out, false);
    if (a->shared_key == 0)
        return kv;
    TensorId shared = layer_linear(l, "attention.shared", x, a->shared_key, a->rank_bias);
    shared = turn(l, "attention.shared.rotary", shared, 0);
    g_autofree char *extents = g_strdup_printf("E=%u", f->head_size + f->value_size);
    return layer_op(l, OP_JOIN_KEYS, "attention.keys", (OpAttr){.first = own}, 2,
                    (TensorId[]){kv, shared}, extents);
}

/* Keys whose values are these keys, or that are normalised over all heads, have a projection of
 * their own. */
static TensorId separate_keys(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const LayerFacts *f = l->facts;
    const uint32_t key[] = {f->kv_heads, f->head_size},
                   value[] = {f->kv_heads, f->value_size};
    /* the first DeBERTa's keys have no biases */
    TensorId k = layer_project(l, OP_KV_PROJ, "attention.k", x, 2, key,
                               a->qkv_bias && (!a->distances || f->shared));
    const TensorId v = f->shared_values ? k
                                        : layer_project(l, OP_KV_PROJ, "attention.values",
                                                        x, 2, value, a->qkv_bias);
    k = heads_normed(l, "attention.k.norm", k);
    return layer_join(l, "attention.keys", k, v);
}

static TensorId keys(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const LayerFacts *f = l->facts;
    if (f->mixer == MIXER_LATENT)
        return low_rank_keys(l, x);
    const uint32_t out[] = {f->kv_heads, f->head_size + f->value_size};
    const bool apart = f->shared_values || a->qk_norm >= QK_NORM_EACH || a->distances ||
                       l->sizes->own_keys;
    TensorId kv =
        apart ? separate_keys(l, x)
              : layer_project(l, OP_KV_PROJ, "attention.kv", x, 2, out, a->qkv_bias);
    if (!apart && a->qk_norm == QK_NORM_HEAD) {
        const TensorId gamma =
            layer_parameter(l, "attention.k.norm.weight", 1, &f->head_size);
        kv = layer_binary(l, OP_KEY_NORM, "attention.k.norm", kv, gamma);
    }
    return turn(l, "attention.k.rotary", kv, 0);
}

/* The keys that each query sees, by an indexer of the layer's own (DeepSeek-AI 2025, Sec. 2.1).
 * `low` is what queries are made from. */
static TensorId chosen_keys(const Layer *l, TensorId x, TensorId low)
{
    const Architecture *a = l->a;
    const uint32_t seq = graph_tensor(l->graph, x)->dim[1],
                   out[] = {a->index_heads, a->index_size};
    const TensorId q = layer_project(l, OP_KV_PROJ, "index.q", low, 2, out, false);
    TensorId k = layer_linear(l, "index.k", x, a->index_size, false);
    k = layer_norm_as(l, NORM_LAYER, "index.k.norm", k);
    const TensorId w = layer_linear(l, "index.weights", x, a->index_heads, false);
    g_autofree char *extents = g_strdup_printf("T=%u", MIN(l->facts->chosen_keys, seq));
    return layer_op(l, OP_TOP_KEYS, "index", (OpAttr){.causal = a->causal}, 3,
                    (TensorId[]){q, k, w}, extents);
}

/* Keys and queries of distances, by projections of their own or by those of tokens, which a layer
 * with a set of parameters has. */
static void keys_of_distances(const Layer *l, TensorId out[2])
{
    const LayerFacts *f = l->facts;
    const uint32_t q[] = {f->kv_heads, f->heads / f->kv_heads, f->head_size},
                   k[] = {f->kv_heads, f->head_size};
    g_autofree char *name = g_strdup_printf("%s.distances", l->name);
    Layer own = *l;
    own.name = name;
    out[0] = layer_project(&own, OP_KV_PROJ, "attention.k", l->distances, 2, k,
                           f->shared && l->a->qkv_bias);
    out[1] =
        layer_project(&own, OP_Q_PROJ, "attention.q", l->distances, 3, q, l->a->qkv_bias);
}

static TensorId attention(Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const LayerFacts *f = l->facts;
    const uint32_t group = f->heads / f->kv_heads;
    const TensorId low = query_source(l, x);
    TensorId in[4] = {queries(l, low), keys(l, l->crosses ? l->memory : x)};
    OpAttr attr = {.causal = a->causal && !l->crosses,
                   .alibi = a->alibi,
                   .span = f->window < graph_tensor(l->graph, x)->dim[1] ? f->window : 0,
                   .rate = a->attention_dropout,
                   .seed = graph_n_ops(l->graph)};
    OpKind kind = a->fused ? OP_FUSED_ATTENTION : OP_GROUPED_ATTENTION;
    if (f->chosen_keys) {
        if (f->indexer || l->chosen == GRAPH_NONE)
            l->chosen = chosen_keys(l, x, low);
        in[2] = l->chosen;
        kind = OP_SPARSE_ATTENTION;
        attr = (OpAttr){.causal = a->causal};
    } else if (f->sinks)
        in[2] =
            layer_parameter(l, "attention.sinks", 2, (uint32_t[]){f->kv_heads, group});
    uint32_t n_in = f->chosen_keys || f->sinks ? 3 : 2;
    if (a->distances) {
        n_in = G_N_ELEMENTS(in);
        keys_of_distances(l, &in[2]);
        kind = OP_RELATIVE_ATTENTION;
        attr.first = a->far;
    }
    g_autofree char *extents = g_strdup_printf("V=%u", f->value_size);
    TensorId y = layer_op(l, kind, "attention", attr, n_in, in, extents);
    if (a->output_gate != OUTPUT_GATE_NONE) {
        const uint32_t out[] = {f->kv_heads, group,
                                a->output_gate == OUTPUT_GATE_ELEMENT ? f->value_size
                                                                      : 1};
        y = layer_gate(l, "attention.gated", y,
                       layer_project(l, OP_Q_PROJ, "attention.gate", x, 3, out, false),
                       true);
    }
    return layer_out(l, "attention.out", y, a->hidden, a->out_bias);
}

void mixer_joint(Layer *const side[2], TensorId x[2])
{
    const Layer *l = side[1];
    const uint32_t n[] = {graph_tensor(l->graph, x[0])->dim[1],
                          graph_tensor(l->graph, x[1])->dim[1]};
    const TensorId in[] = {
        layer_concat(l, "attention.queries", queries(side[0], x[0]), queries(l, x[1])),
        layer_concat(l, "attention.pairs", keys(side[0], x[0]), keys(l, x[1]))};
    g_autofree char *values = g_strdup_printf("V=%u", l->facts->value_size);
    const TensorId y =
        layer_op(l, l->a->fused ? OP_FUSED_ATTENTION : OP_GROUPED_ATTENTION, "attention",
                 (OpAttr){0}, 2, in, values);
    for (uint32_t s = l->facts->silent; s < 2; s++) {
        g_autofree char *extents = g_strdup_printf("A=%u", n[s]);
        x[s] = layer_op(side[s], OP_PART, "attention.part",
                        (OpAttr){.first = s ? n[0] : 0}, 1, &y, extents);
        x[s] = layer_out(side[s], "attention.out", x[s], l->a->hidden, l->a->out_bias);
    }
}

/* --- linear recurrences --- */

/* silu(convolution of the last tokens), channel by channel. */
static TensorId short_conv(const Layer *l, const char *part, TensorId x)
{
    const Tensor in = *graph_tensor(l->graph, x);
    uint32_t dim[TENSOR_MAX_RANK];
    for (uint32_t d = 2; d < in.rank; d++)
        dim[d - 2] = in.dim[d];
    dim[in.rank - 2] = l->a->conv;
    g_autofree char *weight = g_strdup_printf("%s.conv.weight", part);
    g_autofree char *bias = g_strdup_printf("%s.conv.bias", part);
    g_autofree char *name = g_strdup_printf("%s.conv", part);
    TensorId operand[] = {x, layer_parameter(l, weight, in.rank - 1, dim), 0};
    if (l->a->conv_bias)
        operand[2] = layer_parameter(l, bias, in.rank - 2, dim);
    return layer_op(l, OP_SHORT_CONV, name, (OpAttr){0}, l->a->conv_bias ? 3 : 2, operand,
                    NULL);
}

static TensorId scan_part(const Layer *l, OpKind kind, const char *part, TensorId x,
                          uint32_t rank, const uint32_t *out)
{
    g_autofree char *active = g_strdup_printf("%s.active", part);
    x = layer_project(l, kind, part, x, rank, out, l->a->scan_bias);
    if (l->a->conv)
        x = short_conv(l, part, x);
    return layer_unary(l, OP_SILU, active, x);
}

/* The gates [b,s,h,g,G] from `raw`: B decays, and a factor, of a number of its own if `apart`. */
static TensorId scan_gates(const Layer *l, TensorId raw, uint32_t decays, bool apart)
{
    const uint32_t group = l->a->scan_heads / l->a->scan_groups,
                   dim[] = {l->a->scan_groups, group, decays};
    g_autofree char *extents = g_strdup_printf("G=%u", decays + 1);
    const TensorId operand[] = {raw, layer_parameter(l, "scan.rate", 2, dim),
                                layer_parameter(l, "scan.step.bias", 3, dim)};
    return layer_op(l, OP_SCAN_GATES, "scan.gates", (OpAttr){.sigmoid = apart}, 3,
                    operand, extents);
}

/* y + v, each head's v times a weight. */
static TensorId skipped(const Layer *l, TensorId y, TensorId v)
{
    const TensorId weight =
        layer_parameter(l, "scan.skip", 2, graph_tensor(l->graph, v)->dim + 2);
    return layer_add(l, "scan.sum", y,
                     layer_binary(l, OP_HEAD_SCALE, "scan.skipped", v, weight));
}

/* kimi-delta's decays of all elements of a key, and its factor. */
static TensorId kimi_gates(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const uint32_t group = a->scan_heads / a->scan_groups,
                   decay[] = {a->scan_groups, group, a->scan_keys},
                   one[] = {a->scan_groups, group, 1};
    TensorId low = x;
    if (a->decay_rank)
        low = layer_linear(l, "scan.decay_low", x, a->decay_rank, false);
    const TensorId raw = layer_join(
        l, "scan.raw", layer_project(l, OP_Q_PROJ, "scan.decay", low, 3, decay, false),
        layer_project(l, OP_Q_PROJ, "scan.factor", x, 3, one, false));
    return scan_gates(l, raw, a->scan_keys, true);
}

/* Mamba-2, the gated delta net, Kimi's delta attention, lightning attention: x -> queries with
 * keys, values and gates; the recurrence; a norm and a gate; out. */
static TensorId scan(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const Mixer mixer = l->facts->mixer;
    const bool mamba = mixer == MIXER_MAMBA || mixer == MIXER_ATTENTION_AND_MAMBA,
               kimi = mixer == MIXER_KIMI_DELTA, lightning = mixer == MIXER_LIGHTNING;
    const uint32_t group = a->scan_heads / a->scan_groups,
                   key[] = {a->scan_groups, 2 * a->scan_keys},
                   value[] = {a->scan_groups, group, a->scan_values},
                   raw[] = {a->scan_groups, group, mamba ? 1 : 2};
    /* in this order few tensors are alive at once, which searches are glad of */
    TensorId in[3] = {0};
    if (!lightning)
        in[2] = kimi ? kimi_gates(l, x)
                     : scan_gates(l,
                                  layer_project(l, OP_Q_PROJ, "scan.raw", x, 3, raw,
                                                a->scan_bias),
                                  1, !mamba);
    in[0] = scan_part(l, OP_KV_PROJ, "scan.qk", x, 2, key);
    in[1] = scan_part(l, OP_Q_PROJ, "scan.values", x, 3, value);
    TensorId y =
        layer_op(l,
                 mamba       ? OP_SCAN
                 : lightning ? OP_LINEAR_ATTENTION
                             : OP_DELTA_SCAN,
                 "scan", (OpAttr){.scale = lightning}, lightning ? 2 : 3, in, NULL);
    if (mamba)
        y = skipped(l, y, in[1]);
    TensorId low = x;
    if (kimi && a->gate_rank)
        low = layer_linear(l, "scan.z_low", x, a->gate_rank, false);
    const TensorId z = layer_project(l, OP_Q_PROJ, "scan.z", low, 3, value, a->scan_bias);
    if (!mamba) {
        y = lightning ? layer_norm_of_all(l, "scan.norm", y)
                      : layer_rms_norm(l, "scan.norm", y);
        y = layer_gate(l, "scan.gated", y, z, kimi || lightning);
        return layer_out(l, "scan.out", y, a->hidden, a->scan_bias);
    }
    y = layer_gate(l, "scan.gated", y, z, false);
    if (!a->scan_norm)
        return layer_out(l, "scan.out", y, a->hidden, a->scan_bias);
    const uint32_t width = group * a->scan_values, dim[] = {a->scan_groups, width},
                   out[] = {a->hidden, a->scan_groups, width};
    g_autofree char *extents = g_strdup_printf("n=%u", width);
    y = layer_op(l, OP_MERGE, "scan.merged", (OpAttr){0}, 1, &y, extents);
    y = layer_binary(l, OP_GROUP_NORM, "scan.norm", y,
                     layer_parameter(l, "scan.norm.weight", 2, dim));
    TensorId operand[] = {y, layer_parameter(l, "scan.out.weight", 3, out), 0};
    if (a->scan_bias)
        operand[2] = layer_parameter(l, "scan.out.bias", 1, &a->hidden);
    return layer_op(l, OP_OUT_PROJ, "scan.out", (OpAttr){0}, a->scan_bias ? 3 : 2,
                    operand, NULL);
}

/* Mamba: its keys, queries and steps are made from the convolution's channels; each of its parts
 * has its own. */
static TensorId selective(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    static const char *const name[] = {"q", "k", "low"};
    const uint32_t channels = a->scan_heads / a->scan_groups, value[] = {1, channels, 1},
                   rate[] = {1, channels, a->scan_keys};
    TensorId sum = GRAPH_NONE, part[G_N_ELEMENTS(name)];
    g_autofree char *split = g_strdup_printf("n=1,D=%u", 2 * a->scan_keys);
    for (uint32_t h = 0; h < a->scan_groups; h++) {
        g_autofree char *prefix = g_strdup_printf("%s.part%u", l->name, h);
        Layer own = *l;
        own.name = prefix;
        const TensorId v = scan_part(&own, OP_Q_PROJ, "scan.values", x, 3, value);
        for (uint32_t i = 0; i < G_N_ELEMENTS(name); i++) {
            part[i] =
                layer_out(&own, name[i], v, i < 2 ? a->scan_keys : a->decay_rank, false);
            g_autofree char *norm = g_strdup_printf("%s.norm", name[i]);
            part[i] = a->scan_norm ? layer_rms_norm(&own, norm, part[i]) : part[i];
        }
        const TensorId qk = layer_join(&own, "qk", part[0], part[1]);
        const TensorId in[] = {
            layer_op(&own, OP_SPLIT, "scan.qk", (OpAttr){0}, 1, &qk, split), v,
            layer_project(&own, OP_Q_PROJ, "scan.step", part[2], 3, value, true),
            layer_parameter(&own, "scan.rate", 3, rate)};
        TensorId y = layer_op(&own, OP_SELECTIVE_SCAN, "scan", (OpAttr){0}, 4, in, NULL);
        y = layer_gate(
            &own, "scan.gated", skipped(&own, y, v),
            layer_project(&own, OP_Q_PROJ, "scan.z", x, 3, value, a->scan_bias), false);
        y = layer_out(&own, "scan.out", y, a->hidden, a->scan_bias && h == 0);
        sum = h ? layer_add(&own, "scan.parts", sum, y) : y;
    }
    return sum;
}

/* --- RWKV --- */

/* A projection by a matrix of low rank, with tanh, a sigmoid or nothing between. */
static TensorId low_rank(const Layer *l, const char *part, TensorId x, uint32_t rank,
                         const char *between, OpKind kind, const uint32_t *out)
{
    g_autofree char *low = g_strdup_printf("%s.low", part);
    g_autofree char *active = g_strdup_printf("%s.active", part);
    const OpAttr attr = {.sigmoid = strcmp(between, "sigmoid") == 0};
    x = layer_linear(l, low, x, rank, false);
    if (*between)
        x = layer_op(l, OP_TANH, active, attr, 1, &x, NULL);
    const uint32_t n = kind == OP_Q_PROJ ? 3 : kind == OP_KV_PROJ ? 2 : 1;
    return layer_project(l, kind, part, x, n, out, !attr.sigmoid);
}

/* x + m (x of the token before - x), with a weight m of each channel, or one made from `source`. */
static TensorId mixed(const Layer *l, const char *part, TensorId x, TensorId shift,
                      TensorId source)
{
    g_autofree char *name = g_strdup_printf("mix.%s", part);
    g_autofree char *sum = g_strdup_printf("mixed.%s", part);
    g_autofree char *product = g_strdup_printf("mix.%s.product", part);
    if (source == GRAPH_NONE)
        return layer_add(l, sum, x, by_channel(l, OP_CHANNEL_SCALE, name, shift));
    const TensorId m =
        low_rank(l, name, source, l->a->mix_rank, "tanh", OP_LINEAR, &l->a->hidden);
    return layer_add(l, sum, x, layer_binary(l, OP_MULTIPLY, product, m, shift));
}

/* RWKV-7's keys, and behind them what it takes away, from keys, what they are made from, and the
 * queries; out: (q, k), (n, c). */
static void rwkv_keys(const Layer *l, TensorId x, TensorId q, TensorId k, TensorId out[2])
{
    const uint32_t key[] = {l->a->scan_heads, l->a->scan_keys};
    const TensorId rate =
                       low_rank(l, "scan.away", x, l->a->mix_rank, "", OP_KV_PROJ, key),
                   less = layer_op(l, OP_SCALE, "scan.k.less", (OpAttr){.scale = -1}, 1,
                                   &k, NULL),
                   part = layer_add(l, "scan.k.part", less,
                                    layer_gate(l, "scan.k.gated", k, rate, true)),
                   away = by_channel(l, OP_CHANNEL_SCALE, "scan.k.away", k);
    k = layer_add(l, "scan.k.sum", k,
                  by_channel(l, OP_CHANNEL_SCALE, "scan.k.scaled", part));
    out[0] = layer_join(l, "scan.qk", q, k);
    out[1] = layer_join(l, "scan.pair", away, rate);
}

/* Later layers of RWKV-7 take a part of the first one's values. */
static TensorId rwkv_values(Layer *l, TensorId x, TensorId v, const uint32_t *value)
{
    if (l->first_values == GRAPH_NONE)
        return l->first_values = v;
    const TensorId raw =
        low_rank(l, "scan.first", x, l->a->value_rank, "", OP_Q_PROJ, value);
    TensorId y =
        layer_op(l, OP_SCALE, "scan.first.less", (OpAttr){.scale = -1}, 1, &v, NULL);
    y = layer_add(l, "scan.first.part", l->first_values, y);
    return layer_add(l, "scan.v.sum", v, layer_gate(l, "scan.first.gated", y, raw, true));
}

static TensorId rwkv(Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const bool seven = l->facts->mixer == MIXER_RWKV_7;
    const uint32_t h = a->scan_heads, key[] = {h, a->scan_keys},
                   decay[] = {h, 1, a->scan_keys}, value[] = {h, 1, a->scan_values};
    const TensorId shift = layer_unary(l, OP_TOKEN_SHIFT, "shift", x),
                   source = seven ? GRAPH_NONE : mixed(l, "all", x, shift, GRAPH_NONE),
                   xv = mixed(l, "v", x, shift, source),
                   xg = mixed(l, "g", x, shift, source),
                   q = layer_project(l, OP_KV_PROJ, "scan.q",
                                     mixed(l, "q", x, shift, source), 2, key, false),
                   k = layer_project(l, OP_KV_PROJ, "scan.k",
                                     mixed(l, "k", x, shift, source), 2, key, false);
    TensorId in[4] = {0}, v = layer_project(l, OP_Q_PROJ, "scan.v", xv, 3, value, false);
    if (seven) {
        TensorId out[2];
        v = rwkv_values(l, xv, v, value);
        rwkv_keys(l, mixed(l, "away", x, shift, source), q, k, out);
        in[0] = out[0];
        in[3] = out[1];
    } else
        in[0] = layer_join(l, "scan.qk", q, k);
    in[1] = v;
    in[2] = low_rank(l, "scan.decay", mixed(l, "decay", x, shift, source), a->decay_rank,
                     "tanh", OP_Q_PROJ, decay);
    const TensorId bonus_in[] = {in[0], v,
                                 layer_parameter(l, "scan.bonus.weight", 2, key)},
                   bonus = layer_op(l, OP_BONUS, "scan.bonus", (OpAttr){0}, 3, bonus_in,
                                    NULL);
    TensorId y = layer_op(l, seven ? OP_DELTA_WKV : OP_WKV, "scan", (OpAttr){0},
                          seven ? 4 : 3, in, NULL);
    if (!seven)
        y = layer_add(l, "scan.sum", y, bonus);
    y = by_channel(l, OP_GROUP_NORM, "scan.norm", y);
    y = by_channel(l, OP_CHANNEL_BIAS, "scan.norm.biased", y);
    if (seven)
        y = layer_add(l, "scan.sum", y, bonus);
    const TensorId gate =
        a->gate_rank
            ? low_rank(l, "scan.z", xg, a->gate_rank, "sigmoid", OP_Q_PROJ, value)
            : layer_project(l, OP_Q_PROJ, "scan.z", xg, 3, value, false);
    y = seven ? layer_binary(l, OP_MULTIPLY, "scan.gated", y, gate)
              : layer_gate(l, "scan.gated", y, gate, false);
    return layer_out(l, "scan.out", y, a->hidden, false);
}

TensorId mixer_channels(const Layer *l, TensorId x)
{
    const TensorId shift = layer_unary(l, OP_TOKEN_SHIFT, "ffn.shift", x);
    TensorId y = mixed(l, "ffn.k", x, shift, GRAPH_NONE);
    y = layer_linear(l, "ffn.up", y, l->facts->ffn, false);
    y = layer_unary(l, OP_RELU2, "ffn.active", y);
    y = layer_linear(l, "ffn.down", y, l->a->hidden, false);
    if (l->facts->network == NETWORK_RWKV_7)
        return y;
    const TensorId gate = layer_linear(
        l, "ffn.gate", mixed(l, "ffn.q", x, shift, GRAPH_NONE), l->a->hidden, false);
    return layer_gate(l, "ffn.gated", y, gate, true);
}

/* y = c * conv(b * x), all three made from x (LFM2: Liquid AI 2025). */
static TensorId gated_conv(const Layer *l, TensorId x)
{
    const uint32_t hidden = l->a->hidden;
    const bool bias = l->a->conv_bias;
    const TensorId b = layer_linear(l, "conv.b", x, hidden, bias),
                   c = layer_linear(l, "conv.c", x, hidden, bias),
                   v = layer_linear(l, "conv.x", x, hidden, bias);
    TensorId y = layer_binary(l, OP_MULTIPLY, "conv.in", b, v);
    y = layer_binary(l, OP_MULTIPLY, "conv.gated", c, short_conv(l, "conv", y));
    return layer_linear(l, "conv.out", y, hidden, bias);
}

TensorId mixer_build(Layer *l, TensorId x)
{
    KILTER_ASSERT(l->facts->mixer != MIXER_NONE);
    switch (l->facts->mixer) {
    case MIXER_ATTENTION:
    case MIXER_LATENT:
        return attention(l, x);
    case MIXER_CONV:
        return gated_conv(l, x);
    case MIXER_MAMBA_1:
        return selective(l, x);
    case MIXER_RWKV_6:
    case MIXER_RWKV_7:
        return rwkv(l, x);
    case MIXER_ATTENTION_AND_MAMBA:
        return layer_add(l, "mixers", attention(l, x), scan(l, x));
    default:
        return scan(l, x);
    }
}

TensorId mixer_cross(Layer *l, TensorId x)
{
    KILTER_ASSERT(l->memory != GRAPH_NONE);
    g_autofree char *name = g_strdup_printf("%s.cross", l->name);
    LayerFacts facts = *l->facts;
    facts.mixer = MIXER_ATTENTION;
    facts.window = facts.chosen_keys = 0;
    Layer cross = *l;
    cross.name = name;
    cross.facts = &facts;
    cross.crosses = true;
    return attention(&cross, x);
}
