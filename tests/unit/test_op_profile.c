/* Workloads by profile: curves of times and lines below them, the resulting graph, refusals with
 * their messages, the time of an iteration, and the tables of data sets. */
#include <glib/gstdio.h>
#include <jansson.h>

#include "data/data.h"
#include "sim/sim.h"
#include "tests/test.h"

/* --- curves --- */

static double at(uint32_t n, const TimePoint *point, double samples)
{
    const TimeCurve curve = {"x", n, (TimePoint *)point};
    return time_curve_at(&curve, samples);
}

static void test_curves_by_hand(void **state)
{
    (void)state;
    const TimePoint one[] = {{8, 2}}, two[] = {{8, 2}, {16, 3}},
                    falls[] = {{8, 2}, {16, 1}}, steep[] = {{8, 1}, {16, 5}};
    assert_close(at(1, one, 4), 1, 1e-15);
    assert_close(at(1, one, 24), 6, 1e-15);
    assert_close(at(2, two, 12), 2.5, 1e-15);
    assert_close(at(2, two, 0), 1, 1e-15);
    assert_close(at(2, two, 32), 5, 1e-15);
    assert_close(at(2, falls, 0), 2, 1e-15);  /* not above the first */
    assert_close(at(2, falls, 40), 1, 1e-15); /* and never below the last */
    assert_close(at(2, steep, 0), 0, 1e-15);
    assert_close(at(2, steep, 4), 0.5, 1e-15);
}

/* On random curves the line is nowhere above the curve and touches it: no line through a point is
 * higher there. */
static void test_lines_lie_below(void **state)
{
    (void)state;
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (uint32_t round = 0; round < 2000; round++) {
        TimePoint point[5];
        const uint32_t n = (uint32_t)g_rand_int_range(random, 1, 6);
        double samples = 0;
        for (uint32_t i = 0; i < n; i++) {
            samples += g_rand_int_range(random, 1, 20);
            point[i] = (TimePoint){samples, g_rand_double(random)};
        }
        const TimeCurve curve = {"x", n, point};
        const double most = g_rand_int_range(random, 1, 80),
                     where = most * g_rand_double(random);
        const TimeLine line = time_curve_line(&curve, most, where);
        double least = INFINITY;
        assert_true(line.fixed >= 0 && line.slope >= 0);
        for (uint32_t i = 0; i <= 1000; i++) {
            const double x = most * i / 1000;
            const double above = time_curve_at(&curve, x) - line.fixed - line.slope * x;
            assert_true(above > -1e-12);
            least = fmin(least, above);
        }
        for (uint32_t i = 0; i < n; i++)
            if (point[i].samples <= most)
                least = fmin(least, point[i].seconds - line.fixed -
                                        line.slope * point[i].samples);
        assert_true(least < 1e-9);
    }
}

/* --- files --- */

static char *write_file(const char *suffix, const char *text)
{
    g_autofree char *name = g_strdup_printf("kilter-profile-%d%s", (int)getpid(), suffix);
    char *path = g_build_filename(g_get_tmp_dir(), name, NULL);
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    assert_true(g_file_set_contents(path, quoted, -1, NULL));
    return path;
}

static Graph *build(const char *text, const char *list, GError **error)
{
    g_autofree char *path = write_file(".json", text);
    g_autofree char *spec = g_strdup_printf("profile:%s%s", path, list);
    Graph *graph = model_build(spec, 2, NULL, error);
    g_remove(path);
    return graph;
}

#define HEAD "{'format':{'name':'kilter-profile','version':1},'name':'net','batch':4,"
#define BOTH \
    "'forward_s':{'v100':[[4,1],[8,3]],'p100':2},'backward_s':{'v100':2,'p100':4}"

static const char NET[] =
    HEAD "'input_bytes':48,'ops':["
         "{'op':'a','bytes':32,'kept_bytes':64,'parameter_bytes':40," BOTH "},"
         "{'op':'b','in':['a'],'bytes':16," BOTH "},"
         "{'op':'c','in':['a','b','a','b','a','b'],'bytes':16,'layer':'end',"
         "'splittable':false,'parameter_bytes':4," BOTH "}]}";

static const Tensor *named(const Graph *graph, const char *name)
{
    return graph_tensor(graph, graph_find(graph, name));
}

static void test_what_is_built(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = build(NET, "", &error);
    assert_no_error(error);
    assert_int_equal(graph_batch(graph), 8); /* 4 per GPU */
    assert_int_equal(named(graph, "input")->dim[1], 3);
    assert_int_equal(named(graph, "a")->dim[1], 2);
    assert_int_equal(named(graph, "a.1")->dim[1], 4);
    assert_int_equal(named(graph, "a.weights")->dim[0], 10);
    assert_int_equal(named(graph, "b.1")->dim[1], 1); /* kept: as much as it makes */
    assert_int_equal(graph_parameter_count(graph), 11);
    /* The last three of six are joined: four results and the weights are five operands. */
    assert_int_equal(named(graph, "c.join0")->dim[1], 1 + 2 + 1);
    double backward_s = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        const OpTimes *times = graph_op_times(graph, id);
        assert_true(op_kind_is_opaque(op->kind) == (times != NULL));
        if (times && op->pass == PASS_BACKWARD &&
            strcmp(graph_get_op(graph, op->of)->name, "c") == 0)
            backward_s += time_curve_at(op_times_of(times, "p100"), 4);
    }
    assert_close(backward_s, 4, 1e-12);
    const OpId join = named(graph, "c.join0")->producer;
    assert_close(time_curve_at(op_times_of(graph_op_times(graph, join), "v100"), 4), 0,
                 0);
}

/* The profile's model, written as a graph file, is the same model when read. */
static void test_written_as_a_graph(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_file(".json", NET);
    g_autofree char *spec =
        g_strdup_printf("profile:%s:global_batch=6,optimizer=sgd", path);
    g_autofree char *text = model_write(spec, 1, &error);
    assert_no_error(error);
    g_autofree char *again = write_file("-graph.json", text);
    g_autofree char *twice = model_write(again, 1, &error);
    assert_no_error(error);
    assert_string_equal(text, twice);
    assert_non_null(strstr(text, "\"p100\""));
    g_remove(path);
    g_remove(again);
}

static void test_mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *by, *message;
    } wrong[] = {
        {"'version':1", "'version':2", "format: expected version 1"},
        {"'batch':4", "'batch':0", "batch: expected an integer from 1"},
        {"'batch':4,", "", "batch: expected the samples that were measured"},
        {"'batch':4", "'batch':4,'bach':3", "bach: unknown key"},
        {"'input_bytes':48", "'input_bytes':-1", "input_bytes: expected bytes"},
        {"'bytes':32", "'bytes':1e300", "ops[0].bytes: expected bytes"},
        {"'bytes':32,", "", "ops[0].bytes: expected what the op makes"},
        {"'op':'b'", "'op':'a'", "ops[1].op: there is a 'a' already"},
        {"'op':'b'", "'op':'a.grad'", "ops[1].op: 'a.grad' is what a gradient"},
        {"'op':'b'", "'op':'c.join0'", "ops[2].op: there is a 'c.join0' already"},
        {"'in':['a'],", "'in':['z'],",
         "ops[1].in[0]: expected the input or an op before"},
        {"'in':['a'],", "'in':['a.weights'],", "ops[1].in[0]: expected the input"},
        {"'in':['a'],", "'in':[],", "ops[1].in: expected an array"},
        {"'splittable':false", "'splittable':0", "ops[2].splittable: expected true"},
        {"'p100':2}", "'p100':-2}", "ops[0].forward_s: p100: expected seconds"},
        {"[8,3]", "[4,3]",
         "ops[0].forward_s: v100: expected each number of samples once"},
        {"'backward_s':{'v100':2,'p100':4}", "'batch':1", "ops[0].batch: unknown key"},
        {",'backward_s':{'v100':2,'p100':4}", "", "ops[0].backward_s: expected seconds"},
        {"'ops':[", "'ops':[3,", "ops[0].op: expected an object"},
        {"'layer':'end'", "'layer':7", "ops[2].layer: expected a name"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NET);
        assert_true(g_string_replace(text, wrong[i].what, wrong[i].by, 1) == 1);
        if (g_str_has_prefix(wrong[i].by, "'op':'c.join0'"))
            g_string_replace(text, "'a','b','a','b','a','b'", "'a','c.join0','a','a','a'",
                             1);
        g_autoptr(Graph) graph = build(text->str, "", &error);
        assert_null(graph);
        if (!strstr(error->message, wrong[i].message))
            fail_msg("expected '%s', got '%s'", wrong[i].message, error->message);
    }
    g_autoptr(GError) error = NULL;
    assert_null(build(NET, ":precision=bf16", &error));
    assert_non_null(strstr(error->message, "its times were measured in single"));
    g_clear_error(&error);
    assert_null(build(HEAD "'ops':[{'op':'a','bytes':4," BOTH "}]}", "", &error));
    assert_non_null(strstr(error->message, "expected some op with parameter_bytes"));
}

/* --- tables --- */

static Graph *build_tables(const char *ops, const char *edges, GError **error)
{
    g_autofree char *path = write_file("-ops.csv", ops),
                    *other = write_file("-edges.csv", edges);
    g_autofree char *spec = g_strdup_printf("%s:batch=4", path);
    Graph *graph = model_build(spec, 1, NULL, error);
    g_remove(path);
    g_remove(other);
    return graph;
}

/* The sum of the times of all ops of a graph. */
static double all_seconds(const Graph *graph, const char *type, uint32_t samples)
{
    double sum = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpTimes *times = graph_op_times(graph, id);
        sum += times ? time_curve_at(op_times_of(times, type), samples) : 0;
    }
    return sum;
}

#define OPS_HEAD "id,name,pass,t4_ms,memory_bytes,colour\n"

static void test_tables(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    /* Out of order: op 2 reads op 1. */
    g_autoptr(Graph) graph = build_tables(
        OPS_HEAD "2,y,forward,3,0,b\n1,x,forward,1,96,a\n3,x,backward,2,96,a\n"
                 "4,y,backward,5,0,b\n",
        "from,to,transfer_ms,bytes\n1,2,0,32\n4,3,0,32\n", &error);
    assert_no_error(error);
    assert_int_equal(named(graph, "x.1")->dim[1], 2);
    assert_int_equal(named(graph, "x.1.weights")->dim[0], (96 - 32) / 4);
    const OpId x = named(graph, "x.1")->producer;
    assert_close(time_curve_at(op_times_of(graph_op_times(graph, x), "t4"), 4), 1e-3,
                 1e-15);
    /* a loss with backward ops only, next to x and to one another: 3 ms are joined with x */
    g_autoptr(Graph) loss = build_tables(
        OPS_HEAD "1,x,forward,1,4,a\n2,l,backward,2,4,b\n3,m,backward,1,4,c\n",
        "from,to,bytes\n1,2,4\n3,2,4\n", &error);
    assert_no_error(error);
    assert_close(all_seconds(loss, "t4", 4), 4e-3, 1e-15);
    static const struct {
        const char *ops, *edges, *message;
    } wrong[] = {
        {OPS_HEAD "1,x,forward,1,4,a\n1,y,forward,1,4,a\n", "from,to,bytes\n",
         "ops.csv:3: id: expected one of its own"},
        {OPS_HEAD "1,x,backward,1,4,a\n", "from,to,bytes\n",
         "ops.csv:2: colour: expected a forward op of the same colour 'a'"},
        {OPS_HEAD "1,x,sideways,1,4,a\n", "from,to,bytes\n",
         "ops.csv:2: pass: expected forward or backward"},
        {OPS_HEAD "1,x,forward,1,4,a\n", "from,to,bytes\n1,2,3\n",
         "edges.csv:2: to: expected the id of an op"},
        {OPS_HEAD "1,x,forward,1,4,a\n2,y,forward,1,4,a\n",
         "from,to,bytes\n1,2,3\n2,1,3\n", "follows from itself"},
        {"id,pass,memory_bytes,colour\n1,forward,4,a\n", "from,to,bytes\n",
         "expected 1 to 64 columns TYPE_ms"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_clear_error(&error);
        assert_null(build_tables(wrong[i].ops, wrong[i].edges, &error));
        if (!strstr(error->message, wrong[i].message))
            fail_msg("expected '%s', got '%s'", wrong[i].message, error->message);
    }
}

/* Tarnawski et al.'s graphs: all times of the table are in the graph. */
static void test_public_tables(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        double seconds;
    } cases[] = {
        {"reference/tag/graphs/inceptionv3-ops.csv", 0.710738},
        {"reference/tag/graphs/bert24-ops.csv", 0.217813},
        /* less 1.3 ms of ops before all parameters, which have no backward part */
        {"reference/tag/graphs/bert-l3-ops-ops.csv", 0.121670585828}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_shared(cases[i].file);
        if (!path)
            skip();
        g_autoptr(GError) error = NULL;
        g_autofree char *spec = g_strdup_printf("profile:%s:batch=32", path);
        g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
        assert_no_error(error);
        assert_close(all_seconds(graph, "accelerator", 32), cases[i].seconds, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves_by_hand),
        cmocka_unit_test(test_lines_lie_below),
        cmocka_unit_test(test_what_is_built),
        cmocka_unit_test(test_written_as_a_graph),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_public_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
