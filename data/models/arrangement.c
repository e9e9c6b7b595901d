/* A layer of norms, mixer, network and residuals: data/models/architecture.h. */
#include "data/models/architecture.h"
#include "data/models/models.h"

static TensorId parallel_layer(Layer *l, TensorId x)
{
    const bool two = l->a->arrangement == ARRANGEMENT_PARALLEL_TWO;
    const TensorId normed = layer_norm(l, "norm1", x);
    TensorId y = mixer_build(l, normed);
    const TensorId z = feed_forward_build(l, two ? layer_norm(l, "norm2", x) : normed);
    y = layer_dropout(l, "sum.dropout", layer_add(l, "sum", y, z), l->a->dropout);
    return layer_add(l, "residual", x, y);
}

/* x + dropout(y) of one of a layer's parts. */
static TensorId add_residual(const Layer *l, const char *part, TensorId x, TensorId y)
{
    g_autofree char *dropped = g_strdup_printf("%s.dropout", part);
    g_autofree char *sum = g_strdup_printf("%s.residual", part);
    return layer_add(l, sum, x, layer_dropout(l, dropped, y, l->a->dropout));
}

/* Attention and a network that layers share, on this layer's input and the first one's, behind
 * which the layer has a projection of its own. */
static TensorId shared_block(const Layer *l, TensorId x)
{
    g_autofree char *name = g_strdup_printf("%s.block", l->name);
    LayerFacts facts = *l->facts;
    Layer shared = *l;
    facts.mixer = MIXER_ATTENTION;
    facts.shared = facts.block;
    shared.facts = &facts;
    shared.name = name;
    TensorId y = layer_join(&shared, "joined", x, l->first);
    y = mixer_build(&shared, layer_norm(&shared, "norm1", y));
    y = feed_forward_dense(&shared, "ffn", layer_norm(&shared, "norm2", y), facts.ffn);
    return layer_linear(l, "block.out", y, l->a->hidden, false);
}

/* --- adaLN: shifts, scales and gates made from a condition [b,hidden] --- */

static TensorId modulation(const Layer *l, const char *side, uint32_t i)
{
    g_autofree char *name = g_strdup_printf("%s%u", side, i);
    g_autofree char *sum = g_strdup_printf("%s%u.sum", side, i);
    if (!l->a->modulation_table)
        return layer_linear(l, name, l->condition, l->a->hidden, true);
    return layer_binary(l, OP_ADD_ROWS, sum, l->modulation[i],
                        layer_parameter(l, name, 1, &l->a->hidden));
}

TensorId layer_modulated(const Layer *l, const char *part, TensorId x, uint32_t first)
{
    g_autofree char *side = g_strdup_printf("%s.modulation", part);
    g_autofree char *norm = g_strdup_printf("%s.norm", part);
    g_autofree char *scaled = g_strdup_printf("%s.scaled", part);
    g_autofree char *sum = g_strdup_printf("%s.scaled.sum", part);
    g_autofree char *shifted = g_strdup_printf("%s.shifted", part);
    const TensorId y = layer_unary(l, OP_PLAIN_NORM, norm, x);
    const TensorId z = layer_add(
        l, sum, y,
        layer_binary(l, OP_SAMPLE_SCALE, scaled, y, modulation(l, side, first + 1)));
    return layer_binary(l, OP_SAMPLE_BIAS, shifted, z, modulation(l, side, first));
}

/* x + gate y, the gate made from the condition. */
static TensorId add_gated(const Layer *l, const char *part, TensorId x, TensorId y,
                          uint32_t i)
{
    g_autofree char *side = g_strdup_printf("%s.modulation", part);
    g_autofree char *gated = g_strdup_printf("%s.gated.sample", part);
    y = layer_binary(l, OP_SAMPLE_SCALE, gated, y, modulation(l, side, i));
    return add_residual(l, part, x, y);
}

/* x and what patches y make of one another alone (Stable Diffusion 3.5: Esser et al. 2024). */
static TensorId patches_alone(const Layer *l, TensorId x, TensorId y)
{
    g_autofree char *name = g_strdup_printf("%s.alone", l->name);
    Layer alone = *l;
    alone.name = name;
    y = mixer_build(&alone, layer_modulated(&alone, "attention", y, 0));
    return add_gated(&alone, "attention", x, y, 2);
}

static TensorId two_streams(Layer *l, TensorId x)
{
    g_autofree char *name = g_strdup_printf("%s.text", l->name);
    Layer text = *l, *const side[] = {&text, l};
    TensorId stream[] = {l->text, x}, y[2];
    text.name = name;
    for (uint32_t s = 0; s < 2; s++)
        y[s] = layer_modulated(side[s], "attention", stream[s], 0);
    mixer_joint(side, y);
    for (uint32_t s = l->facts->silent; s < 2; s++) {
        const TensorId before = stream[s];
        stream[s] = add_gated(side[s], "attention", stream[s], y[s], 2);
        if (s == 1 && l->facts->dual)
            stream[s] = patches_alone(l, stream[s], before);
        y[s] = feed_forward_build(side[s], layer_modulated(side[s], "ffn", stream[s], 3));
        stream[s] = add_gated(side[s], "ffn", stream[s], y[s], 5);
    }
    l->text = stream[0];
    return stream[1];
}

/* Text and patches as one sequence; one bias behind attention and the network beside it. */
static TensorId joined_streams(Layer *l, TensorId x)
{
    Architecture once = *l->a;
    Layer one = *l;
    once.out_bias = false;
    one.a = &once;
    if (l->text != GRAPH_NONE) {
        x = layer_concat(l, "joined", l->text, x);
        l->text = GRAPH_NONE;
    }
    const TensorId y = layer_modulated(l, "attention", x, 0);
    return add_gated(
        l, "attention", x,
        layer_add(l, "sum", mixer_build(&one, y), feed_forward_build(&one, y)), 2);
}

static TensorId modulated_layer(Layer *l, TensorId x)
{
    if (l->facts->streams)
        return l->facts->streams == 2 ? two_streams(l, x) : joined_streams(l, x);
    for (uint32_t i = 0; i < 2; i++) {
        const char *part = i ? "ffn" : "attention";
        TensorId y = layer_modulated(l, part, x, 3 * i);
        y = i ? feed_forward_build(l, y) : mixer_build(l, y);
        x = add_gated(l, part, x, y, 3 * i + 2);
        if (i == 0 && l->facts->cross) {
            y = l->a->cross_norm ? layer_norm(l, "norm_cross", x) : x;
            x = add_residual(l, "cross", x, mixer_cross(l, y));
        }
    }
    return x;
}

TensorId arrangement_build(Layer *l, TensorId x)
{
    if (l->a->modulated)
        return modulated_layer(l, x);
    TensorId (*const part[])(Layer *, TensorId) = {mixer_build, mixer_cross,
                                                   feed_forward_build};
    static const char *const name[] = {"attention", "cross", "ffn"};
    static const char *const before[] = {"norm1", "norm_cross", "norm2"};
    static const char *const after[] = {"norm1.after", "norm_cross.after", "norm2.after"};
    const bool has[] = {l->facts->mixer != MIXER_NONE, l->facts->cross,
                        l->facts->network != NETWORK_NONE};
    const Arrangement arrangement = l->a->arrangement;
    if (arrangement >= ARRANGEMENT_PARALLEL && has[0] && !has[1] && has[2])
        return parallel_layer(l, x);
    const bool sandwich = arrangement == ARRANGEMENT_SANDWICH,
               late = arrangement == ARRANGEMENT_AFTER;
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++) {
        if (!has[i])
            continue;
        TensorId y = x;
        if (i == 0 && l->facts->block)
            y = layer_add(l, "block.sum", x, shared_block(l, x));
        if (!late && arrangement != ARRANGEMENT_POST)
            y = layer_norm(l, before[i], y);
        y = part[i](l, y);
        if (sandwich || late)
            y = layer_norm(l, late ? before[i] : after[i], y);
        x = add_residual(l, name[i], x, y);
        if (arrangement == ARRANGEMENT_POST)
            x = layer_norm(l, before[i], x);
    }
    return x;
}
