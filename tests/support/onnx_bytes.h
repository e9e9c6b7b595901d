/* ONNX files for tests, in the few messages of protocol buffers that they need. */
#ifndef KILTER_TESTS_SUPPORT_ONNX_BYTES_H
#define KILTER_TESTS_SUPPORT_ONNX_BYTES_H

#include <glib.h>
#include <stdbool.h>
#include <string.h>

static inline void onnx_put_varint(GByteArray *to, guint64 value)
{
    do {
        const guint8 byte = (guint8)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        g_byte_array_append(to, &byte, 1);
    } while (value >>= 7);
}

static inline void onnx_put_number(GByteArray *to, guint field, guint64 value)
{
    onnx_put_varint(to, field << 3);
    onnx_put_varint(to, value);
}

static inline void onnx_put_bytes(GByteArray *to, guint field, const void *bytes,
                                  gsize length)
{
    onnx_put_varint(to, field << 3 | 2);
    onnx_put_varint(to, length);
    g_byte_array_append(to, bytes, (guint)length);
}

static inline void onnx_put_text(GByteArray *to, guint field, const char *text)
{
    onnx_put_bytes(to, field, text, strlen(text));
}

/* Appends a message, which is freed. */
static inline void onnx_put(GByteArray *to, guint field, GByteArray *message)
{
    onnx_put_bytes(to, field, message->data, message->len);
    g_byte_array_unref(message);
}

/* "name:2x0x5"; a size of 0 is open and named "batch". Field 11: an input, 12: an output. */
static inline void onnx_end(GByteArray *graph, guint field, guint dtype, const char *end)
{
    g_auto(GStrv) part = g_strsplit(end, ":", 2);
    g_auto(GStrv) size = g_strsplit(part[1], "x", -1);
    GByteArray *shape = g_byte_array_new(), *tensor = g_byte_array_new(),
               *type = g_byte_array_new(), *value = g_byte_array_new();
    for (guint d = 0; size[d]; d++) {
        GByteArray *dim = g_byte_array_new();
        const guint64 n = g_ascii_strtoull(size[d], NULL, 10);
        if (n)
            onnx_put_number(dim, 1, n);
        else
            onnx_put_text(dim, 2, "batch");
        onnx_put(shape, 1, dim);
    }
    onnx_put_number(tensor, 1, dtype);
    onnx_put(tensor, 2, shape);
    onnx_put(type, 1, tensor);
    onnx_put_text(value, 1, part[0]);
    onnx_put(value, 2, type);
    onnx_put(graph, field, value);
}

static inline void onnx_tensor(GByteArray *graph, guint dtype, const char *end,
                               bool external, guint n, const double *number)
{
    g_auto(GStrv) part = g_strsplit(end, ":", 2);
    g_auto(GStrv) size = g_strsplit(part[1], "x", -1);
    GByteArray *tensor = g_byte_array_new(), *raw = g_byte_array_new();
    for (guint d = 0; size[d]; d++)
        if (*size[d])
            onnx_put_number(tensor, 1, g_ascii_strtoull(size[d], NULL, 10));
    onnx_put_number(tensor, 2, dtype);
    onnx_put_text(tensor, 8, part[0]);
    for (guint i = 0; i < n; i++) {
        const gint64 whole = (gint64)number[i];
        const float real = (float)number[i];
        if (dtype == 7)
            g_byte_array_append(raw, (const guint8 *)&whole, sizeof whole);
        else
            g_byte_array_append(raw, (const guint8 *)&real, sizeof real);
    }
    onnx_put_bytes(tensor, 9, raw->data, raw->len);
    g_byte_array_unref(raw);
    if (external)
        onnx_put_number(tensor, 14, 1);
    onnx_put(graph, 5, tensor);
}

/* Weights of which only the sizes are given: "name:3x4". */
static inline void onnx_weight(GByteArray *graph, const char *end)
{
    onnx_tensor(graph, 1, end, true, 0, NULL);
}

static inline void onnx_number(GByteArray *graph, const char *name, double number)
{
    g_autofree char *end = g_strdup_printf("%s:", name);
    onnx_tensor(graph, 1, end, false, 1, &number);
}

/* "name:0,2,-1" */
static inline void onnx_list(GByteArray *graph, const char *list)
{
    g_auto(GStrv) part = g_strsplit(list, ":", 2);
    g_auto(GStrv) item = g_strsplit(part[1], ",", -1);
    double number[8] = {0};
    const guint n = MIN(g_strv_length(item), G_N_ELEMENTS(number));
    for (guint i = 0; i < n; i++)
        number[i] = g_ascii_strtod(item[i], NULL);
    g_autofree char *end = g_strdup_printf("%s:%u", part[0], n);
    onnx_tensor(graph, 7, end, false, n, number);
}

/* "axis=1", "perm=0,2,1": a list where there is a comma; "alpha=0.5": a float where there is a
 * point; "alpha=@slope": the attribute `slope` of the function's call. */
static inline void onnx_attribute(GByteArray *node, guint field, const char *text)
{
    GByteArray *message = g_byte_array_new();
    g_auto(GStrv) pair = g_strsplit(text, "=", 2);
    g_auto(GStrv) item = g_strsplit(pair[1], ",", -1);
    const bool list = g_strv_length(item) > 1, real = strchr(pair[1], '.') != NULL;
    onnx_put_text(message, 1, pair[0]);
    if (*pair[1] == '@')
        onnx_put_text(message, 21, pair[1] + 1);
    else if (real) {
        const float number = (float)g_ascii_strtod(pair[1], NULL);
        onnx_put_varint(message, 2 << 3 | 5);
        g_byte_array_append(message, (const guint8 *)&number, sizeof number);
    }
    for (guint i = 0; item[i] && *pair[1] != '@' && !real; i++)
        onnx_put_number(message, list ? 8 : 3,
                        (guint64)g_ascii_strtoll(item[i], NULL, 10));
    onnx_put_number(message, 20, real || *pair[1] == '@' ? 1 : list ? 7 : 2);
    onnx_put(node, field, message);
}

/* "x w" and "y"; "domain::op" calls a function. */
static inline void onnx_node_in(GByteArray *to_message, guint field, const char *op,
                                const char *in, const char *out, const char *attributes)
{
    GByteArray *node = g_byte_array_new();
    g_auto(GStrv) from = g_strsplit(in, " ", -1);
    g_auto(GStrv) to = g_strsplit(out, " ", -1);
    g_auto(GStrv) attr = g_strsplit(attributes ? attributes : "", " ", -1);
    const char *name = strstr(op, "::");
    for (guint i = 0; from[i]; i++)
        onnx_put_text(node, 1, from[i]);
    for (guint i = 0; to[i]; i++)
        onnx_put_text(node, 2, to[i]);
    onnx_put_text(node, 4, name ? name + 2 : op);
    for (guint a = 0; attr[a]; a++)
        onnx_attribute(node, 5, attr[a]);
    if (name)
        onnx_put_bytes(node, 7, op, (gsize)(name - op));
    onnx_put(to_message, field, node);
}

static inline void onnx_node(GByteArray *graph, const char *op, const char *in,
                             const char *out, const char *attributes)
{
    onnx_node_in(graph, 1, op, in, out, attributes);
}

/* The file of a graph; frees the graph. */
static inline GByteArray *onnx_model(GByteArray *graph)
{
    GByteArray *model = g_byte_array_new(), *opset = g_byte_array_new();
    onnx_put_number(model, 1, 8);
    onnx_put(model, 7, graph);
    onnx_put_number(opset, 2, 14);
    onnx_put(model, 8, opset);
    return model;
}

/* --- models --- */

/* y = x w + b, with new weights of these sizes. */
static inline void onnx_linear(GByteArray *graph, const char *prefix, const char *in,
                               const char *out, guint k, guint n)
{
    g_autofree char *w = g_strdup_printf("%s.weight:%ux%u", prefix, k, n);
    g_autofree char *b = g_strdup_printf("%s.bias:%u", prefix, n);
    g_autofree char *product = g_strdup_printf("%s.product", prefix);
    g_autofree char *times = g_strdup_printf("%s %s.weight", in, prefix);
    g_autofree char *plus = g_strdup_printf("%s.bias %s", prefix, product);
    onnx_weight(graph, w);
    onnx_weight(graph, b);
    onnx_node(graph, "MatMul", times, product, NULL);
    onnx_node(graph, "Add", plus, out, NULL);
}

/* Names with the prefix before each; "two" and other constants of onnx_gpt2 have none. */
static inline void onnx_chain(GByteArray *graph, const char *p, const char *op,
                              const char *in, const char *out, const char *attributes)
{
    static const char *const own[] = {"two", "half",  "one",    "root", "tiny", "mask",
                                      "low", "heads", "merged", "size", NULL};
    g_auto(GStrv) from = g_strsplit(in, " ", -1);
    g_autoptr(GString) all = g_string_new("");
    for (guint i = 0; from[i]; i++)
        g_string_append_printf(
            all, "%s%s%s", i ? " " : "",
            g_strv_contains(own, from[i]) || strchr(from[i], '.') ? "" : p, from[i]);
    g_auto(GStrv) to = g_strsplit(out, " ", -1);
    g_autoptr(GString) made = g_string_new("");
    for (guint i = 0; to[i]; i++)
        g_string_append_printf(made, "%s%s%s", i ? " " : "", strchr(to[i], '.') ? "" : p,
                               to[i]);
    onnx_node(graph, op, all->str, made->str, attributes);
}

/* A layer norm as exporters write it. */
static inline void onnx_norm(GByteArray *graph, const char *p, const char *in,
                             const char *out, guint h)
{
    g_autofree char *w = g_strdup_printf("%sg.weight:%u", p, h);
    g_autofree char *b = g_strdup_printf("%sg.bias:%u", p, h);
    g_autofree char *centred = g_strdup_printf("%s mean", in);
    g_autofree char *scaled = g_strdup_printf("normal %sg.weight", p);
    g_autofree char *shifted = g_strdup_printf("scaled %sg.bias", p);
    onnx_weight(graph, w);
    onnx_weight(graph, b);
    onnx_chain(graph, p, "ReduceMean", in, "mean", "axes=-1,-1");
    onnx_chain(graph, p, "Sub", centred, "centred", NULL);
    onnx_chain(graph, p, "Pow", "centred two", "square", NULL);
    onnx_chain(graph, p, "ReduceMean", "square", "variance", "axes=-1,-1");
    onnx_chain(graph, p, "Add", "variance tiny", "more", NULL);
    onnx_chain(graph, p, "Sqrt", "more", "deviation", NULL);
    onnx_chain(graph, p, "Div", "centred deviation", "normal", NULL);
    onnx_chain(graph, p, "Mul", scaled, "scaled", NULL);
    onnx_chain(graph, p, "Add", shifted, out, NULL);
}

/* Attention with causal masks, and a GELU by erf between two products; in and out: names of
 * values. */
static inline void onnx_block(GByteArray *graph, const char *p, const char *in,
                              const char *out, guint h)
{
    g_autofree char *qkv = g_strdup_printf("%sqkv", p);
    g_autofree char *o = g_strdup_printf("%so", p), *up = g_strdup_printf("%sup", p);
    g_autofree char *down = g_strdup_printf("%sdown", p);
    g_autofree char *n1 = g_strdup_printf("%s1.", p), *n2 = g_strdup_printf("%s2.", p);
    g_autofree char *a = g_strdup_printf("%s1.out", p),
                    *b = g_strdup_printf("%s2.out", p);
    g_autofree char *c = g_strdup_printf("%smiddle.x", p);
    g_autofree char *packed = g_strdup_printf("%spacked", p);
    g_autofree char *joined = g_strdup_printf("%sjoined", p);
    g_autofree char *projected = g_strdup_printf("%sprojected", p);
    g_autofree char *wide = g_strdup_printf("%swide", p);
    g_autofree char *curved = g_strdup_printf("%scurved", p);
    g_autofree char *narrow = g_strdup_printf("%snarrow", p);
    g_autofree char *first = g_strdup_printf("%s projected", in);
    g_autofree char *second = g_strdup_printf("%s narrow", c);
    onnx_norm(graph, n1, in, a, h);
    onnx_linear(graph, qkv, a, packed, h, 3 * h);
    onnx_chain(graph, p, "Split", "packed", "q k v", "axis=2");
    onnx_chain(graph, p, "Reshape", "q heads", "q4", NULL);
    onnx_chain(graph, p, "Reshape", "k heads", "k4", NULL);
    onnx_chain(graph, p, "Reshape", "v heads", "v4", NULL);
    onnx_chain(graph, p, "Transpose", "q4", "qh", "perm=0,2,1,3");
    onnx_chain(graph, p, "Transpose", "k4", "kh", "perm=0,2,3,1");
    onnx_chain(graph, p, "Transpose", "v4", "vh", "perm=0,2,1,3");
    onnx_chain(graph, p, "MatMul", "qh kh", "scores", NULL);
    onnx_chain(graph, p, "Div", "scores size", "even", NULL);
    onnx_chain(graph, p, "Where", "mask even low", "masked", NULL);
    onnx_chain(graph, p, "Softmax", "masked", "chances", "axis=3");
    onnx_chain(graph, p, "MatMul", "chances vh", "mixed", NULL);
    onnx_chain(graph, p, "Transpose", "mixed", "back", "perm=0,2,1,3");
    onnx_chain(graph, p, "Reshape", "back merged", "joined", NULL);
    onnx_linear(graph, o, joined, projected, h, h);
    onnx_chain(graph, p, "Add", first, c, NULL);
    onnx_norm(graph, n2, c, b, h);
    onnx_linear(graph, up, b, wide, h, 4 * h);
    onnx_chain(graph, p, "Div", "wide root", "small", NULL);
    onnx_chain(graph, p, "Erf", "small", "erf", NULL);
    onnx_chain(graph, p, "Add", "erf one", "plus", NULL);
    onnx_chain(graph, p, "Mul", "wide plus", "product", NULL);
    onnx_chain(graph, p, "Mul", "product half", "curved", NULL);
    onnx_linear(graph, down, curved, narrow, 4 * h, h);
    onnx_chain(graph, p, "Add", second, out, NULL);
}

/* GPT-2 without weights: h wide, heads of 64, `layers` blocks, sequences of 16. */
static inline GByteArray *onnx_gpt2(guint h, guint layers, guint vocab, guint positions)
{
    GByteArray *graph = g_byte_array_new();
    g_autofree char *wte = g_strdup_printf("wte.weight:%ux%u", vocab, h);
    g_autofree char *wpe = g_strdup_printf("wpe.weight:%ux%u", positions, h);
    g_autofree char *heads = g_strdup_printf("heads:0,0,%u,64", h / 64);
    g_autofree char *merged = g_strdup_printf("merged:0,0,%u", h);
    double row[16], mask[256];
    for (guint i = 0; i < 256; i++)
        mask[i] = i % 16 <= i / 16;
    for (guint i = 0; i < 16; i++)
        row[i] = i;
    onnx_end(graph, 11, 7, "ids:0x16");
    onnx_weight(graph, wte);
    onnx_weight(graph, wpe);
    onnx_tensor(graph, 7, "rows:1x16", false, 16, row);
    onnx_tensor(graph, 7, "mask:1x1x16x16", false, 256, mask);
    onnx_list(graph, heads);
    onnx_list(graph, merged);
    onnx_number(graph, "two", 2);
    onnx_number(graph, "half", 0.5);
    onnx_number(graph, "one", 1);
    onnx_number(graph, "root", 1.41421356);
    onnx_number(graph, "tiny", 1e-5);
    onnx_number(graph, "low", -1e9);
    onnx_number(graph, "size", 8);
    onnx_node(graph, "Gather", "wte.weight ids", "token.x", NULL);
    onnx_node(graph, "Gather", "wpe.weight rows", "place.x", NULL);
    onnx_node(graph, "Add", "token.x place.x", "h.0.x", NULL);
    for (guint l = 0; l < layers; l++) {
        g_autofree char *p = g_strdup_printf("h.%u.", l);
        g_autofree char *in = g_strdup_printf("h.%u.x", l);
        g_autofree char *out = g_strdup_printf("h.%u.x", l + 1);
        onnx_block(graph, p, in, out, h);
    }
    g_autofree char *last = g_strdup_printf("h.%u.x", layers);
    onnx_norm(graph, "f.", last, "f.out", h);
    onnx_node(graph, "Transpose", "wte.weight", "head.t", "perm=1,0");
    onnx_node(graph, "MatMul", "f.out head.t", "logits", NULL);
    onnx_end(graph, 12, 1, "logits:0x16x50257");
    return onnx_model(graph);
}

/* A convolution in groups with a bias, a mean, a product; the samples are open. */
static inline GByteArray *onnx_groups(void)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:0x6x8x8");
    onnx_weight(graph, "c.weight:8x3x3x3");
    onnx_weight(graph, "c.bias:8");
    onnx_weight(graph, "l.weight:5x8");
    onnx_weight(graph, "l.bias:5");
    onnx_list(graph, "flat:0,-1");
    onnx_node(graph, "Conv", "x c.weight c.bias", "c",
              "group=2 strides=2,2 pads=1,1,1,1");
    onnx_node(graph, "Relu", "c", "r", NULL);
    onnx_node(graph, "MaxPool", "r", "m", "kernel_shape=2,2 strides=2,2");
    onnx_node(graph, "GlobalAveragePool", "m", "p", NULL);
    onnx_node(graph, "Reshape", "p flat", "f", NULL);
    onnx_node(graph, "Gemm", "f l.weight l.bias", "y", "transB=1");
    onnx_node(graph, "Softmax", "y", "z", "axis=1");
    onnx_end(graph, 12, 1, "z:0x5");
    return onnx_model(graph);
}

#endif
