/* Feed-forward networks of a layer, and experts: data/models/architecture.h. */
#include "data/models/architecture.h"
#include "data/models/models.h"

#include <math.h>

static const OpKind ACTIVATION_OP[] = {[ACTIVATION_GELU] = OP_GELU,
                                       [ACTIVATION_RELU] = OP_RELU,
                                       [ACTIVATION_SILU] = OP_SILU,
                                       [ACTIVATION_RELU2] = OP_RELU2};

/* f(x[0]) x[1] of a pair [*,2,n]. */
static TensorId gated(const Layer *l, const char *part, TensorId x)
{
    return layer_unary(l, l->a->activation == ACTIVATION_GELU ? OP_GEGLU : OP_SWIGLU,
                       part, x);
}

TensorId feed_forward_dense(const Layer *l, const char *part, TensorId x, uint32_t ffn)
{
    const Architecture *a = l->a;
    g_autofree char *up = g_strdup_printf("%s.up", part);
    g_autofree char *active = g_strdup_printf("%s.active", part);
    g_autofree char *down = g_strdup_printf("%s.down", part);
    g_autofree char *gate = g_strdup_printf("%s.gate", part);
    g_autofree char *wide = g_strdup_printf("%s.wide", part);
    g_autofree char *product = g_strdup_printf("%s.gated", part);
    if (a->gated && (l->sizes->own_gate || a->activation == ACTIVATION_RELU2)) {
        TensorId g = layer_linear(l, gate, x, ffn, a->ffn_bias);
        g = layer_unary(l, ACTIVATION_OP[a->activation], active, g);
        x = layer_binary(l, OP_MULTIPLY, product, g,
                         layer_linear(l, wide, x, ffn, a->ffn_bias));
    } else if (a->gated) {
        x = layer_project(l, OP_LINEAR_PAIR, up, x, 2, (uint32_t[]){2, ffn}, a->ffn_bias);
        x = gated(l, active, x);
    } else {
        x = layer_linear(l, up, x, ffn, a->ffn_bias);
        x = layer_unary(l, ACTIVATION_OP[a->activation], active, x);
    }
    return layer_linear(l, down, x, a->hidden, a->ffn_bias);
}

static TensorId expert_bias(const Layer *l, const char *part, TensorId x, uint32_t rank,
                            const uint32_t *dim)
{
    if (!l->a->expert_bias)
        return x;
    g_autofree char *name = g_strdup_printf("%s.bias", part);
    g_autofree char *added = g_strdup_printf("%s.biased", part);
    return layer_binary(l, OP_EXPERT_BIAS, added, x, layer_parameter(l, name, rank, dim));
}

/* The experts' own two products, on their slots y[b,e,C,width]; the result is weighed by `weight`
 * [b,S,e]. As in Megatron-LM the weights multiply what the second product reads, so that what it
 * makes, which is wider, need not be kept for their gradient; a bias after it is weighed, too. */
static TensorId expert_networks(const Layer *l, TensorId y, TensorId weight,
                                uint32_t width)
{
    const Architecture *a = l->a;
    const uint32_t e = a->experts, ffn = a->expert_ffn;
    TensorId w;
    if (a->gated) {
        w = layer_parameter(l, "moe.up.weight", 4, (uint32_t[]){e, 2, width, ffn});
        y = layer_binary(l, OP_EXPERT_PAIR, "moe.up", y, w);
        y = expert_bias(l, "moe.up", y, 3, (uint32_t[]){e, 2, ffn});
        y = gated(l, "moe.active", y);
    } else {
        w = layer_parameter(l, "moe.up.weight", 3, (uint32_t[]){e, width, ffn});
        y = layer_binary(l, OP_EXPERT, "moe.up", y, w);
        y = expert_bias(l, "moe.up", y, 2, (uint32_t[]){e, ffn});
        y = layer_unary(l, ACTIVATION_OP[a->activation], "moe.active", y);
    }
    if (!a->expert_bias)
        y = layer_binary(l, OP_ROUTE_WEIGH, "moe.weighed", y, weight);
    w = layer_parameter(l, "moe.down.weight", 3, (uint32_t[]){e, ffn, width});
    y = layer_binary(l, OP_EXPERT, "moe.down", y, w);
    if (!a->expert_bias)
        return y;
    y = expert_bias(l, "moe.down", y, 2, (uint32_t[]){e, width});
    return layer_binary(l, OP_ROUTE_WEIGH, "moe.weighed", y, weight);
}

static TensorId mixture(const Layer *l, TensorId x)
{
    const Architecture *a = l->a;
    const bool limited = a->expert_groups > 1;
    const OpAttr choice = {.top = a->top,
                           .groups = limited ? a->expert_groups : 0,
                           .top_groups = limited ? a->top_groups : 0,
                           .sigmoid = a->sigmoid,
                           .normalised = a->normalised,
                           .scale = a->scale};
    const uint32_t tokens = graph_tensor(l->graph, x)->dim[1];
    const double factor = l->sizes->capacity_factor;
    const double slots =
        ceil((factor > 0 ? factor : 1) * a->top * tokens / a->experts - 1e-9);
    g_autofree char *extents =
        g_strdup_printf("C=%u", (uint32_t)fmin(fmax(1, slots), tokens));
    const TensorId logits = layer_linear(l, "moe.router", x, a->experts, a->router_bias);
    const TensorId weight =
        layer_op(l, OP_GATE_TOPK, "moe.weights", choice, 1, &logits, NULL);
    TensorId y = x;
    if (a->latent)
        y = layer_linear(l, "moe.latent", y, a->latent, a->ffn_bias);
    y = layer_op(l, OP_ROUTE, "moe.route", (OpAttr){.dropless = factor == 0}, 2,
                 (TensorId[]){weight, y}, extents);
    y = expert_networks(l, y, weight, a->latent ? a->latent : a->hidden);
    y = layer_binary(l, OP_UNROUTE, "moe.unroute", y, weight);
    if (a->latent && a->latent_norm)
        y = layer_rms_norm(l, "moe.latent.norm", y);
    if (a->latent)
        y = layer_linear(l, "moe.from_latent", y, a->hidden, a->ffn_bias);
    if (a->shared_ffn == 0)
        return y;
    TensorId shared = feed_forward_dense(l, "moe.shared", x, a->shared_ffn);
    if (a->shared_gate)
        shared = layer_gate(l, "moe.shared.gated", shared,
                            layer_linear(l, "moe.shared.gate", x, 1, false), true);
    return layer_add(l, "moe.sum", y, shared);
}

/* Beside experts the network has norms of its own after both parts, and before the experts (Gemma
 * 4). */
static TensorId network_and_experts(const Layer *l, TensorId x)
{
    TensorId y = feed_forward_dense(l, "ffn", x, l->facts->ffn);
    y = layer_norm(l, "ffn.norm", y);
    const TensorId z = mixture(l, layer_norm(l, "moe.norm", x));
    return layer_add(l, "ffn.sum", y, layer_norm(l, "moe.after", z));
}

TensorId feed_forward_build(Layer *l, TensorId x)
{
    return l->facts->network == NETWORK_EXPERTS ? mixture(l, x)
           : l->facts->network == NETWORK_BOTH  ? network_and_experts(l, x)
           : l->facts->network > NETWORK_BOTH
               ? mixer_channels(l, x)
               : feed_forward_dense(l, "ffn", x, l->facts->ffn);
}
