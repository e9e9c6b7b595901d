/* Graphs as files: a written graph is read back op for op, and errors name their place. */
#include <glib/gstdio.h>
#include <jansson.h>
#include <unistd.h>

#include "data/data.h"
#include "data/graph/check.h"
#include "data/graph/file.h"
#include "tests/test.h"

static const char *const MODELS[] = {
    "vgg19:global_batch=2",
    "vit:layers=2,precision=mixed",
    "bert-moe:layers=2,optimizer=sgd",
    "gpt2:layers=2",
    "transgan:layers=1,whole_heads=1",
    "synthetic:layers=3",
    "llama:layers=2,precision=mixed-fp32-grads",
    "llama:layers=2,precision=bf16-pure,moments=int8,train=lora:4,target=all",
    "mixtral:layers=1",
    "resnet50:batch=2",
    "tag-inceptionv3:batch=2",
    "tag-transformer:layers=1",
    "tag-bert-small:layers=1",
};

static void same_op(const Graph *a, const Graph *b, OpId id)
{
    const Op *x = graph_get_op(a, id), *y = graph_get_op(b, id);
    assert_string_equal(x->name, y->name);
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->layer, y->layer);
    assert_int_equal(x->n_in, y->n_in);
    assert_memory_equal(x->in, y->in, x->n_in * sizeof *x->in);
    assert_memory_equal(x->out, y->out, x->n_out * sizeof *x->out);
    assert_true(x->seconds == y->seconds);
    assert_true(graph_op_flops(a, id) == graph_op_flops(b, id));
    assert_int_equal(graph_op_class_index(a, id), graph_op_class_index(b, id));
}

static void test_read_is_what_was_written(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODELS); m++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(MODELS[m], 2, NULL, &error);
        assert_no_error(error);
        json_t *json = graph_to_json(graph);
        g_autoptr(Graph) again = graph_from_json("again.json", json, &error);
        assert_no_error(error);
        json_t *twice = graph_to_json(again);
        assert_true(json_equal(json, twice));
        assert_int_equal(graph_n_ops(graph), graph_n_ops(again));
        assert_int_equal(graph_n_tensors(graph), graph_n_tensors(again));
        for (OpId id = 0; id < graph_n_ops(graph); id++)
            same_op(graph, again, id);
        for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
            const Tensor *x = graph_tensor(graph, t), *y = graph_tensor(again, t);
            assert_string_equal(x->name, y->name);
            assert_int_equal(x->dtype, y->dtype);
            assert_memory_equal(x->dim, y->dim, sizeof x->dim);
            assert_memory_equal(x->units, y->units, x->rank * sizeof *x->units);
        }
        json_decref(json);
        json_decref(twice);
    }
}

/* Two linear ops and a loss, of which one text is replaced by another. */
static const char SMALL[] =
    "{'format':{'name':'kilter-graph','version':1},'name':'g','precision':'single',"
    "'optimizer':'adam','nodes':[{'layer':'a'},"
    "{'input':'x','dtype':'f32','shape':[4,6]},{'input':'l','dtype':'i64','shape':[4]},"
    "{'parameter':'w','shape':[5,6]},{'op':'y','kind':'linear','in':['x','w']},"
    "{'op':'s','kind':'log_softmax','in':['y']},"
    "{'op':'loss','kind':'nll_sum','in':['s','l']}]}";

static Graph *read_small(const char *what, const char *by, GError **error)
{
    g_autofree char *json = g_strdelimit(g_strdup(SMALL), "'", '"');
    g_autofree char *from = g_strdelimit(g_strdup(what), "'", '"');
    g_autofree char *to = g_strdelimit(g_strdup(by), "'", '"');
    g_autoptr(GString) text = g_string_new(json);
    assert_true(g_string_replace(text, from, to, 1) == 1);
    json_t *root = json_loads(text->str, 0, NULL);
    assert_non_null(root);
    Graph *graph = graph_from_json("f.json", root, error);
    json_decref(root);
    return graph;
}

static void test_mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *by, *message;
    } wrong[] = {
        {"'version':1", "'version':2", "f.json: format: "},
        {"'single'", "'half'", "f.json: precision: "},
        {"{'layer':'a'}", "{'layr':'a'}", "f.json: nodes[0].op: "},
        {"'dtype':'f32'", "'dtype':'f31'", "f.json: nodes[1].dtype: "},
        {"[4,6]", "[4,0]", "f.json: nodes[1].shape: "},
        {"[4,6]", "[4,7]", "f.json: nodes[4].op: linear: in[1]: expected 7 in dim 1"},
        {"[5,6]", "[2000000000,2000000000]", "f.json: nodes[3].shape: "},
        {"'linear'", "'linear_dx'", "f.json: nodes[4].kind: "},
        {"'linear'", "'linaer'", "f.json: nodes[4].kind: "},
        {"['x','w']", "['x','v']", "f.json: nodes[4].in[1]: "},
        {"['x','w']", "['x']", "f.json: nodes[4].op: linear: in: expected 2 to 3"},
        {"['s','l']", "['s','x']", "f.json: nodes[6].in[1]: expected indices"},
        {"'op':'s'", "'op':'w'", "f.json: nodes[5].op: there is a tensor 'w'"},
        {"'op':'s'", "'op':'s.grad'", "f.json: nodes[5].op: "},
        {"'in':['y']", "'in':['y'],'rate':2", "f.json: nodes[5].rate: "},
        {"'in':['y']", "'in':['y'],'rats':2", "f.json: nodes[5].rats: unknown key"},
        {"{'layer':'a'}", "{'parameter':'u','shape':[3]}",
         "f.json: nodes: the loss does not depend on parameter 'u'"},
        {"{'layer':'a'}", "3", "f.json: nodes[0].: expected an object"},
        {",{'op':'loss','kind':'nll_sum','in':['s','l']}", "", "f.json: nodes[5].kind: "},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = read_small(wrong[i].what, wrong[i].by, &error);
        assert_null(graph);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        if (!g_str_has_prefix(error->message, wrong[i].message))
            fail_msg("expected %s..., got %s", wrong[i].message, error->message);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = read_small("'g'", "'h'", &error);
    assert_no_error(error);
    assert_non_null(graph);
}

/* A plan finds its model with the file and without it. */
static void test_content_stands_for_the_file(void **state)
{
    (void)state;
    g_autofree char *path =
        g_strdup_printf("%s/kilter-graph-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autoptr(GError) error = NULL;
    g_autofree char *text = model_write("vit:layers=1", 1, &error), *content = NULL,
                    *canonical = NULL;
    assert_no_error(error);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    assert_true(model_is_one(path));
    assert_true(model_content(path, &content, &error));
    g_unlink(path);
    g_autoptr(Graph) gone = model_build(path, 1, NULL, &error);
    assert_null(gone);
    g_clear_error(&error);
    g_autoptr(Graph) graph = model_build_from(path, content, 1, &canonical, &error);
    assert_no_error(error);
    assert_string_equal(canonical, path);
    g_autoptr(Graph) built = model_build("vit:layers=1", 1, NULL, &error);
    assert_int_equal(graph_n_ops(graph), graph_n_ops(built));
}

/* Found by damaged ONNX files: a lookup of no rows ended in an assertion. */
static void test_ops_of_no_elements_are_refused(void **state)
{
    (void)state;
    const OpAttr attr = {0};
    const Shape rows = {.rank = 2, .dim = {8, 4}};
    for (uint32_t d = 0; d < 2; d++) {
        Shape index = {.rank = 2, .dim = {3, 5}};
        g_autofree char *right =
            op_check(OP_EMBEDDING, &attr, 2, (Shape[]){index, rows}, NULL);
        assert_null(right);
        index.dim[d] = 0;
        g_autofree char *wrong =
            op_check(OP_EMBEDDING, &attr, 2, (Shape[]){index, rows}, NULL);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, "expected elements"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_is_what_was_written),
        cmocka_unit_test(test_ops_of_no_elements_are_refused),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_content_stands_for_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
