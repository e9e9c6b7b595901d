/* kilter plan --explain. The recorded text, explain_moe.txt, is for a plan made without a search;
 * it may change only with the wording, the strategy's program or the bundled cluster's numbers. */
#include "data/data.h"
#include "experiments/explain/explain.h"
#include "experiments/explain/pattern.h"
#include "tests/support/program_json.h"

#define MOE "bert-moe:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=512,dropout=0"

/* The text from the line of the first layer on, since the lines before it have wall-clock times. */
static char *explained(const Sandbox *box, const char *line)
{
    g_auto(Ran) ran = program_run_good(box, line);
    const char *start = strstr(ran.out, "\nembedding:");
    assert_non_null(start);
    return g_strdup(start + 1);
}

static void test_text(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *want = NULL;
    assert_true(g_file_get_contents(KILTER_HOME "/tests/golden/explain_moe.txt", &want,
                                    NULL, NULL));
    g_autofree char *got =
        explained(box, "plan " MOE " hap-8 -p deepspeed --explain -o p.json");
    assert_string_equal(got, want);
    g_autofree char *file = explained(box, "plan p.json --explain");
    assert_string_equal(file, want);
    program_refuses(box, "plan p.json --explain -p hap", 2, "is a plan already");
}

static json_t *explanation_of(const Sandbox *box, const char *line)
{
    json_t *object = program_json(box, line);
    json_t *explanation = json_incref(json_object_get(object, "explanation"));
    assert_non_null(explanation);
    json_decref(object);
    return explanation;
}

/* Equal layers are one entry; every layer is in one entry; the times of stages add up to the
 * iteration. */
static void test_json(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *explanation = explanation_of(
        box,
        "plan vit:layers=5,hidden=64,heads=4,ffn=128 hap-8 -p dp-cp --explain --json");
    json_t *layers = json_object_get(explanation, "layers");
    assert_int_equal(json_array_size(layers), 3);
    json_t *encoder = json_array_get(layers, 1);
    assert_int_equal(json_array_size(json_object_get(encoder, "names")), 5);
    assert_string_equal(json_string_value(json_object_get(encoder, "pattern")),
                        "data parallel");
    assert_int_equal(json_array_size(json_object_get(explanation, "stages")), 2);
    json_decref(explanation);
}

static const char *pattern_of(const json_t *explanation, const char *name)
{
    size_t i, k;
    const json_t *layer, *other;
    json_array_foreach (json_object_get(explanation, "layers"), i, layer)
        json_array_foreach (json_object_get(layer, "names"), k, other)
            if (strcmp(json_string_value(other), name) == 0)
                return json_string_value(json_object_get(layer, "pattern"));
    return NULL;
}

/* VGG19's convolutions have few parameters and large activations, its classifier the opposite. */
static void test_searched(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *explanation =
        explanation_of(box, "plan --planner hap vgg19 hap-8 --explain --json");
    assert_string_equal(pattern_of(explanation, "features.0.0"), "data parallel");
    assert_string_equal(pattern_of(explanation, "classifier.0"), "column parallel");
    assert_string_equal(pattern_of(explanation, "classifier.1"), "row parallel");
    json_decref(explanation);
}

/* Bytes of all collectives of all layers. */
static double bytes_of(const json_t *explanation)
{
    size_t i, k;
    const json_t *layer, *collective;
    double bytes = 0;
    json_array_foreach (json_object_get(explanation, "layers"), i, layer)
        json_array_foreach (json_object_get(layer, "collectives"), k, collective)
            bytes += json_number_value(json_object_get(collective, "bytes"));
    return bytes;
}

/* Each of two microbatches communicates its half. */
static void test_doubled(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    const char *plan = "plan --planner hap "
                       "bert-sgmoe:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=512 "
                       "hidup-2x8 -p fastmoe --granularity gpu --explain --json";
    g_autofree char *twice = g_strdup_printf("%s --set duplex=on", plan);
    json_t *whole = explanation_of(box, plan), *doubled = explanation_of(box, twice);
    assert_true(bytes_of(whole) > 0);
    assert_close(bytes_of(doubled), bytes_of(whole), 1e-12);
    json_decref(whole);
    json_decref(doubled);
}

/* --- pipelines --- */

#define PIPELINE                                                                   \
    "plan --planner hap gpt2:layers=4,hidden=64,heads=4,ffn=256,seq=64,vocab=512 " \
    "amp-het-cluster "                                                             \
    "--planner amp --granularity gpu --set pp=2 "

static bool has_name(const json_t *list, const char *name)
{
    size_t i;
    const json_t *entry;
    json_array_foreach (list, i, entry) {
        if (strcmp(json_string_value(entry), name) == 0)
            return true;
    }
    return false;
}

/* Stages are those of the pipeline, each is limited by devices of its own, and their times add up
 * to the iteration. */
static void test_pipeline_stages(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *object = program_json(box, PIPELINE "--explain --json");
    const json_t *explanation = json_object_get(object, "explanation"),
                 *stages = json_object_get(explanation, "stages"), *stage, *device;
    size_t i, k;
    double sum_s = 0;
    assert_int_equal(json_array_size(stages), 2);
    json_array_foreach (stages, i, stage) {
        const json_t *devices = json_object_get(stage, "devices");
        assert_int_equal(json_array_size(devices), 8);
        sum_s += json_number_value(json_object_get(stage, "communication_s")) +
                 json_number_value(json_object_get(stage, "computation_s"));
        json_array_foreach (json_object_get(stage, "limited_by"), k, device) {
            assert_true(has_name(devices, json_string_value(device)));
        }
    }
    assert_close(sum_s, json_number_value(json_object_get(object, "iteration_time_s")),
                 1e-9);
    /* Replicas share the batch, and each layer belongs to one stage. */
    const json_t *layer = json_array_get(json_object_get(explanation, "layers"), 1);
    assert_string_equal(json_string_value(json_object_get(layer, "pattern")),
                        "data parallel");
    assert_int_equal(json_array_size(json_object_get(layer, "stages")), 1);
    json_decref(object);
}

/* kilter plan names the same waits of a pipeline as kilter simulate. */
static void test_pipeline_text(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) plan = program_run_good(box, PIPELINE "--explain -o p.json");
    g_auto(Ran) simulated = program_run_good(box, "simulate p.json -f stage --explain");
    const char *words = strstr(simulated.out, "The iteration (");
    assert_non_null(words);
    const char *said = strstr(plan.out, "The iteration (");
    assert_non_null(said);
    assert_string_equal(said, words);
    assert_null(strstr(plan.out, "waits for"));
}

/* --- programs written by hand --- */

enum { BATCH = 16, IN = 8, OUT = 24 };

static Graph *linear_graph(void)
{
    Graph *graph = graph_new("linear");
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){BATCH, IN});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){BATCH});
    TensorId w = graph_parameter(graph, "w", 2, (uint32_t[]){OUT, IN});
    TensorId y =
        graph_op(graph, OP_LINEAR, "y", (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "log_softmax", (OpAttr){0}, 1, &y, NULL);
    TensorId loss = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2,
                             (TensorId[]){y, labels}, NULL);
    graph_differentiate(graph, loss, OPTIMIZER_ADAM);
    graph_seal(graph);
    return graph;
}

/* The rule of the op whose inputs have these forms. */
static void compute(Program *program, const Graph *graph, OpId id, Form first,
                    Form second)
{
    Rule rule[OP_MAX_RULES];
    const Op *op = graph_get_op(graph, id);
    uint32_t n = op_rules(graph, id, rule);
    for (uint32_t i = 0; i < n; i++)
        if (rule[i].form[0] == first && (op->n_in < 2 || rule[i].form[1] == second)) {
            program_compute(program, id, rule[i].form, op->n_in + op->n_out);
            return;
        }
    fail_msg("no such rule of %s", op->name);
}

/* The linear layer y[b,n] = x[b,k] w[n,k] with x, w and y's gradient in these forms, without
 * conversions. */
static void assert_pattern(Form x, Form w, Form rest, Form dy, Form x_again,
                           const char *want)
{
    g_autoptr(Graph) graph = linear_graph();
    g_autoptr(Program) program = program_new();
    TensorId weight = graph_find(graph, "w");
    program_load(program, weight, rest);
    for (OpId o = 0; o < graph_n_ops(graph); o++) {
        const Op *op = graph_get_op(graph, o);
        if (op->kind == OP_LINEAR)
            compute(program, graph, o, x, w);
        if (op->kind == OP_LINEAR_DW)
            compute(program, graph, o, dy, x_again);
    }
    g_autoptr(PatternForms) forms = pattern_forms_new(program, graph);
    uint32_t input = 0;
    OpId linear = graph_tensor(graph, graph_find(graph, "y"))->producer;
    assert_true(pattern_weight(graph, linear, &input));
    assert_int_equal(input, 1);
    g_autofree char *name = pattern_name(forms, linear, input);
    assert_string_equal(name, want);
}

static void test_patterns(void **state)
{
    (void)state;
    const Form whole = FORM_IDENTITY, rows = form_gather(0), columns = form_gather(1);
    assert_pattern(rows, whole, whole, rows, rows, "data parallel");
    assert_pattern(rows, whole, whole, whole, whole, "SFB");
    assert_pattern(rows, whole, rows, rows, rows, "data parallel with ZeRO-3");
    assert_pattern(whole, rows, rows, columns, whole, "column parallel");
    assert_pattern(columns, columns, columns, whole, columns, "row parallel");
    assert_pattern(whole, whole, whole, whole, whole, "replicated");
    assert_pattern(FORM_REDUCE, whole, whole, whole, whole, "partial sums");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_searched),
        cmocka_unit_test(test_doubled),
        cmocka_unit_test(test_pipeline_stages),
        cmocka_unit_test(test_pipeline_text),
        cmocka_unit_test(test_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
