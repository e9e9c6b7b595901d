/* The theory of a small graph compared with HAP's Fig. 9, written out by hand. */
#include "synth/synth.h"
#include "tests/test.h"

/* x [4, 6] -> linear [8, 6] -> softmax -> loss. */
static Graph *small_graph(void)
{
    Graph *graph = graph_new("small");
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){4, 6});
    const TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){4});
    const TensorId w = graph_parameter(graph, "w", 2, (uint32_t[]){8, 6});
    TensorId y =
        graph_op(graph, OP_LINEAR, "y", (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "p", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){y, labels},
                 NULL);
    graph_differentiate(graph, y, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

static char *triple_line(const Graph *graph, const Triple *triple)
{
    g_autofree char *before = synth_triple_condition(graph, triple, false);
    g_autofree char *instruction = synth_triple_instruction(graph, triple);
    g_autofree char *after = synth_triple_condition(graph, triple, true);
    return g_strjoin(" ", before, instruction, after, NULL);
}

/* Lines whose instruction starts with `start`, as a set; its size is the number of lines if none
 * occurs twice. */
static GHashTable *lines_of(const Graph *graph, const char *start)
{
    g_autoptr(GArray) theory = synth_theory(graph);
    GHashTable *lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < theory->len; i++) {
        const Triple *triple = &g_array_index(theory, Triple, i);
        g_autofree char *instruction = synth_triple_instruction(graph, triple);
        if (g_str_has_prefix(instruction, start))
            assert_true(g_hash_table_add(lines, triple_line(graph, triple)));
    }
    return lines;
}

static void check(const char *start, const char *const *expected, guint n)
{
    g_autoptr(Graph) graph = small_graph();
    g_autoptr(GHashTable) lines = lines_of(graph, start);
    for (guint i = 0; i < n; i++)
        if (!g_hash_table_contains(lines, expected[i]))
            fail_msg("not in the theory: %s", expected[i]);
    assert_int_equal(g_hash_table_size(lines), n);
}

static void loads(void **state)
{
    (void)state;
    const char *const parameter[] = {"{} Parameter() {w|Identity}",
                                     "{} Parameter-Shard(0) {w|Gather(0)}",
                                     "{} Parameter-Shard(1) {w|Gather(1)}"};
    const char *const placeholder[] = {"{} Placeholder() {x|Identity}",
                                       "{} Placeholder-Shard(0) {x|Gather(0)}",
                                       "{} Placeholder-Shard(1) {x|Gather(1)}",
                                       "{} Placeholder() {labels|Identity}",
                                       "{} Placeholder-Shard(0) {labels|Gather(0)}",
                                       "{} Placeholder() {loss.grad|Identity}"};
    check("Parameter", parameter, G_N_ELEMENTS(parameter));
    check("Placeholder", placeholder, G_N_ELEMENTS(placeholder));
}

static void computations(void **state)
{
    (void)state;
    const char *const linear[] = {"{x|Identity, w|Identity} Linear(x, w) {y|Identity}",
                                  "{x|Gather(0), w|Identity} Linear(x, w) {y|Gather(0)}",
                                  "{x|Identity, w|Gather(0)} Linear(x, w) {y|Gather(1)}",
                                  "{x|Gather(1), w|Gather(1)} Linear(x, w) {y|Reduce}",
                                  "{x|Reduce, w|Identity} Linear(x, w) {y|Reduce}",
                                  "{x|Identity, w|Reduce} Linear(x, w) {y|Reduce}"};
    const char *const softmax[] = {"{y|Identity} Log-Softmax(y) {p|Identity}",
                                   "{y|Gather(0)} Log-Softmax(y) {p|Gather(0)}"};
    check("Linear(", linear, G_N_ELEMENTS(linear));
    check("Log-Softmax(", softmax, G_N_ELEMENTS(softmax));
}

static void collectives(void **state)
{
    (void)state;
    const char *const all_reduce[] = {"{y|Reduce} All-Reduce(y) {y|Identity}"};
    const char *const broadcast[] = {
        "{y|Gather(0)} Grouped-Broadcast(y, 0) {y|Identity}",
        "{y|Gather(1)} Grouped-Broadcast(y, 1) {y|Identity}"};
    const char *const scatter[] = {"{y|Reduce} Reduce-Scatter(y, 0) {y|Gather(0)}",
                                   "{y|Reduce} Reduce-Scatter(y, 1) {y|Gather(1)}"};
    const char *const exchange[] = {"{y|Gather(0)} All-To-All(y, 0, 1) {y|Gather(1)}",
                                    "{y|Gather(1)} All-To-All(y, 1, 0) {y|Gather(0)}"};
    check("All-Reduce(y)", all_reduce, G_N_ELEMENTS(all_reduce));
    check("Grouped-Broadcast(y,", broadcast, G_N_ELEMENTS(broadcast));
    check("Reduce-Scatter(y,", scatter, G_N_ELEMENTS(scatter));
    check("All-To-All(y,", exchange, G_N_ELEMENTS(exchange));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads),
        cmocka_unit_test(computations),
        cmocka_unit_test(collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
