/* Models built by rows of this file, in place of the bundled table: a row may have neither checks
 * nor parameters of its own. */
#include "data/base/error.h"
#include "data/models/models.h"
#include "tests/test.h"

#define OF_EVERY_MODEL                           \
    {"batch", 2, 1, 1e9, true, NULL, 0},         \
    {                                            \
        "global_batch", 0, 0, 1e9, true, NULL, 0 \
    }

static TensorId plain(Graph *graph, const ModelParams *params)
{
    const uint32_t batch = model_size(params, "global_batch"), width = 8;
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){batch, width});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, &batch);
    graph_layer(graph, "layers.0");
    TensorId w = graph_parameter(graph, "weight", 1, &width);
    x = graph_op(graph, OP_ADD_ROWS, "add", (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    return graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){x, labels},
                    NULL);
}

const ModelEntry MODEL_TABLE[] = {
    {{"plain", "no check, no end"}, plain, NULL, {OF_EVERY_MODEL}, .finish = NULL}};
const uint32_t MODEL_TABLE_SIZE = G_N_ELEMENTS(MODEL_TABLE);
const ModelEntry MODEL_OF_TEXT = {.param = {OF_EVERY_MODEL}};
const ModelEntry MODEL_OF_IMAGES = {.param = {OF_EVERY_MODEL}};
const ModelEntry MODEL_OF_PROFILE = {.param = {OF_EVERY_MODEL}};
const ModelEntry MODEL_OF_ONNX = {.param = {OF_EVERY_MODEL}};

static void test_a_row_without_a_check(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = NULL, *content = NULL;
    g_autoptr(Graph) graph = model_build("plain:batch=3", 4, &canonical, &error);
    assert_no_error(error);
    assert_int_equal(graph_batch(graph), 12);
    assert_string_equal(canonical,
                        "plain:batch=3,global_batch=12,optimizer=adam,precision=single");
    g_autofree char *resolved = model_resolve("plain:batch=3", 4, &content, &error);
    assert_no_error(error);
    assert_string_equal(resolved, canonical);
    assert_null(content);
    assert_true(model_check("plain", &error));
    assert_false(model_check("plain:bitch=3", &error));
    assert_error(error, KILTER_ERROR_INPUT, "batch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_row_without_a_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
