/* Forms that ONNX files of unlike exporters have: functions, attention of rotated and grouped
 * heads, gates in one matrix, small floats, weights that are fed under any name, shapes that
 * only the file knows. */
#include "tests/support/onnx_graph.h"

#ifdef KILTER_PROTOBUF_C
/* --- functions --- */

typedef struct {
    const char *op, *in, *out, *attributes;
} Line;

static void add_function(GByteArray *model, const char *name, const char *in,
                         const char *out, const char *otherwise, const Line *line)
{
    GByteArray *function = g_byte_array_new();
    g_auto(GStrv) from = g_strsplit(in, " ", -1);
    g_auto(GStrv) to = g_strsplit(out, " ", -1);
    onnx_put_text(function, 1, name);
    onnx_put_text(function, 10, "own");
    for (guint i = 0; from[i]; i++)
        onnx_put_text(function, 4, from[i]);
    for (guint i = 0; to[i]; i++)
        onnx_put_text(function, 5, to[i]);
    if (otherwise)
        onnx_attribute(function, 11, otherwise);
    for (; line->op; line++)
        onnx_node_in(function, 7, line->op, line->in, line->out, line->attributes);
    onnx_put(model, 25, function);
}

/* x [4, 6] through two layers of one function, which calls another one; its own values have the
 * same names in each. */
static GByteArray *called(const char *inner)
{
    static const Line dense[] = {{"MatMul", "x w", "p", NULL},
                                 {"Add", "p b", "q", NULL},
                                 {"own::Curve", "q", "y", "slope=@bend"},
                                 {0}},
                      same[] = {{0}};
    const Line curve[] = {{"Constant", "", "c", "value_float=@slope"},
                          {"Mul", "x c", "s", NULL},
                          {"Sigmoid", "s", "g", NULL},
                          {inner, "x g", "y", NULL},
                          {0}};
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_weight(graph, "a.w:6x8");
    onnx_weight(graph, "a.b:8");
    onnx_weight(graph, "c.w:8x5");
    onnx_weight(graph, "c.b:5");
    onnx_node(graph, "own::Dense", "x a.w a.b", "h", "bend=1.0");
    onnx_node(graph, "own::Same", "h", "i", NULL);
    onnx_node(graph, "own::Dense", "i c.w c.b", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x5");
    GByteArray *model = onnx_model(graph);
    add_function(model, "Dense", "x w b", "y", "bend=1.702", dense);
    add_function(model, "Curve", "x", "y", NULL, curve);
    add_function(model, "Same", "x", "x", NULL, same);
    return model;
}

/* The attribute of the first call makes a SiLU, the function's own a GELU. */
static void test_functions(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = good(called("Mul"));
    assert_int_equal(graph_parameter_count(graph), 6 * 8 + 8 + 8 * 5 + 5);
    check_ops(graph, OP_LINEAR, 2);
    check_ops(graph, OP_SILU, 1);
    check_ops(graph, OP_GELU, 1);
    g_autoptr(GError) error = NULL;
    assert_null(graph_of(called("own::Dense"), &error));
    assert_error(error, KILTER_ERROR_INPUT, "called more than 32 deep, or a circle");
}

/* --- attention --- */

/* The turned x [.., 4]: x cos + (-b, a) sin. */
static void add_turn(GByteArray *graph, const char *p, const char *in, const char *out)
{
    const Line line[] = {{"Mul", "%s cosine", "%s.straight", NULL},
                         {"Slice", "%s zero two last", "%s.a", NULL},
                         {"Slice", "%s two four last", "%s.b", NULL},
                         {"Neg", "%s.b", "%s.minus", NULL},
                         {"Concat", "%s.minus %s.a", "%s.quarter", "axis=-1"},
                         {"Mul", "%s.quarter sine", "%s.turned", NULL},
                         {"Add", "%s.straight %s.turned", "", NULL}};
    for (guint i = 0; i < G_N_ELEMENTS(line); i++) {
        g_autoptr(GString) from = g_string_new(line[i].in);
        g_autoptr(GString) to = g_string_new(*line[i].out ? line[i].out : out);
        const bool first = strstr(line[i].in, "%s ") && !strstr(line[i].in, "%s.");
        g_string_replace(from, "%s", first ? in : p, 0);
        g_string_replace(to, "%s", p, 0);
        onnx_node(graph, line[i].op, from->str, to->str, line[i].attributes);
    }
}

static void add_projection(GByteArray *graph, const char *name, guint heads)
{
    g_autofree char *w = g_strdup_printf("%s.weight:24x%u", name, 4 * heads);
    g_autofree char *in = g_strdup_printf("x %s.weight", name);
    g_autofree char *flat = g_strdup_printf("%s.flat", name);
    g_autofree char *shape = g_strdup_printf("%s.flat heads%u", name, heads);
    g_autofree char *apart = g_strdup_printf("%s.apart", name);
    onnx_weight(graph, w);
    onnx_node(graph, "MatMul", in, flat, NULL);
    onnx_node(graph, "Reshape", shape, apart, NULL);
    onnx_node(graph, "Transpose", apart, name, "perm=0,2,1,3");
}

/* Each head of keys or values for as many neighbouring queries. */
static void add_repeat(GByteArray *graph, const char *in, const char *out)
{
    g_autofree char *from = g_strdup_printf("%s third", in);
    g_autofree char *one = g_strdup_printf("%s.one", in),
                    *wide = g_strdup_printf("%s.wide", in),
                    *spread = g_strdup_printf("%s.one times", in),
                    *joined = g_strdup_printf("%s.wide joined", in);
    onnx_node(graph, "Unsqueeze", from, one, NULL);
    onnx_node(graph, "Expand", spread, wide, NULL);
    onnx_node(graph, "Reshape", joined, out, NULL);
}

/* An RMS norm of each head of 4, as Qwen3's are. */
static void add_norm(GByteArray *graph, const char *in, const char *out)
{
    static const Line lines[] = {{"Mul", "%s %s", "%s.square", NULL},
                                 {"ReduceMean", "%s.square", "%s.mean", "axes=-1,-1"},
                                 {"Add", "%s.mean tiny", "%s.more", NULL},
                                 {"Sqrt", "%s.more", "%s.root", NULL},
                                 {"Div", "%s %s.root", "%s.even", NULL},
                                 {"Mul", "%s.even %s.gamma", "", NULL}};
    g_autofree char *gamma = g_strdup_printf("%s.gamma:4", in);
    onnx_weight(graph, gamma);
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autoptr(GString) from = g_string_new(lines[i].in);
        g_autoptr(GString) to = g_string_new(*lines[i].out ? lines[i].out : out);
        g_string_replace(from, "%s", in, 0);
        g_string_replace(to, "%s", in, 0);
        onnx_node(graph, lines[i].op, from->str, to->str, lines[i].attributes);
    }
}

/* Six heads of queries on two of keys and values, queries and keys turned, as Llama's exports
 * are. */
static GByteArray *grouped(bool turn_values, bool norms)
{
    static const double turn[4] = {0.1, 0.2, 0.3, 0.4};
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:2x5x24");
    onnx_tensor(graph, 1, "cosine:1x1x1x4", false, 4, turn);
    onnx_tensor(graph, 1, "sine:1x1x1x4", false, 4, turn);
    static const char *const list[] = {"zero:0",
                                       "two:2",
                                       "four:4",
                                       "last:3",
                                       "third:2",
                                       "heads6:2,5,6,4",
                                       "heads2:2,5,2,4",
                                       "times:2,2,3,5,4",
                                       "joined:2,6,5,4",
                                       "merged:2,5,24",
                                       NULL};
    for (guint i = 0; list[i]; i++)
        onnx_list(graph, list[i]);
    add_projection(graph, "q", 6);
    add_projection(graph, "k", 2);
    add_projection(graph, "v", 2);
    onnx_number(graph, "tiny", 1e-6);
    if (norms) {
        add_norm(graph, "q", "even.q");
        add_norm(graph, "k", "even.k");
    }
    add_turn(graph, "qt", norms ? "even.q" : "q", "queries");
    add_turn(graph, "kt", norms ? "even.k" : "k", "turned.keys");
    if (turn_values)
        add_turn(graph, "vt", "v", "turned.values");
    add_repeat(graph, "turned.keys", "keys");
    add_repeat(graph, turn_values ? "turned.values" : "v", "values");
    onnx_node(graph, "Transpose", "keys", "keys.t", "perm=0,1,3,2");
    onnx_node(graph, "MatMul", "queries keys.t", "scores", NULL);
    onnx_node(graph, "Softmax", "scores", "chances", "axis=-1");
    onnx_node(graph, "MatMul", "chances values", "mixed", NULL);
    onnx_node(graph, "Transpose", "mixed", "back", "perm=0,2,1,3");
    onnx_node(graph, "Reshape", "back merged", "flat", NULL);
    onnx_weight(graph, "o.weight:24x24");
    onnx_node(graph, "MatMul", "flat o.weight", "y", NULL);
    onnx_end(graph, 12, 1, "y:2x5x24");
    return onnx_model(graph);
}

static void test_grouped_attention(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = good(grouped(false, false));
    uint32_t n;
    assert_int_equal(graph_parameter_count(graph), 24 * (24 + 8 + 8 + 24));
    const Op *attention = find_op(graph, OP_GROUPED_ATTENTION, &n);
    assert_int_equal(n, 1);
    const Tensor *y = graph_tensor(graph, attention->out[0]);
    assert_int_equal(y->dim[2], 2); /* heads of keys, */
    assert_int_equal(y->dim[3], 3); /* and queries to each */
    const Op *rotary = find_op(graph, OP_ROTARY, &n);
    assert_int_equal(n, 2);
    assert_int_equal(rotary->attr.span, 4);
    check_ops(graph, OP_GROUPED_OUT, 1);
    check_ops(graph, OP_TRANSPOSE, 0);
    g_autoptr(GError) error = NULL;
    assert_null(graph_of(grouped(true, false), &error));
    assert_error(error, KILTER_ERROR_INPUT, "unlike numbers of heads or elements");
}

static void test_normed_heads(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = good(grouped(false, true));
    assert_int_equal(graph_parameter_count(graph), 24 * (24 + 8 + 8 + 24) + 4 + 4);
    check_ops(graph, OP_RMS_NORM, 1);
    check_ops(graph, OP_KEY_NORM, 1);
    check_ops(graph, OP_ROTARY, 2);
    check_ops(graph, OP_GROUPED_ATTENTION, 1);
}

/* Queries of x attend to z, whose keys and values are parts of one product or of two. */
static GByteArray *crossed(bool packed)
{
    static const Line LINE[] = {{"Reshape", "k.flat heads3", "k.apart", NULL},
                                {"Reshape", "v.flat heads3", "v.apart", NULL},
                                {"Transpose", "k.apart", "keys", "perm=0,2,3,1"},
                                {"Transpose", "v.apart", "values", "perm=0,2,1,3"},
                                {"MatMul", "q keys", "scores", NULL},
                                {"Softmax", "scores", "chances", "axis=-1"},
                                {"MatMul", "chances values", "mixed", NULL},
                                {"Transpose", "mixed", "back", "perm=0,2,1,3"},
                                {"Reshape", "back merged", "flat", NULL},
                                {"MatMul", "flat o.weight", "y", NULL}};
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:2x5x24");
    onnx_end(graph, 11, 1, "z:2x3x24");
    onnx_list(graph, "heads6:2,5,6,4");
    onnx_list(graph, "heads3:2,3,6,4");
    onnx_list(graph, "merged:2,5,24");
    add_projection(graph, "q", 6);
    onnx_weight(graph, packed ? "kv.weight:24x48" : "k.weight:24x24");
    onnx_node(graph, "MatMul", packed ? "z kv.weight" : "z k.weight",
              packed ? "kv" : "k.flat", NULL);
    if (packed) {
        onnx_node(graph, "Split", "kv", "k.flat v.flat", "axis=2");
    } else {
        onnx_weight(graph, "v.weight:24x24");
        onnx_node(graph, "MatMul", "z v.weight", "v.flat", NULL);
    }
    onnx_weight(graph, "o.weight:24x24");
    for (guint i = 0; i < G_N_ELEMENTS(LINE); i++)
        onnx_node(graph, LINE[i].op, LINE[i].in, LINE[i].out, LINE[i].attributes);
    onnx_end(graph, 12, 1, "y:2x5x24");
    return onnx_model(graph);
}

static void test_crossed_attention(void **state)
{
    (void)state;
    for (uint32_t packed = 0; packed < 2; packed++) {
        g_autoptr(Graph) graph = good(crossed(packed));
        uint32_t n;
        assert_int_equal(graph_parameter_count(graph), 24 * (24 + 48 + 24));
        const Op *attention = find_op(graph, OP_GROUPED_ATTENTION, &n);
        assert_int_equal(n, 1);
        assert_int_equal(graph_tensor(graph, attention->out[0])->dim[1], 5);
        assert_int_equal(graph_tensor(graph, attention->in[1])->dim[1], 3);
        check_ops(graph, OP_KV_PROJ, 1);
    }
}

/* Norms of what is no head: of the model's input, and of all that a product makes. */
static void test_whole_norms(void **state)
{
    (void)state;
    GByteArray *bytes = g_byte_array_new();
    onnx_end(bytes, 11, 1, "x:2x5x4");
    onnx_number(bytes, "tiny", 1e-6);
    onnx_weight(bytes, "w:4x4");
    onnx_weight(bytes, "o:4x4");
    add_norm(bytes, "x", "n");
    onnx_node(bytes, "MatMul", "n w", "p", NULL);
    add_norm(bytes, "p", "m");
    onnx_node(bytes, "MatMul", "m o", "y", NULL);
    onnx_end(bytes, 12, 1, "y:2x5x4");
    g_autoptr(Graph) graph = good(onnx_model(bytes));
    assert_int_equal(graph_parameter_count(graph), 4 + 16 + 4 + 16);
    check_ops(graph, OP_RMS_NORM, 2);
    check_ops(graph, OP_LINEAR, 2);
}

/* --- elements --- */

/* SiLU of one half of a product times the other half: one op of two, whichever half is first. */
static GByteArray *halves(const char *order)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_weight(graph, "w:6x16");
    onnx_weight(graph, "v:8x3");
    onnx_node(graph, "MatMul", "x w", "p", NULL);
    onnx_node(graph, "Split", "p", order, "axis=1");
    onnx_node(graph, "Sigmoid", "gate", "s", NULL);
    onnx_node(graph, "Mul", "gate s", "silu", NULL);
    onnx_node(graph, "Mul", "silu up", "m", NULL);
    onnx_node(graph, "MatMul", "m v", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x3");
    return onnx_model(graph);
}

static void test_halves(void **state)
{
    (void)state;
    static const char *const order[] = {"gate up", "up gate"};
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(Graph) graph = good(halves(order[i]));
        assert_int_equal(graph_parameter_count(graph), 6 * 16 + 8 * 3);
        check_ops(graph, OP_LINEAR_PAIR, 1);
        check_ops(graph, OP_SWIGLU, 1);
    }
    g_autoptr(GError) error = NULL;
    assert_null(graph_of(halves("gate other up third"), &error));
    assert_error(error, KILTER_ERROR_INPUT, "only a part of its input is read");
}

/* 1.702 as one number of `dtype`, in raw bytes or in int32_data. */
static void add_small(GByteArray *graph, guint dtype, guint16 bits, bool raw)
{
    GByteArray *tensor = g_byte_array_new();
    onnx_put_number(tensor, 2, dtype);
    onnx_put_text(tensor, 8, "slope");
    const guint8 byte[] = {(guint8)bits, (guint8)(bits >> 8)};
    if (raw)
        onnx_put_bytes(tensor, 9, byte, sizeof byte);
    else
        onnx_put_number(tensor, 5, bits);
    onnx_put(graph, 5, tensor);
}

/* x sigmoid(1.702 x) is a GELU also where its number has 16 bits. */
static void test_small_floats(void **state)
{
    (void)state;
    static const struct {
        guint dtype;
        guint16 bits;
        bool raw;
    } form[] = {
        {10, 0x3ecf, true}, {10, 0x3ecf, false}, {16, 0x3fda, true}, {16, 0x3fda, false}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(form); i++) {
        GByteArray *graph = g_byte_array_new();
        onnx_end(graph, 11, form[i].dtype, "x:4x6");
        onnx_weight(graph, "w:6x6");
        add_small(graph, form[i].dtype, form[i].bits, form[i].raw);
        onnx_node(graph, "MatMul", "x w", "p", NULL);
        onnx_node(graph, "Mul", "p slope", "s", NULL);
        onnx_node(graph, "Sigmoid", "s", "g", NULL);
        onnx_node(graph, "Mul", "p g", "y", NULL);
        onnx_end(graph, 12, form[i].dtype, "y:4x6");
        g_autoptr(Graph) made = good(onnx_model(graph));
        check_ops(made, OP_GELU, 1);
        check_ops(made, OP_SILU, 0);
    }
}

/* Weights that are fed, whatever their names: another number of rows than of samples says so. */
static void test_fed_weights(void **state)
{
    (void)state;
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_end(graph, 11, 1, "row:1x1x6");
    onnx_end(graph, 11, 1, "scale:6");
    onnx_list(graph, "first:0");
    onnx_weight(graph, "w:6x6");
    onnx_node(graph, "MatMul", "x w", "p", NULL);
    onnx_node(graph, "Relu", "p", "r", NULL);
    onnx_node(graph, "Squeeze", "row first", "flat", NULL);
    onnx_node(graph, "Add", "r flat", "s", NULL);
    onnx_node(graph, "Mul", "scale s", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x6");
    g_autoptr(Graph) made = good(onnx_model(graph));
    assert_int_equal(graph_parameter_count(made), 36 + 6 + 6);
    check_ops(made, OP_ADD_ROWS, 1);
    check_ops(made, OP_RMS_NORM, 1); /* a weight for each element of the last dim */
    GByteArray *other = g_byte_array_new();
    onnx_end(other, 11, 1, "source:4x6");
    onnx_end(other, 11, 1, "target:3x6");
    onnx_weight(other, "v:6x5");
    onnx_node(other, "MatMul", "target v", "y", NULL);
    onnx_end(other, 12, 1, "y:3x5");
    g_autoptr(Graph) data = good(onnx_model(other));
    assert_int_equal(graph_parameter_count(data), 30);
}

/* Exporters write the end of a slice as the largest integer, its start perhaps as the smallest one:
 * of a value, and of the sizes that a reshape is made of. */
static void test_slices_to_the_end(void **state)
{
    (void)state;
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_weight(graph, "w:6x5");
    onnx_long(graph, "first", G_MININT64);
    onnx_long(graph, "last", -1);
    onnx_long(graph, "end", G_MAXINT64);
    onnx_long(graph, "axis", 1);
    onnx_node(graph, "Slice", "x first end axis", "whole", NULL);
    onnx_node(graph, "Shape", "x", "sizes", NULL);
    onnx_node(graph, "Slice", "sizes last end", "columns", NULL);
    onnx_node(graph, "Concat", "last columns", "shape", "axis=0");
    onnx_node(graph, "Reshape", "whole shape", "same", NULL);
    onnx_node(graph, "MatMul", "same w", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x5");
    g_autoptr(Graph) made = good(onnx_model(graph));
    check_ops(made, OP_LINEAR, 1);
    check_ops(made, OP_RESHAPE, 0);
}

/* Indices by NonZero, a reshape to what Size, Tile and Pad make, and a shape that the file
 * states. */
static void test_shapes(void **state)
{
    (void)state;
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 7, "ids:2x4");
    onnx_weight(graph, "table:9x6");
    onnx_weight(graph, "places:4x6");
    onnx_weight(graph, "w:6x5");
    onnx_list(graph, "quad:0,0,0,0");
    onnx_list(graph, "flat:-1");
    onnx_list(graph, "none:0,0,0,0,0,0");
    onnx_list(graph, "one:1");
    onnx_list(graph, "twice:2");
    onnx_node(graph, "Shape", "quad", "four", NULL);
    onnx_node(graph, "ConstantOfShape", "four", "ones", NULL);
    onnx_node(graph, "Equal", "ones ones", "true", NULL);
    onnx_node(graph, "NonZero", "true", "at", NULL);
    onnx_node(graph, "Expand", "flat one", "wide", NULL);
    onnx_node(graph, "Reshape", "at wide", "index", NULL);
    onnx_node(graph, "Gather", "places index", "place", NULL);
    onnx_node(graph, "Gather", "table ids", "token", NULL);
    onnx_node(graph, "Add", "token place", "sum", NULL);
    onnx_node(graph, "Pad", "sum none", "padded", NULL);
    onnx_node(graph, "Size", "one", "size", NULL);
    onnx_node(graph, "Tile", "one twice", "ones2", NULL);
    onnx_node(graph, "Mystery", "ids", "mask", NULL);
    onnx_node(graph, "MatMul", "padded w", "p", NULL);
    onnx_node(graph, "Reshape", "p mask", "y", NULL);
    onnx_end(graph, 13, 1, "y:2x4x5");
    onnx_end(graph, 12, 1, "y:2x4x5");
    g_autoptr(Graph) made = good(onnx_model(graph));
    assert_int_equal(graph_parameter_count(made), 9 * 6 + 4 * 6 + 6 * 5);
    check_ops(made, OP_EMBEDDING, 2);
    check_ops(made, OP_LINEAR, 1);
}
#endif

/* Without protobuf-c no file is read (test_onnx.c). */
static void test_nothing(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef KILTER_PROTOBUF_C
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_grouped_attention),
        cmocka_unit_test(test_crossed_attention),
        cmocka_unit_test(test_whole_norms),
        cmocka_unit_test(test_normed_heads),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_small_floats),
        cmocka_unit_test(test_fed_weights),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_slices_to_the_end),
#endif
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
