/* Builds the graph of a transformer from its facts: data/models/architecture.h. */
#include "data/models/architecture.h"

#include "data/base/free.h"
#include "data/models/models.h"

#include <math.h>
#include <string.h>

void architecture_layers(Architecture *a, uint32_t layers)
{
    a->layers = layers;
    a->layer = g_new0(LayerFacts, layers);
}

void architecture_repeat(Architecture *a)
{
    g_assert(a->layers > 0);
    for (uint32_t i = 1; i < a->layers; i++)
        a->layer[i] = a->layer[0];
}

CLEAR_DEFINE(architecture_clear, Architecture, a, g_free(a->layer),
             clear_items(a->encoder, a->encoder != NULL, architecture_clear),
             free_each(a->encoder, a->unread));

static bool names(const char *target, const char *a, const char *b)
{
    return target && (strstr(target, a) || strstr(target, b));
}

void architecture_separate(ArchitectureSizes *sizes, const char *target, bool both)
{
    sizes->own_keys = both || names(target, "attention.k.", "attention.v");
    sizes->own_gate = both || names(target, "ffn.gate", "ffn.wide");
}

/* --- before and after the layers --- */

/* The input of that name, one index per token. */
static TensorId indices(const Layer *l, const char *name)
{
    const uint32_t tokens[] = {l->sizes->batch, l->sizes->seq};
    const TensorId there = graph_find(l->graph, name);
    return there == GRAPH_NONE ? graph_input(l->graph, name, DTYPE_I64, 2, tokens)
                               : there;
}

/* Looks up one row per token in a table of `rows` x `size`, or in one that there is already. */
static TensorId look_up(const Layer *l, const char *part, const char *ids, uint32_t rows,
                        uint32_t size, TensorId *table)
{
    g_autofree char *name = g_strconcat(l->side, part, NULL);
    g_autofree char *input = g_strconcat(l->side, ids, NULL);
    g_autofree char *weight = g_strdup_printf("%s.weight", name);
    const TensorId index = indices(l, input);
    if (*table == GRAPH_NONE) {
        *table = graph_parameter(l->graph, weight, 2, (uint32_t[]){rows, size});
        if ((l->a->tied || l->sizes->mtp) && strcmp(part, "embedding") == 0)
            *table = model_unary(l->graph, OP_TIED, "embedding.tied", *table);
    }
    return graph_op(l->graph, OP_EMBEDDING, name, (OpAttr){0}, 2,
                    (TensorId[]){index, *table}, NULL);
}

static TensorId embed_text(const Layer *l, TensorId *table)
{
    const Architecture *a = l->a;
    g_assert(!a->host_words || (a->positions > 0 && a->embedding_size == a->hidden));
    TensorId x = GRAPH_NONE;
    if (!a->host_words)
        x = look_up(l, "embedding", "ids", a->vocab, a->embedding_size, table);
    const uint32_t width = a->projected_late ? a->embedding_size : a->hidden;
    if (a->embedding_size != width)
        x = layer_linear(l, "project_in", x, width, false);
    if (a->positions) {
        TensorId rows = GRAPH_NONE;
        const TensorId y =
            look_up(l, "position", "positions", a->positions, width, &rows);
        /* Vectors come after indices: the first input says how the batch is cut. */
        if (a->host_words)
            x = graph_input(l->graph, "words", DTYPE_F32, 3,
                            (uint32_t[]){l->sizes->batch, l->sizes->seq, a->hidden});
        x = layer_add(l, "with_position", x, y);
    }
    if (a->token_types) {
        TensorId rows = GRAPH_NONE;
        const TensorId y = look_up(l, "type", "types", a->token_types, width, &rows);
        x = layer_add(l, "with_type", x, y);
    }
    return x;
}

static TensorId embed_image(const Layer *l)
{
    const Architecture *a = l->a;
    const TensorId x =
        graph_input(l->graph, "x", DTYPE_F32, 4,
                    (uint32_t[]){l->sizes->batch, a->channels, a->image, a->image});
    return model_image_tokens(l->graph, x, a->patch, a->hidden);
}

/* Sound: its spectrum [b, channels, 1, frames], two convolutions over three moments, the second of
 * which takes each other one (Whisper: Radford et al. 2022, Sec. 2.2), and learned positions. */
static TensorId embed_sound(const Layer *l)
{
    enum { MOMENTS = 3 };
    const Architecture *a = l->a;
    TensorId x = graph_input(l->graph, "sound", DTYPE_F32, 4,
                             (uint32_t[]){l->sizes->batch, a->channels, 1, a->frames});
    for (uint32_t stride = 1; stride <= 2; stride++) {
        g_autofree char *part = g_strdup_printf("conv%u", stride);
        g_autofree char *weight = g_strdup_printf("%s.weight", part);
        g_autofree char *bias = g_strdup_printf("%s.bias", part);
        g_autofree char *active = g_strdup_printf("%s.active", part);
        g_autofree char *extents = g_strdup_printf("P=1,Q=%u", a->frames / stride);
        const uint32_t dim[] = {a->hidden, graph_tensor(l->graph, x)->dim[1], 1, MOMENTS};
        const TensorId in[] = {x, layer_parameter(l, weight, 4, dim),
                               layer_parameter(l, bias, 1, &a->hidden)};
        x = layer_op(l, OP_CONV2D, part, (OpAttr){.stride = stride, .padding_columns = 1},
                     3, in, extents);
        x = layer_unary(l, OP_GELU, active, x);
    }
    const uint32_t tokens = a->frames / 2;
    g_autofree char *merged = g_strdup_printf("n=%u", tokens);
    x = layer_op(l, OP_MERGE, "flatten", (OpAttr){0}, 1, &x, merged);
    x = layer_unary(l, OP_TRANSPOSE, "tokens", x);
    return layer_binary(
        l, OP_ADD_ROWS, "with_position", x,
        layer_parameter(l, "position", 2, (uint32_t[]){tokens, a->hidden}));
}

/* Patches of images [b, patches, numbers], and learned positions if the model has a table. */
static TensorId embed_patches(const Layer *l)
{
    const Architecture *a = l->a;
    const TensorId patches =
        graph_input(l->graph, "images", DTYPE_F32, 3,
                    (uint32_t[]){l->sizes->batch, l->sizes->seq, a->patch_numbers});
    const TensorId x = layer_linear(l, "patch", patches, a->hidden, a->head_bias);
    TensorId rows = GRAPH_NONE;
    return a->positions ? layer_add(l, "with_position", x,
                                    look_up(l, "position", "positions", a->positions,
                                            a->hidden, &rows))
                        : x;
}

/* Two products with an activation between. */
static TensorId two_products(const Layer *l, const char *part, TensorId x, OpKind kind)
{
    g_autofree char *up = g_strdup_printf("%s.up", part);
    g_autofree char *active = g_strdup_printf("%s.active", part);
    g_autofree char *down = g_strdup_printf("%s.down", part);
    x = layer_unary(l, kind, active, layer_linear(l, up, x, l->a->hidden, true));
    return layer_linear(l, down, x, l->a->hidden, true);
}

/* The condition of a diffusion transformer's samples: the moment's embedding, a label, a text. */
static void embed_condition(Layer *l)
{
    const Architecture *a = l->a;
    const uint32_t batch = l->sizes->batch,
                   width[] = {a->moments, a->pooled, a->guidance};
    static const char *const name[] = {"moment", "pooled", "guidance"};
    g_autofree char *extents = g_strdup_printf("n=%u", a->hidden);
    TensorId x = GRAPH_NONE;
    for (uint32_t i = 0; i < G_N_ELEMENTS(name); i++) {
        if (!width[i])
            continue;
        const TensorId in = graph_input(l->graph, name[i], DTYPE_F32, 3,
                                        (uint32_t[]){batch, 1, width[i]});
        const TensorId y = two_products(l, name[i], in, OP_SILU);
        g_autofree char *sum = g_strdup_printf("condition.%s", name[i]);
        x = i ? layer_add(l, sum, x, y) : y;
    }
    if (a->labels) {
        const TensorId label = graph_input(l->graph, "label", DTYPE_I64, 2,
                                           (uint32_t[]){batch, 1}),
                       table = layer_parameter(l, "label.weight", 2,
                                               (uint32_t[]){a->labels, a->hidden});
        x = layer_add(l, "condition.label", x,
                      layer_binary(l, OP_EMBEDDING, "label", label, table));
    }
    l->embedded = layer_op(l, OP_MERGE, "condition", (OpAttr){0}, 1, &x, extents);
    l->condition = layer_unary(l, OP_SILU, "condition.active", l->embedded);
    for (uint32_t i = 0; i < G_N_ELEMENTS(l->modulation) && a->modulation_table; i++) {
        g_autofree char *part = g_strdup_printf("modulation%u", i);
        l->modulation[i] = layer_linear(l, part, l->condition, a->hidden, true);
    }
}

/* The squared differences between the predicted noise and that of each patch. The last shift and
 * scale are made from the condition itself. */
static TensorId loss_of_noise(Layer *l, TensorId x)
{
    l->modulation[0] = l->modulation[1] = l->embedded;
    g_autofree char *extents = g_strdup_printf("A=%u", l->sizes->seq);
    const uint32_t tokens = graph_tensor(l->graph, x)->dim[1];
    if (tokens > l->sizes->seq) /* behind the text's */
        x = layer_op(l, OP_PART, "patches", (OpAttr){.first = tokens - l->sizes->seq}, 1,
                     &x, extents);
    x = layer_linear(l, "noise", layer_modulated(l, "last", x, 0), l->a->noise, true);
    const TensorId noise =
        graph_input(l->graph, "noise", DTYPE_F32, 3, graph_tensor(l->graph, x)->dim);
    return graph_op(l->graph, OP_SQUARE_LOSS, "loss", (OpAttr){0}, 2,
                    (TensorId[]){x, noise}, NULL);
}

/* The means of squares of `merge` patches. */
static TensorId mean_of_patches(const Layer *l, TensorId x)
{
    const uint32_t edge = (uint32_t)sqrt(graph_tensor(l->graph, x)->dim[1]),
                   out = edge / (uint32_t)sqrt(l->a->merge);
    g_autofree char *image = g_strdup_printf("n=%u,D=%u", edge, edge);
    g_autofree char *places = g_strdup_printf("P=%u,Q=%u", out, out);
    g_autofree char *tokens = g_strdup_printf("n=%u", out * out);
    x = layer_unary(l, OP_TRANSPOSE, "projector.channels", x);
    x = layer_op(l, OP_SPLIT, "projector.image", (OpAttr){0}, 1, &x, image);
    x = layer_op(l, OP_AVG_POOL2D, "projector.mean", (OpAttr){0}, 1, &x, places);
    x = layer_op(l, OP_MERGE, "projector.flat", (OpAttr){0}, 1, &x, tokens);
    return layer_unary(l, OP_TRANSPOSE, "projector.tokens", x);
}

/* Tokens [b, patches / merge, hidden] of the text's width from those of patches. */
static TensorId project_patches(const Layer *l, TensorId x, uint32_t hidden)
{
    const Architecture *a = l->a;
    const Tensor in = *graph_tensor(l->graph, x);
    g_autofree char *extents = g_strdup_printf(
        "b=%u,T=%u,D=%u", in.dim[0], in.dim[1] / a->merge, a->hidden * a->merge);
    if (a->merge_mean)
        x = mean_of_patches(l, x);
    if (a->merge_norm)
        x = layer_norm(l, "projector.norm", x);
    if (a->merge > 1 && !a->merge_mean)
        x = layer_op(l, OP_RESHAPE, "projector.merged", (OpAttr){0}, 1, &x, extents);
    if (!a->projected_once) {
        x = layer_linear(l, "projector.up", x, a->projector ? a->projector : hidden,
                         true);
        x = layer_unary(l, OP_GELU, "projector.active", x);
    }
    return layer_linear(l, "projector", x, hidden, !a->projected_once);
}

/* The loss for the positions where an answer begins and ends, each a choice among all tokens
 * (Devlin et al. 2018, Sec. 4.2). */
static TensorId loss_of_spans(const Layer *l, TensorId x)
{
    enum { ENDS = 2 };
    const TensorId labels = graph_input(l->graph, "labels", DTYPE_I64, 2,
                                        (uint32_t[]){l->sizes->batch, ENDS});
    x = model_linear(l->graph, "head", x, ENDS, true);
    return model_loss(l->graph, layer_unary(l, OP_TRANSPOSE, "ends", x), labels);
}

/* The loss for the next token, or for the image's class. */
static TensorId loss_of(const Layer *l, TensorId x, TensorId table)
{
    const Architecture *a = l->a;
    if (a->patch) {
        const TensorId labels =
            graph_input(l->graph, "labels", DTYPE_I64, 1, &l->sizes->batch);
        x = graph_op(l->graph, OP_TAKE_TOKEN, "class", (OpAttr){0}, 1, &x, NULL);
        return model_loss(l->graph, model_linear(l->graph, "head", x, a->classes, true),
                          labels);
    }
    if (a->spans)
        return loss_of_spans(l, x);
    const TensorId labels =
        graph_input(l->graph, "labels", DTYPE_I64, 2,
                    (uint32_t[]){l->sizes->batch, (1 + l->sizes->mtp) * l->sizes->seq});
    if (a->embedding_size != a->hidden)
        x = layer_linear(l, "project_out", x, a->embedding_size, false);
    if (a->tied) {
        TensorId operand[] = {x, table, 0};
        if (a->head_bias)
            operand[2] = graph_parameter(l->graph, "head.bias", 1, &a->vocab);
        x = graph_op(l->graph, OP_LINEAR, "head", (OpAttr){0}, a->head_bias ? 3 : 2,
                     operand, NULL);
    } else
        x = model_linear(l->graph, "head", x, a->vocab, a->head_bias);
    return model_sharded_loss(l->graph, x, labels);
}

/* A module that predicts one token more (DeepSeek-AI 2024, Sec. 2.2): the embedding of the next
 * token and the state before it, both normalised, make one vector, on which one more layer works. x
 * and the result are normalised. */
static TensorId further_token(Layer *l, TensorId x, TensorId table)
{
    g_autofree char *ids = g_strdup_printf("%s.ids", l->name);
    const TensorId index = indices(l, ids);
    TensorId y = layer_binary(l, OP_EMBEDDING, "embedding", index, table);
    y = layer_join(l, "joined", layer_norm(l, "norm_embedding", y),
                   layer_norm(l, "norm_state", x));
    return arrangement_build(l, layer_linear(l, "join", y, l->a->hidden, false));
}

/* The states of all predicted tokens, one sequence behind the other. */
static TensorId further_tokens(Layer *l, TensorId x, TensorId table)
{
    TensorId state = x, all = layer_norm(l, "norm", x);
    const LayerFacts *last = &l->a->layer[l->a->layers - 1];
    for (uint32_t m = 0; m < l->sizes->mtp; m++) {
        g_autofree char *name = g_strdup_printf("mtp.%u", m);
        l->name = name;
        graph_layer(l->graph, name);
        l->facts = last;
        state = further_token(l, state, table);
        l->facts = NULL;
        all = layer_concat(l, "tokens", all, layer_norm(l, "norm", state));
    }
    return all;
}

/* The layers' input: of images, sound or words, the last behind tokens of images. */
static TensorId embedded(const Layer *l, TensorId *table)
{
    const Architecture *a = l->a;
    TensorId x = a->patch           ? embed_image(l)
                 : a->frames        ? embed_sound(l)
                 : a->patch_numbers ? embed_patches(l)
                                    : embed_text(l, table);
    if (l->memory != GRAPH_NONE && a->encoder && a->encoder->patch_numbers)
        x = layer_concat(l, "with_images", l->memory, x);
    if (a->embedding_norm)
        x = layer_norm(l, "norm", x);
    if (a->projected_late && a->embedding_size != a->hidden)
        x = layer_linear(l, "project_in", x, a->hidden, true);
    return layer_dropout(l, "dropout", x, a->embedding_dropout);
}

static TensorId build_layers(Layer *l, TensorId x)
{
    l->first = x;
    for (uint32_t i = 0; i < l->a->layers; i++) {
        g_autofree char *name = g_strdup_printf("%slayers.%u", l->side, i);
        l->name = name;
        l->facts = &l->a->layer[i];
        graph_layer(l->graph, name);
        x = arrangement_build(l, x);
    }
    l->facts = NULL; /* what follows belongs to no layer */
    return x;
}

/* The encoder's tokens, made by one of its own or given. */
static TensorId encode(const Layer *decoder, TensorId *table)
{
    const Architecture *a = decoder->a;
    const ArchitectureSizes *sizes = decoder->sizes;
    if (!a->encoder) {
        const uint32_t width = a->memory_width ? a->memory_width : a->hidden;
        const TensorId memory = graph_input(decoder->graph, "memory", DTYPE_F32, 3,
                                            (uint32_t[]){sizes->batch, a->memory, width});
        return !a->memory_width ? memory
               : a->projected_once
                   ? layer_linear(decoder, "memory.project", memory, a->hidden, true)
                   : two_products(decoder, "memory", memory, OP_GELU);
    }
    Layer l = *decoder; /* of which nothing is built yet */
    l.a = a->encoder;
    l.side = "encoder.";
    l.name = "encoder.embedding";
    const bool images = a->encoder->patch_numbers > 0;
    const ArchitectureSizes patches = {.batch = sizes->batch, .seq = sizes->patches};
    l.sizes = images ? &patches : sizes;
    if (!a->encoder->frames && !images) { /* both look up words in one table */
        *table = graph_parameter(l.graph, "embedding.weight", 2,
                                 (uint32_t[]){a->vocab, a->embedding_size});
        *table = model_unary(l.graph, OP_TIED, "embedding.tied", *table);
    }
    TensorId x = build_layers(&l, embedded(&l, table));
    l.name = "encoder";
    if (a->encoder->final_norm)
        x = layer_norm(&l, "norm", x);
    return images ? project_patches(&l, x, a->hidden) : x;
}

TensorId architecture_build(Graph *graph, const Architecture *a,
                            const ArchitectureSizes *sizes)
{
    Layer l = {.graph = graph,
               .a = a,
               .sizes = sizes,
               .side = "",
               .name = "embedding",
               .chosen = GRAPH_NONE,
               .first_values = GRAPH_NONE,
               .memory = GRAPH_NONE};
    TensorId table = GRAPH_NONE;
    graph_layer(graph, "embedding");
    ArchitectureSizes text = *sizes;
    if (sizes->patches)
        text.seq -= sizes->patches / a->encoder->merge;
    l.sizes = &text;
    if (a->encoder ? sizes->patches > 0 || a->encoder->patch_numbers == 0
                   : a->memory > 0) {
        if (!a->modulated)
            indices(&l, "ids"); /* the first input says how the batch is cut */
        l.memory = encode(&l, &table);
        if (a->encoder)
            graph_layer(graph, "decoder.embedding");
    }
    if (a->distances) {
        l.distances = layer_parameter(&l, "distances.weight", 3,
                                      (uint32_t[]){1, a->distances, a->hidden});
        l.distances = a->distance_norm
                          ? layer_norm(&l, "distances.norm", l.distances)
                          : layer_unary(&l, OP_TIED, "distances.tied", l.distances);
    }
    TensorId x = embedded(&l, &table);
    l.text = l.memory;
    if (a->modulated)
        embed_condition(&l);
    l.sizes = sizes;
    x = build_layers(&l, x);
    l.name = "head";
    if (sizes->mtp)
        x = further_tokens(&l, x, table);
    l.name = "head";
    graph_layer(graph, "head");
    if (a->modulated)
        return loss_of_noise(&l, x);
    if (a->final_norm && !sizes->mtp)
        x = layer_norm(&l, "norm", x);
    return loss_of(&l, x, table);
}
