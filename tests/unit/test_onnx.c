/* Models of ONNX files: parameters, chains that become one op, refusals, the content that a plan
 * carries, and files by others. */
#include <glib/gstdio.h>
#include <jansson.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/support/expected.h"
#include "tests/support/onnx_bytes.h"

static char *file_path(void)
{
    return g_strdup_printf("%s/kilter-onnx-%d.onnx", g_get_tmp_dir(), (int)getpid());
}

/* The graph of a file of these bytes, which are freed. */
static Graph *graph_of(GByteArray *bytes, const char *list, GError **error)
{
    g_autofree char *path = file_path();
    g_autofree char *spec = g_strdup_printf("%s%s%s", path, *list ? ":" : "", list);
    g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL);
    g_byte_array_unref(bytes);
    Graph *graph = model_build(spec, 2, NULL, error);
    g_unlink(path);
    return graph;
}

static uint32_t ops_of(const Graph *graph, OpKind kind)
{
    uint32_t n = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        n += graph_get_op(graph, id)->kind == kind &&
             graph_get_op(graph, id)->pass == PASS_FORWARD;
    return n;
}

#ifdef KILTER_PROTOBUF_C
/* GPT-2 without weights: the published number, and the ops that a builder of it would choose. */
static void test_gpt2(void **state)
{
    (void)state;
    GError *error = NULL;
    g_autoptr(Graph) graph = graph_of(onnx_gpt2(768, 12, 50257, 1024), "batch=4", &error);
    assert_no_error(error);
    assert_int_equal(graph_parameter_count(graph), 124439808);
    assert_int_equal(graph_batch(graph), 8); /* 4 on each of 2 */
    static const struct {
        OpKind kind;
        uint32_t n;
    } want[] = {{OP_LAYER_NORM, 25}, {OP_QKV, 12},      {OP_ATTENTION, 12},
                {OP_OUT_PROJ, 12},   {OP_GELU, 12},     {OP_ADD, 25},
                {OP_LINEAR, 25},     {OP_EMBEDDING, 2}, {OP_TIED, 1},
                {OP_TRANSPOSE, 0},   {OP_MERGE, 0},     {OP_RELU, 0}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(want); i++)
        if (ops_of(graph, want[i].kind) != want[i].n)
            fail_msg("%u ops %s, expected %u", ops_of(graph, want[i].kind),
                     op_kind_name(want[i].kind), want[i].n);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->kind == OP_ATTENTION)
            assert_true(graph_get_op(graph, id)->attr.causal);
}

/* Without the probabilities in memory queries have a weight of their own: of the same size. */
static void test_fused(void **state)
{
    (void)state;
    GError *error = NULL;
    g_autoptr(Graph) plain = graph_of(onnx_gpt2(128, 2, 90, 32), "batch=1", &error);
    g_autoptr(Graph) fused =
        graph_of(onnx_gpt2(128, 2, 90, 32), "batch=1,attention=fused", &error);
    assert_no_error(error);
    assert_int_equal(ops_of(fused, OP_FUSED_ATTENTION), 2);
    assert_int_equal(ops_of(plain, OP_FUSED_ATTENTION), 0);
}

/* The bias of a convolution in groups is trained, too. */
static void test_groups(void **state)
{
    (void)state;
    GError *error = NULL;
    g_autoptr(Graph) graph = graph_of(onnx_groups(), "batch=3,precision=mixed", &error);
    assert_no_error(error);
    assert_int_equal(graph_parameter_count(graph), 8 * 27 + 8 + 40 + 5);
    assert_int_equal(ops_of(graph, OP_GROUP_CONV2D), 1);
    assert_int_equal(ops_of(graph, OP_MAX_POOL2D), 1);
    assert_int_equal(graph_batch(graph), 6);
    assert_int_equal(ops_of(graph, OP_LOG_SOFTMAX), 1); /* the loss has the softmax */
}

/* A plan carries the file's description without its weights, which builds the same graph. */
static void test_content(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = file_path(), *content = NULL, *canonical = NULL,
                    *again = NULL;
    GByteArray *bytes = onnx_gpt2(128, 2, 90, 32);
    g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL);
    g_byte_array_unref(bytes);
    assert_true(model_is_one(path));
    g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
    assert_true(model_content(path, &content, &error));
    assert_no_error(error);
    g_unlink(path);
    g_autoptr(Graph) carried = model_build_from(canonical, content, 3, &again, &error);
    assert_no_error(error);
    assert_string_equal(canonical, again);
    assert_int_equal(graph_n_ops(graph), graph_n_ops(carried));
    assert_int_equal(graph_parameter_count(graph), graph_parameter_count(carried));
    assert_null(model_build(path, 1, NULL, &error)); /* the file is gone */
    assert_error(error, KILTER_ERROR_INPUT, "No such file");
}

/* A small model with one node more. */
static GByteArray *with_node(const char *op, const char *in, const char *attributes)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:4x6x6");
    onnx_weight(graph, "w:6x6");
    onnx_weight(graph, "odd:7x6");
    onnx_weight(graph, "gamma:6");
    onnx_list(graph, "five:5");
    onnx_list(graph, "apart:0,2");
    onnx_node(graph, "MatMul", "x w", "y", NULL);
    onnx_node(graph, op, in, "z", attributes);
    onnx_end(graph, 12, 1, "z:4x6x6");
    return onnx_model(graph);
}

/* A node that cannot be an op is named with the reason. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *op, *in, *attributes, *named;
    } bad[] = {
        {"Resize", "y", NULL, "node 1, Resize '': none of the op table does the same"},
        {"Softmax", "z", NULL, "expected a value made before, got 'z'"},
        {"MatMul", "y y", NULL, "a product of two values that is no attention"},
        {"MatMul", "y odd", NULL, "6 columns times 7 rows"},
        {"Mul", "y odd", NULL, "it multiplies a constant of more elements"},
        {"Reshape", "y five", NULL, "do not follow from those of the inputs"},
        {"Gather", "y apart", "axis=1", "it picks elements that are not in a row"},
        {"Conv", "y gamma", NULL, "expected images of one or two edges"},
        {"Add", "y apart", NULL, "neither a bias nor a row"},
        {"Concat", "y y", "axis=2", "axis: expected the second one"},
        {"ReduceMean", "y", "axes=2,2", "expected a mean over"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph =
            graph_of(with_node(bad[i].op, bad[i].in, bad[i].attributes), "", &error);
        if (graph)
            fail_msg("%s was taken", bad[i].op);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        if (!strstr(error->message, bad[i].named))
            fail_msg("%s: expected '%s'", error->message, bad[i].named);
    }
    g_autoptr(GError) error = NULL;
    assert_null(graph_of(onnx_groups(), "seq=9", &error));
    assert_error(error, KILTER_ERROR_INPUT, "seq: the file leaves no length open");
    /* a constant that nothing reads is read, too */
    static const char *const WEIGHT[][2] = {
        {"deep:1x1x1x1x1x1x1x1x1x1x1x1x1", "'deep' has 13 dims, expected at most"},
        {"wide:3000000000x1", "'wide': expected sizes up to"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(WEIGHT); i++) {
        g_autoptr(GError) why = NULL;
        GByteArray *graph = g_byte_array_new();
        onnx_end(graph, 11, 1, "x:4x6x6");
        onnx_weight(graph, "w:6x6");
        onnx_weight(graph, WEIGHT[i][0]);
        onnx_node(graph, "MatMul", "x w", "z", NULL);
        onnx_end(graph, 12, 1, "z:4x6x6");
        assert_null(graph_of(onnx_model(graph), "", &why));
        assert_error(why, KILTER_ERROR_INPUT, WEIGHT[i][1]);
    }
}

/* A chain of elementwise ops is recognized by its values; hard swish is not in the table and is
 * reported. */
static void test_facts(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = file_path();
    GByteArray *bytes = with_node("HardSwish", "y", NULL);
    g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL);
    g_byte_array_unref(bytes);
    g_autofree char *text = model_file_facts(path, &error);
    g_unlink(path);
    assert_no_error(error);
    json_t *facts = json_loads(text, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(facts, "approximated"), "HardSwish")),
                     1);
    assert_int_equal(json_integer_value(json_object_get(facts, "external_tensors")), 3);
    assert_int_equal(json_integer_value(json_object_get(facts, "float_parameters")),
                     36 + 42 + 6);
    json_decref(facts);
    assert_null(model_file_facts("vgg19", &error));
    assert_no_error(error);
}

/* A small file with a large meaning: tensors of 2^30 elements, and thousands of nodes that would
 * fold them. */
static void test_large_meaning(void **state)
{
    (void)state;
    GByteArray *nodes = g_byte_array_new();
    onnx_end(nodes, 11, 1, "x:0x1000000x1000000x1000000");
    onnx_list(nodes, "shape:30000,30000,1,1");
    onnx_list(nodes, "small:1000,1000");
    onnx_node(nodes, "ConstantOfShape", "shape", "c.0", NULL);
    onnx_node(nodes, "ConstantOfShape", "small", "s.0", NULL);
    for (uint32_t i = 0; i < 2000; i++) {
        g_autofree char *in = g_strdup_printf("c.%u c.%u", i, i);
        g_autofree char *out = g_strdup_printf("c.%u", i + 1);
        g_autofree char *from = g_strdup_printf("s.%u s.%u", i, i);
        g_autofree char *to = g_strdup_printf("s.%u", i + 1);
        onnx_node(nodes, "Add", in, out, NULL);
        onnx_node(nodes, "Add", from, to, NULL);
    }
    onnx_node(nodes, "Concat", "x c.2000", "y", "axis=1");
    onnx_end(nodes, 12, 1, "y:1");
    g_autoptr(GError) error = NULL;
    const gint64 started = g_get_monotonic_time();
    assert_null(graph_of(onnx_model(nodes), "", &error));
    assert_int_equal(error->code, KILTER_ERROR_INPUT);
    assert_at_most(1e-6 * (double)(g_get_monotonic_time() - started), 20);
}

/* "Conv=5;Relu=7" of an object, in its order. */
static char *counts_text(const json_t *counts)
{
    GString *text = g_string_new("");
    g_autoptr(GList) names = NULL;
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)counts, name, value)
        names = g_list_insert_sorted(names, (char *)name, (GCompareFunc)strcmp);
    for (GList *at = names; at; at = at->next)
        g_string_append_printf(
            text, "%s%s=%d", text->len ? ";" : "", (const char *)at->data,
            (int)json_integer_value(json_object_get(counts, at->data)));
    return g_string_free(text, false);
}

/* A fact as expected.csv writes it. */
static char *fact_text(const json_t *value)
{
    GString *text = g_string_new("");
    if (json_is_object(value)) {
        g_string_free(text, true);
        return counts_text(value);
    }
    if (json_is_integer(value))
        g_string_printf(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        g_string_append_printf(text, "%s%s", i ? ";" : "",
                               json_string_value(json_array_get(value, i)));
    return g_string_free(text, false);
}

static gboolean check_sample(void *file, void *facts, void *data)
{
    static const char *const known[] = {"nodes",
                                        "ops",
                                        "opset",
                                        "ir_version",
                                        "inputs",
                                        "outputs",
                                        "float_parameters",
                                        "value_infos",
                                        "external_tensors",
                                        NULL};
    const GPtrArray *expected = facts;
    g_autofree char *relative = g_strdup_printf("samples/%s", (char *)file);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = model_file_facts(test_shared(relative), &error);
    assert_no_error(error);
    json_t *got = json_loads(text, 0, NULL);
    for (guint i = 0; i < expected->len; i++) {
        const Expected *fact = expected->pdata[i];
        if (!g_strv_contains(known, fact->fact))
            continue;
        g_autofree char *value = fact_text(json_object_get(got, fact->fact));
        if (strcmp(value, fact->value) != 0)
            fail_msg("%s: %s is %s, expected %s", (char *)file, fact->fact, value,
                     fact->value);
        ++*(uint32_t *)data;
    }
    json_decref(got);
    return false;
}

/* Every fact of every sample; parameters where PyTorch's number is known and nothing was folded. */
static void test_samples(void **state)
{
    (void)state;
    GTree *files = expected_of("onnx");
    uint32_t n = 0;
    if (!files)
        skip();
    g_tree_foreach(files, check_sample, &n);
    assert_true(n > 80);
    g_tree_unref(files);
    static const struct {
        const char *file;
        uint64_t parameters;
    } known[] = {{"light_vgg19", 143667240},
                 {"light_resnet50", 25557032},
                 {"torch13_gpt2layers", 230144}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *relative =
            g_strdup_printf("samples/onnx/%s.onnx", known[i].file);
        GError *error = NULL;
        g_autoptr(Graph) graph = model_build(test_shared(relative), 1, NULL, &error);
        assert_no_error(error);
        assert_int_equal(graph_parameter_count(graph), known[i].parameters);
    }
}
#else
/* Without protobuf-c the message names it. */
static void test_missing(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(graph_of(onnx_groups(), "", &error));
    assert_error(error, KILTER_ERROR_FAILED, "no protobuf-c");
    (void)ops_of;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef KILTER_PROTOBUF_C
        cmocka_unit_test(test_gpt2),     cmocka_unit_test(test_fused),
        cmocka_unit_test(test_groups),   cmocka_unit_test(test_content),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_facts),
        cmocka_unit_test(test_samples),  cmocka_unit_test(test_large_meaning),
#else
        cmocka_unit_test(test_missing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
