/* Small constants of ONNX files that say how a node works: masks of attention and ranges; and
 * which bytes of a file are read. */
#include "tests/support/onnx_graph.h"

#ifdef KILTER_PROTOBUF_C
/* As in data/formats/onnx/onnx.h, whose other names are those of tests/support/onnx_bytes.h. */
GByteArray *onnx_strip(const void *bytes, gsize length);

/* Attention of two heads of 4 over 5 tokens under a mask that is added, which the file has as it is
 * or transposed, and whether later keys are hidden. */
static bool is_causal(const double *mask, bool transposed)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:2x5x24");
    double listed[25];
    for (uint32_t i = 0; i < 25; i++)
        listed[i] = mask[transposed ? i % 5 * 5 + i / 5 : i];
    onnx_tensor(graph, 1, "listed:5x5", false, 25, listed);
    onnx_node(graph, transposed ? "Transpose" : "Identity", "listed", "mask",
              transposed ? "perm=1,0" : NULL);
    onnx_list(graph, "heads2:2,5,2,4");
    onnx_list(graph, "merged:2,5,8");
    for (const char *name = "qkv"; *name; name++) {
        const char n = *name;
        g_autofree char *weight = g_strdup_printf("w%c:24x8", n),
                        *in = g_strdup_printf("x w%c", n),
                        *flat = g_strdup_printf("flat%c", n),
                        *shape = g_strdup_printf("flat%c heads2", n),
                        *apart = g_strdup_printf("apart%c", n),
                        *out = g_strdup_printf("%c", n);
        onnx_weight(graph, weight);
        onnx_node(graph, "MatMul", in, flat, NULL);
        onnx_node(graph, "Reshape", shape, apart, NULL);
        onnx_node(graph, "Transpose", apart, out, "perm=0,2,1,3");
    }
    onnx_node(graph, "Transpose", "k", "k.t", "perm=0,1,3,2");
    onnx_node(graph, "MatMul", "q k.t", "scores", NULL);
    onnx_node(graph, "Add", "scores mask", "masked", NULL);
    onnx_node(graph, "Softmax", "masked", "chances", "axis=-1");
    onnx_node(graph, "MatMul", "chances v", "mixed", NULL);
    onnx_node(graph, "Transpose", "mixed", "back", "perm=0,2,1,3");
    onnx_node(graph, "Reshape", "back merged", "flat", NULL);
    onnx_weight(graph, "o.weight:8x24");
    onnx_node(graph, "MatMul", "flat o.weight", "y", NULL);
    onnx_end(graph, 12, 1, "y:2x5x24");
    g_autoptr(Graph) made = good(onnx_model(graph));
    uint32_t n[2];
    const Op *plain = find_op(made, OP_ATTENTION, &n[0]),
             *grouped = find_op(made, OP_GROUPED_ATTENTION, &n[1]);
    assert_int_equal(n[0] + n[1], 1);
    return (plain ? plain : grouped)->attr.causal;
}

/* A mask is causal if it hides each later key and no other one: any one number tells. */
static void check_masks(bool transposed)
{
    enum { TOKENS = 5 };
    static const double hidden = -1e9;
    double mask[TOKENS * TOKENS] = {0};
    assert_false(is_causal(mask, transposed));
    for (uint32_t i = 0; i < TOKENS * TOKENS; i++)
        mask[i] = i % TOKENS > i / TOKENS ? hidden : 0;
    assert_true(is_causal(mask, transposed));
    for (uint32_t i = 0; i < TOKENS * TOKENS; i++) {
        mask[i] = hidden - mask[i];
        assert_false(is_causal(mask, transposed));
        mask[i] = hidden - mask[i];
    }
}

static void test_masks(void **state)
{
    (void)state;
    check_masks(false);
    check_masks(true);
}

/* The error of a model whose 4 rows are reshaped to as many as a range has, or NULL. */
static GError *range_error(gint64 from, gint64 to, gint64 step)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_weight(graph, "w:6x5");
    onnx_list(graph, "five:5");
    onnx_long(graph, "from", from);
    onnx_long(graph, "to", to);
    onnx_long(graph, "step", step);
    onnx_node(graph, "Range", "from to step", "range", NULL);
    onnx_node(graph, "Shape", "range", "rows", NULL);
    onnx_node(graph, "Concat", "rows five", "shape", "axis=0");
    onnx_node(graph, "MatMul", "x w", "p", NULL);
    onnx_node(graph, "Reshape", "p shape", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x5");
    GError *error = NULL;
    Graph *made = graph_of(onnx_model(graph), &error);
    assert_int_equal(made == NULL, error != NULL);
    g_clear_pointer(&made, graph_free);
    return error;
}

/* A range has as many elements as steps fit before its end, and one of none or of too many is
 * refused. */
static void test_ranges(void **state)
{
    (void)state;
    static const gint64 four[][3] = {{0, 4, 1},   {0, 7, 2},   {0, 8, 2},
                                     {3, -1, -1}, {10, 0, -3}, {-8, 0, 2}},
                        other[][3] = {
                            {0, 3, 1}, {0, 5, 1}, {0, 9, 2},  {0, 6, 2},
                            {0, 4, 0}, {4, 0, 1}, {0, 4, -1}, {0, INT64_C(1) << 40, 1}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(four); i++) {
        g_autoptr(GError) error = range_error(four[i][0], four[i][1], four[i][2]);
        if (error)
            fail_msg("range %d: %s", (int)i, error->message);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(other); i++) {
        g_autoptr(GError) error = range_error(other[i][0], other[i][1], other[i][2]);
        assert_error(error, KILTER_ERROR_INPUT, "do not follow from those of the inputs");
    }
}

/* Whether a model is good whose 4 rows are reshaped to as many as a reduction of the sizes
 * gives. */
static bool gives_four(const char *reduction, const char *sizes)
{
    GByteArray *graph = g_byte_array_new();
    g_autofree char *list = g_strconcat("sizes:", sizes, NULL);
    g_autoptr(GError) error = NULL;
    onnx_end(graph, 11, 1, "x:4x6");
    onnx_weight(graph, "w:6x5");
    onnx_list(graph, "five:5");
    onnx_list(graph, list);
    onnx_node(graph, reduction, "sizes", "rows", NULL);
    onnx_node(graph, "Concat", "rows five", "shape", "axis=0");
    onnx_node(graph, "MatMul", "x w", "p", NULL);
    onnx_node(graph, "Reshape", "p shape", "y", NULL);
    onnx_end(graph, 12, 1, "y:4x5");
    Graph *made = graph_of(onnx_model(graph), &error);
    const bool good = made != NULL;
    g_clear_pointer(&made, graph_free);
    return good;
}

static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        const char *op, *four, *other;
    } CASE[] = {{"ReduceSum", "1,1,2", "1,4,1"},
                {"ReduceProd", "1,4,1", "1,1,2"},
                {"ReduceMax", "2,4,1", "4,5,4"},
                {"ReduceMin", "9,4,7", "4,3,4"},
                {"ReduceMean", "4", "3"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        assert_true(gives_four(CASE[i].op, CASE[i].four));
        assert_false(gives_four(CASE[i].op, CASE[i].other));
    }
}

/* --- bytes --- */

/* A file with, in each of its messages, a text that nobody asks for, a field that ONNX does not
 * have, and weights; or without them. */
static GByteArray *described(bool more)
{
    GByteArray *node = g_byte_array_new(), *tensor = g_byte_array_new(),
               *graph = g_byte_array_new(), *weights = g_byte_array_new();
    g_byte_array_set_size(weights, 1 << 17);
    memset(weights->data, 1, weights->len);
    onnx_put_text(node, 1, "x");
    onnx_put_text(node, 2, "y");
    onnx_put_text(node, 4, "Relu");
    onnx_put_number(tensor, 2, 1);
    onnx_put_text(tensor, 8, "w");
    if (more) {
        onnx_put_text(node, 6, "a node");
        onnx_put_number(node, 999, 7);
        onnx_put_text(tensor, 12, "a tensor");
        onnx_put_text(tensor, 999, "new");
        onnx_put_bytes(tensor, 9, weights->data, weights->len);
        onnx_put_text(graph, 10, "a graph");
        onnx_put_number(graph, 999, 1);
    }
    onnx_put(graph, 1, node);
    onnx_put(graph, 5, tensor);
    g_byte_array_unref(weights);
    GByteArray *model = onnx_model(graph);
    if (more)
        onnx_put_text(model, 6, "a model");
    return model;
}

/* Only what is asked for is kept, in its order and with its bytes; a file that ends early is
 * none. */
static void test_stripped(void **state)
{
    (void)state;
    g_autoptr(GByteArray) full = described(true), bare = described(false);
    g_autoptr(GByteArray) kept = onnx_strip(full->data, full->len);
    assert_non_null(kept);
    assert_int_equal(kept->len, bare->len);
    assert_memory_equal(kept->data, bare->data, bare->len);
    uint32_t whole = 0;
    for (guint n = 0; n < bare->len; n++) {
        g_autoptr(GByteArray) part = onnx_strip(bare->data, n);
        whole += part != NULL;
        if (part)
            assert_memory_equal(part->data, bare->data, part->len);
    }
    assert_int_equal(whole,
                     3); /* after none, one and two of the three fields of the model */
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
        cmocka_unit_test(test_masks),      cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_stripped),
#endif
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
