/* Programs of torch.export (.pt2): archives of both layouts, and the graphs that they become. */
#include <jansson.h>

#include "tests/support/onnx_graph.h"

/* --- files --- */

typedef enum {
    OLD,
    NEW,
    PACKED,
    WIDE
} Layout; /* WIDE: with the numbers of 64 bits of large archives */

static void put(GByteArray *to, guint64 value, guint n)
{
    for (guint i = 0; i < n; i++)
        g_byte_array_append(to, &(guint8){i < 8 ? (guint8)(value >> 8 * i) : 0}, 1);
}

static void add_entry(GByteArray *to, guint32 signature, const char *name, Layout layout,
                      const gsize *size, guint64 at)
{
    const bool central = signature == 0x02014b50, wide = central && layout == WIDE;
    put(to, signature, 4);
    put(to, central ? 20 : 0, central ? 2 : 0);
    put(to, 20, 2);
    put(to, 0, 2);
    put(to, layout == PACKED ? 8 : 0, 2);
    put(to, 0, 8);
    put(to, wide ? 0xffffffff : size[1], 4);
    put(to, wide ? 0xffffffff : size[0], 4);
    put(to, strlen(name), 2);
    put(to, wide ? 28 : 0, 2);
    if (central) {
        put(to, 0, 10);
        put(to, wide ? 0xffffffff : at, 4);
    }
    g_byte_array_append(to, (const guint8 *)name, (guint)strlen(name));
    if (wide) {
        put(to, 1, 2);
        put(to, 24, 2);
        put(to, size[0], 8);
        put(to, size[1], 8);
        put(to, at, 8);
    }
}

/* An archive of weights of no meaning and the program. */
static GByteArray *archive(const char *json, Layout layout)
{
    const char *const name[] = {"weights/weight_0",
                                layout == NEW || layout == WIDE
                                    ? "net/models/model.json"
                                    : "serialized_exported_program.json"};
    const char *const content[] = {"0123", json};
    GByteArray *zip = g_byte_array_new();
    g_autoptr(GByteArray) directory = g_byte_array_new();
    for (guint i = 0; i < 2; i++) {
        const gsize size[2] = {strlen(content[i]), strlen(content[i])};
        add_entry(directory, 0x02014b50, name[i], layout, size, zip->len);
        add_entry(zip, 0x04034b50, name[i], layout, size, 0);
        g_byte_array_append(zip, (const guint8 *)content[i], (guint)size[1]);
    }
    const guint64 at = zip->len;
    g_byte_array_append(zip, directory->data, directory->len);
    if (layout == WIDE) {
        const guint64 end = zip->len;
        put(zip, 0x06064b50, 4);
        put(zip, 44, 8);
        put(zip, 0, 12);
        put(zip, 2, 8);
        put(zip, 2, 8);
        put(zip, directory->len, 8);
        put(zip, at, 8);
        put(zip, 0x07064b50, 4);
        put(zip, 0, 4);
        put(zip, end, 8);
        put(zip, 1, 4);
    }
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, layout == WIDE ? 0xffff : 2, 2);
    put(zip, layout == WIDE ? 0xffff : 2, 2);
    put(zip, directory->len, 4);
    put(zip, layout == WIDE ? 0xffffffff : at, 4);
    put(zip, 0, 2);
    return zip;
}

/* --- programs --- */

typedef struct {
    json_t *nodes, *values, *in, *out;
} Exported;

static Exported exported_new(void)
{
    return (Exported){json_array(), json_object(), json_array(), json_array()};
}

/* "y:2x5x24", with letters for open sizes: its sizes are stated. Returns the name; caller frees. */
static char *state(Exported *p, const char *text, int dtype)
{
    char **part = g_strsplit(text, ":", 2), *name = g_strdup(part[0]);
    json_t *sizes = json_array();
    g_auto(GStrv) dim = g_strsplit(part[1] ? part[1] : "", "x", -1);
    for (guint i = 0; dim[i]; i++)
        json_array_append_new(
            sizes, g_ascii_isdigit(*dim[i])
                       ? json_pack("{s:i}", "as_int", atoi(dim[i]))
                       : json_pack("{s:{s:s}}", "as_expr", "expr_str", dim[i]));
    if (part[1])
        json_object_set_new(p->values, name,
                            json_pack("{s:i, s:o}", "dtype", dtype, "sizes", sizes));
    else
        json_decref(sizes);
    g_strfreev(part);
    return name;
}

static void feed(Exported *p, const char *text, int dtype)
{
    g_autofree char *name = state(p, text, dtype);
    json_array_append_new(p->in, json_pack("{s:{s:{s:{s:s}}}}", "user_input", "arg",
                                           "as_tensor", "name", name));
}

/* A weight, which is "p_NAME" in the graph. */
static void weigh(Exported *p, const char *text)
{
    g_autofree char *in_graph = g_strconcat("p_", text, NULL),
                    *own = g_strndup(text, strcspn(text, ":")),
                    *name = state(p, in_graph, 7);
    json_array_append_new(p->in, json_pack("{s:{s:{s:s}, s:s}}", "parameter", "arg",
                                           "name", name, "parameter_name", own));
}

/* "3", "[1,2]", "true", "none" and names as arguments. */
static json_t *argument(const char *text)
{
    json_t *list = NULL;
    if (*text == '[' && (list = json_loads(text, 0, NULL)))
        return json_pack("{s:o}", "as_ints", list);
    if (*text == '[') {
        g_autofree char *inner = g_strndup(text + 1, strlen(text) - 2);
        g_auto(GStrv) name = g_strsplit(inner, ",", -1);
        list = json_array();
        for (guint i = 0; name[i]; i++)
            json_array_append_new(list,
                                  g_ascii_isalpha(*name[i])
                                      ? json_pack("{s:s}", "as_name", name[i])
                                      : json_pack("{s:i}", "as_int", atoi(name[i])));
        return json_pack("{s:o}", "as_sym_ints", list);
    }
    if (*text == '(') {
        g_autofree char *inner = g_strndup(text + 1, strlen(text) - 2);
        g_auto(GStrv) name = g_strsplit(inner, ",", -1);
        list = json_array();
        for (guint i = 0; name[i]; i++)
            json_array_append_new(list, json_pack("{s:s}", "name", name[i]));
        return json_pack("{s:o}", "as_tensors", list);
    }
    if (strcmp(text, "none") == 0)
        return json_pack("{s:b}", "as_none", 1);
    if (strcmp(text, "true") == 0)
        return json_pack("{s:b}", "as_bool", 1);
    if (g_ascii_isdigit(*text) && strchr(text, '.'))
        return json_pack("{s:f}", "as_float", g_ascii_strtod(text, NULL));
    return g_ascii_isdigit(*text) || *text == '-'
               ? json_pack("{s:i}", "as_int", atoi(text))
               : json_pack("{s:{s:s}}", "as_tensor", "name", text);
}

/* Adds a node. It makes "y:2x3" a tensor, "$n" a size, "(a,b)" a list. */
static void node(Exported *p, const char *target, const char *args, const char *made)
{
    g_auto(GStrv) pair = g_strsplit(args, " ", -1);
    json_t *inputs = json_array(), *out;
    for (guint i = 0; pair[i]; i++) {
        g_auto(GStrv) part = g_strsplit(pair[i], "=", 2);
        json_t *arg = *part[1] == '$'
                          ? json_pack("{s:{s:s}}", "as_sym_int", "as_name", part[1] + 1)
                          : argument(part[1]);
        json_array_append_new(inputs,
                              json_pack("{s:s, s:o}", "name", part[0], "arg", arg));
    }
    g_autofree char *name = state(p, made, 7),
                    *full = *target == '_' ? g_strdup(target)
                                           : g_strconcat("torch.ops.", target, NULL);
    out = *made == '$'   ? json_pack("{s:{s:s}}", "as_sym_int", "as_name", made + 1)
          : *made == '(' ? argument(made)
                         : json_pack("{s:{s:s}}", "as_tensor", "name", name);
    json_array_append_new(p->nodes,
                          json_pack("{s:s, s:o, s:[o], s:{}}", "target", full, "inputs",
                                    inputs, "outputs", out, "metadata"));
}

static void give(Exported *p, const char *name)
{
    json_array_append_new(p->out, json_pack("{s:{s:{s:{s:s}}}}", "user_output", "arg",
                                            "as_tensor", "name", name));
}

static char *program_text(Exported *p)
{
    json_t *root = json_pack("{s:{s:{s:o, s:o}, s:{s:o, s:o}}, s:{s:i, s:i}}",
                             "graph_module", "graph", "nodes", p->nodes, "tensor_values",
                             p->values, "signature", "input_specs", p->in, "output_specs",
                             p->out, "schema_version", "major", 8, "minor", 8);
    char *text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

static Graph *read_bytes(GByteArray *bytes, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-torch-%d.pt2", g_get_tmp_dir(), (int)getpid());
    g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL);
    g_byte_array_unref(bytes);
    Graph *graph = model_build(path, 2, NULL, error);
    g_unlink(path);
    return graph;
}

static Graph *read_program(Exported *p, Layout layout)
{
    GError *error = NULL;
    char *text = program_text(p);
    Graph *graph = read_bytes(archive(text, layout), &error);
    free(text);
    assert_no_error(error);
    return graph;
}

/* --- tests --- */

/* Attention of two heads of 4 over 5 tokens, whose projections have biases. With `open` samples and
 * tokens are symbols. */
static Exported attention(bool open)
{
    Exported p = exported_new();
    const char *rows = open ? "[b,s,2,4]" : "[2,5,2,4]";
    feed(&p, open ? "x:sxtx24" : "x:2x5x24", 7);
    if (open) {
        node(&p, "aten.sym_size.int", "self=x dim=0", "$b");
        node(&p, "aten.sym_size.int", "self=x dim=1", "$s");
    }
    for (const char *n = "qkv"; *n; n++) {
        const char c = *n;
        g_autofree char *w = g_strdup_printf("w%c:8x24", c),
                        *bias = g_strdup_printf("b%c:8", c),
                        *args = g_strdup_printf("input=x weight=p_w%c bias=p_b%c", c, c),
                        *flat = g_strdup_printf("flat%c:2x5x8", c),
                        *apart = g_strdup_printf("apart%c:2x5x2x4", c),
                        *heads = g_strdup_printf("%c:2x2x5x4", c),
                        *turn = g_strdup_printf("self=apart%c dim0=1 dim1=-2", c),
                        *view = g_strdup_printf("self=flat%c size=%s", c, rows);
        weigh(&p, w);
        weigh(&p, bias);
        node(&p, "aten.linear.default", args, flat);
        node(&p, "aten.view.default", view, apart);
        node(&p, "aten.transpose.int", turn, heads);
    }
    node(&p, "aten.scaled_dot_product_attention.default",
         "query=q key=k value=v attn_mask=none dropout_p=0.0 is_causal=true",
         "a:2x2x5x4");
    node(&p, "aten.transpose.int", "self=a dim0=1 dim1=2", "back:2x5x2x4");
    node(&p, "aten.flatten.using_ints", "self=back start_dim=2", "flat:2x5x8");
    weigh(&p, "wo:24x8");
    node(&p, "aten.linear.default", "input=flat weight=p_wo", "y:2x5x24");
    node(&p, "aten.add_.Tensor", "self=y other=x", "z:2x5x24");
    give(&p, "z");
    return p;
}

/* The same net as an ONNX file. */
static Graph *onnx_attention(void)
{
    GByteArray *graph = g_byte_array_new();
    onnx_end(graph, 11, 1, "x:2x5x24");
    onnx_list(graph, "heads:2,5,2,4");
    onnx_list(graph, "merged:2,5,8");
    double hidden[25];
    for (guint i = 0; i < 25; i++)
        hidden[i] = i % 5 > i / 5 ? -1e9 : 0;
    onnx_tensor(graph, 1, "mask:5x5", false, 25, hidden);
    for (const char *n = "qkv"; *n; n++) {
        const char c = *n;
        g_autofree char *w = g_strdup_printf("w%c:24x8", c),
                        *bias = g_strdup_printf("b%c:8", c),
                        *in = g_strdup_printf("x w%c", c), *p = g_strdup_printf("p%c", c),
                        *sum = g_strdup_printf("p%c b%c", c, c),
                        *flat = g_strdup_printf("flat%c", c),
                        *shape = g_strdup_printf("flat%c heads", c),
                        *apart = g_strdup_printf("apart%c", c),
                        *out = g_strdup_printf("%c", c);
        onnx_weight(graph, w);
        onnx_weight(graph, bias);
        onnx_node(graph, "MatMul", in, p, NULL);
        onnx_node(graph, "Add", sum, flat, NULL);
        onnx_node(graph, "Reshape", shape, apart, NULL);
        onnx_node(graph, "Transpose", apart, out, "perm=0,2,1,3");
    }
    onnx_node(graph, "Transpose", "k", "kt", "perm=0,1,3,2");
    onnx_node(graph, "MatMul", "q kt", "scores", NULL);
    onnx_node(graph, "Add", "scores mask", "masked", NULL);
    onnx_node(graph, "Softmax", "masked", "chances", "axis=-1");
    onnx_node(graph, "MatMul", "chances v", "mixed", NULL);
    onnx_node(graph, "Transpose", "mixed", "back", "perm=0,2,1,3");
    onnx_node(graph, "Reshape", "back merged", "flat", NULL);
    onnx_weight(graph, "wo:8x24");
    onnx_node(graph, "MatMul", "flat wo", "y", NULL);
    onnx_node(graph, "Add", "y x", "z", NULL);
    onnx_end(graph, 12, 1, "z:2x5x24");
    return good(onnx_model(graph));
}

static void check_same(const Graph *a, const Graph *b)
{
    assert_int_equal(graph_n_ops(a), graph_n_ops(b));
    for (OpId id = 0; id < graph_n_ops(a); id++) {
        const Op *x = graph_get_op(a, id), *y = graph_get_op(b, id);
        assert_string_equal(op_kind_name(x->kind), op_kind_name(y->kind));
        assert_int_equal(x->attr.causal, y->attr.causal);
        for (uint32_t d = 0; d < graph_tensor(a, x->out[0])->rank; d++)
            assert_int_equal(graph_tensor(a, x->out[0])->dim[d],
                             graph_tensor(b, y->out[0])->dim[d]);
    }
    assert_int_equal(graph_parameter_count(a), graph_parameter_count(b));
}

/* Whatever the archive's layout, the graph is the one of the ONNX file. */
static void test_layouts(void **unused)
{
    (void)unused;
    for (Layout layout = OLD; layout <= WIDE; layout++) {
        if (layout == PACKED)
            continue;
        Exported p = attention(false);
        g_autoptr(Graph) graph = read_program(&p, layout);
        check_ops(graph, OP_GROUPED_ATTENTION, 0);
        check_ops(graph, OP_ATTENTION, 1);
        assert_int_equal(graph_parameter_count(graph), 4 * 8 * 24 + 3 * 8);
#ifdef KILTER_PROTOBUF_C
        g_autoptr(Graph) other = onnx_attention();
        check_same(graph, other);
#endif
    }
}

static void test_open_sizes(void **unused)
{
    (void)unused;
    Exported p = attention(true);
    g_autoptr(Graph) graph = read_program(&p, NEW);
    uint32_t n;
    const Op *op = find_op(graph, OP_ATTENTION, &n);
    assert_int_equal(n, 1);
    assert_int_equal(graph_tensor(graph, op->in[0])->dim[1], 512);
}

/* Convolutions, running sums that are counted in place, pools, splits and joints. */
static void test_images(void **unused)
{
    (void)unused;
    Exported p = exported_new();
    feed(&p, "x:2x3x8x8", 7);
    weigh(&p, "conv.weight:4x3x3x3");
    weigh(&p, "bn.weight:4");
    weigh(&p, "bn.bias:4");
    weigh(&p, "head.weight:5x4");
    node(&p, "aten.conv2d.default",
         "input=x weight=p_conv.weight bias=none stride=[1,1] padding=[1,1]",
         "c:2x4x8x8");
    node(&p, "aten.batch_norm.default",
         "input=c weight=p_bn.weight bias=p_bn.bias running_mean=p_bn.bias "
         "running_var=p_bn.bias",
         "n:2x4x8x8");
    node(&p, "aten.relu_.default", "self=n", "r:2x4x8x8");
    node(&p, "aten.max_pool2d.default", "self=r kernel_size=[2,2]", "m:2x4x4x4");
    node(&p, "aten.adaptive_avg_pool2d.default", "self=m output_size=[1,1]", "g:2x4x1x1");
    node(&p, "aten.flatten.using_ints", "self=g start_dim=1", "f:2x4");
    node(&p, "aten.linear.default", "input=f weight=p_head.weight", "y:2x5");
    give(&p, "y");
    g_autoptr(Graph) graph = read_program(&p, OLD);
    check_ops(graph, OP_CONV2D, 1);
    check_ops(graph, OP_BATCH_NORM, 1);
    assert_int_equal(graph_parameter_count(graph), 4 * 27 + 2 * 4 + 5 * 4);
}

static void check_refused(GByteArray *bytes, const char *want)
{
    GError *error = NULL;
    assert_null(read_bytes(bytes, &error));
    assert_non_null(error);
    if (!strstr(error->message, want))
        fail_msg("%s, expected %s", error->message, want);
    g_error_free(error);
}

static void test_refusals(void **unused)
{
    (void)unused;
    Exported p = exported_new();
    feed(&p, "x:2x4", 7);
    weigh(&p, "w:4x4");
    node(&p, "aten.cholesky.default", "self=x", "c:2x4");
    node(&p, "aten.linear.default", "input=c weight=p_w", "y:2x4");
    give(&p, "y");
    char *text = program_text(&p);
    check_refused(archive(text, NEW), "aten.cholesky");
    free(text);
    check_refused(archive("{\"graph_module\": 3}", OLD),
                  "expected graph_module.graph of 1 to");
    check_refused(archive("{", OLD), "expected");
    check_refused(archive("{}", PACKED), "expected its graph whole, not packed");
    GByteArray *none = g_byte_array_new();
    put(none, 0x06054b50, 22);
    check_refused(none, "expected an archive of torch.export");
    GByteArray *cut = archive("{}", NEW);
    memset(cut->data, 0, 60);
    check_refused(cut, "expected its graph whole");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_open_sizes),
        cmocka_unit_test(test_images), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
