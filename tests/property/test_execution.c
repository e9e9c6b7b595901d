/* Execution traces: a plan's traces take as long as the plan, files are read back as written, and
 * damaged files are refused. */
#include <math.h>

#include "sim/flow/execution.h"
#include "sim/sim.h"
#include "tests/support/damage.h"
#include "tests/support/memory_file.h"
#include "tests/support/plan_of.h"
#include "tests/support/random_case.h"

enum { CASES = 60, MUTANTS = 4000 };

#ifdef KILTER_PROTOBUF_C

/* The trace in a file of these bytes. */
static Trace *trace_of(const void *bytes, gsize length, GError **error)
{
    int memory;
    g_autofree char *file = memory_file_open(bytes, length, &memory);
    Trace *trace = trace_read(file, error);
    close(memory);
    return trace;
}

static void check_round_trip(const Trace *trace)
{
    g_autoptr(GError) error = NULL;
    gsize length, again;
    g_autoptr(GBytes) bytes = trace_write(trace, &error);
    assert_no_error(error);
    const void *data = g_bytes_get_data(bytes, &length);
    g_autoptr(Trace) read = trace_of(data, length, &error);
    assert_no_error(error);
    assert_int_equal(read->node->len, trace->node->len);
    assert_int_equal(read->n_dangling, 0);
    g_autoptr(GBytes) written = trace_write(read, &error);
    const void *more = g_bytes_get_data(written, &again);
    assert_int_equal(length, again);
    assert_memory_equal(data, more, length);
}

/* The number of lines of GOAL of a kind. strstr is not used: under clang's address sanitizer, each
 * call measures all of the rest. */
static uint32_t count_lines(const char *text, const char *kind)
{
    uint32_t n = 0;
    for (; *text; text++)
        n += *text == ':' && g_str_has_prefix(text, kind);
    return n;
}

/* Every send has its receive. */
static void check_goal(const GPtrArray *traces)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = goal_write(traces, &error);
    assert_no_error(error);
    assert_int_equal(count_lines(text, ": send "), count_lines(text, ": recv "));
}

static double run_s(const GPtrArray *traces, const ClusterView *view,
                    const SimOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimExecutionReport) report =
        sim_execution_run(traces, NULL, view, options, &error);
    assert_no_error(error);
    return report->time_s;
}

/* The traces of a plan with even shares take as long as by `flow`, since their nodes are its tasks.
 * With uneven shards, padded collectives have the bytes of another algorithm on some links, and
 * messages in rounds do not wait for the slowest of a round. */
static void check_case(const RandomCase *c, const Plan *plan, uint32_t *n_even)
{
    SimOptions options;
    sim_options_init(&options);
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) flow =
        sim_evaluate_with(plan, c->graph, c->view, "flow", &options, &error);
    assert_no_error(error);
    g_autofree char *groups = NULL;
    g_autoptr(SimExecution) execution =
        sim_execution_new(plan, c->graph, c->view, &options, &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) traces = sim_execution_traces(execution, false, &groups, &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) messages = sim_execution_traces(execution, true, NULL, &error);
    assert_no_error(error);
    for (uint32_t r = 0; r < traces->len; r++) {
        check_round_trip(traces->pdata[r]);
        check_round_trip(messages->pdata[r]);
    }
    check_goal(messages);
    const double padded_s = run_s(traces, c->view, &options);
    assert_true(run_s(messages, c->view, &options) > 0);
    bool even = true;
    for (uint32_t s = 0; s < plan->n_splits; s++)
        for (uint32_t j = 1; j < plan->n_devices; j++)
            even = even && plan->split[s].count[j] == plan->split[s].count[0];
    *n_even += even;
    assert_close(padded_s, flow->iteration_time_s, even ? 1e-4 : 0.1);
}

/* Chakra has only one kind of all-gather and of reduce-scatter. */
static Program *without_grouped(const Program *program)
{
    Program *plain = program_copy(program);
    for (uint32_t i = 0; i < plain->n; i++) {
        Instr *instr = &plain->instr[i];
        if (instr->kind != INSTR_COLLECTIVE)
            continue;
        if (instr->collective == COLLECTIVE_GROUPED_ALL_GATHER)
            instr->collective = COLLECTIVE_ALL_GATHER;
        else if (instr->collective == COLLECTIVE_GROUPED_REDUCE_SCATTER)
            instr->collective = COLLECTIVE_REDUCE_SCATTER;
    }
    return plain;
}

static void test_equals_flow(void **state)
{
    (void)state;
    uint32_t n_even = 0;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(seed);
        g_autoptr(Plan) plan =
            plan_of(c.graph, c.view->n_devices, false, without_grouped(c.plan->program));
        for (uint32_t j = 0; j < c.view->n_devices; j++)
            c.view->device[j].slowdown = 1;
        check_case(&c, plan, &n_even);
        random_case_free(&c);
    }
    assert_in_range(n_even, CASES / 10, CASES);
}

/* --- files that are wrong --- */

/* Nodes of type 4, each with an id and the id that it waits for (0: none), after empty metadata. */
static GByteArray *file_of(const uint8_t (*node)[2], uint32_t n)
{
    GByteArray *bytes = g_byte_array_new();
    g_byte_array_append(bytes, (const uint8_t[]){0}, 1);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t message[] = {6, 0x08, node[i][0], 0x18, 4, 0x28, node[i][1]};
        g_byte_array_append(bytes, message, sizeof message);
    }
    return bytes;
}

static void expect_refusal(const GByteArray *bytes, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_of(bytes->data, bytes->len, &error);
    assert_null(trace);
    assert_error(error, KILTER_ERROR_INPUT, words);
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(GByteArray) cycle =
        file_of((const uint8_t[][2]){{1, 9}, {2, 3}, {3, 2}}, 3);
    expect_refusal(cycle, "waits for itself");
    g_autoptr(GByteArray) twice = file_of((const uint8_t[][2]){{1, 9}, {1, 9}}, 2);
    expect_refusal(twice, "node 1 is there twice");
    g_autoptr(GByteArray) cut = file_of((const uint8_t[][2]){{1, 9}, {2, 1}}, 2);
    g_byte_array_set_size(cut, cut->len - 2);
    expect_refusal(cut, "cut off in a message of 6 bytes");
    g_autoptr(GByteArray) kind = file_of((const uint8_t[][2]){{1, 9}}, 1);
    kind->data[5] = 8;
    expect_refusal(kind, "type 8, expected 1 to 7");
    g_autoptr(GByteArray) long_ = g_byte_array_new();
    g_byte_array_append(long_, (const uint8_t[]){0xff, 0xff, 0xff, 0x7f}, 4);
    expect_refusal(long_, "expected at most");
    g_autoptr(GByteArray) good = file_of((const uint8_t[][2]){{1, 9}, {2, 1}}, 2);
    g_autoptr(Trace) trace = trace_of(good->data, good->len, NULL);
    assert_int_equal(trace->n_dependencies, 2);
    assert_int_equal(trace->n_dangling, 1);
    assert_int_equal(trace_node(trace, 1)->n_deps, 1);
    assert_int_equal(*trace_deps(trace, trace_node(trace, 1)), 0);
}

/* Writers give numbers any type of protocol buffers: field 3 is a double, 5 a float, 15 and 17 are
 * in zigzag, 19 and 25 fixed, 29 is text; a group's name may be a number. */
static void test_attribute_types(void **state)
{
    (void)state;
    static const struct {
        uint8_t n, value[10]; /* the field and its content */
    } form[] = {
        {9, {3 << 3 | 1, 0, 0, 0, 0, 0, 0, 0x1c, 0x40}},
        {5, {5 << 3 | 5, 0, 0, 0xe0, 0x40}},
        {2, {7 << 3, 7}},
        {2, {9 << 3, 7}},
        {2, {11 << 3, 7}},
        {2, {13 << 3, 7}},
        {2, {15 << 3, 14}},
        {3, {0x88, 1, 14}},
        {6, {0x9d, 1, 7, 0, 0, 0}},
        {10, {0xc9, 1, 7, 0, 0, 0, 0, 0, 0, 0}},
        {4, {0xea, 1, 1, '7'}},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(form); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autoptr(GByteArray) node = g_byte_array_new();
        static const char *const name[] = {"comm_size", "pg_name"};
        const uint8_t n = form[i].n;
        g_byte_array_append(node, (const uint8_t[]){1 << 3, 5, 3 << 3, 7}, 4);
        for (uint32_t k = 0; k < 2; k++) {
            const uint8_t length = (uint8_t)strlen(name[k]);
            const uint8_t head[] = {10 << 3 | 2, (uint8_t)(length + 2 + n), 1 << 3 | 2,
                                    length};
            g_byte_array_append(node, head, sizeof head);
            g_byte_array_append(node, (const uint8_t *)name[k], length);
            g_byte_array_append(node, form[i].value, n);
        }
        g_byte_array_append(bytes, (const uint8_t[]){0, (uint8_t)node->len}, 2);
        g_byte_array_append(bytes, node->data, node->len);
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_of(bytes->data, bytes->len, &error);
        assert_no_error(error);
        assert_int_equal(trace_node(trace, 0)->bytes, 7);
        assert_string_equal(trace_node(trace, 0)->group, "7");
    }
}

/* Damaged files are refused with a message, or are traces that can be written and read. */
static void test_mutants(void **state)
{
    (void)state;
    RandomCase c = random_case_new(3);
    SimOptions options;
    sim_options_init(&options);
    g_autoptr(SimExecution) execution =
        sim_execution_new(c.plan, c.graph, c.view, &options, NULL);
    g_autoptr(GPtrArray) traces = sim_execution_traces(execution, false, NULL, NULL);
    g_autoptr(GBytes) bytes = trace_write(traces->pdata[0], NULL);
    gsize length;
    const char *whole = g_bytes_get_data(bytes, &length);
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    uint32_t n_refused = 0;
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GString) text = g_string_new_len(whole, (gssize)length);
        for (gint32 d = g_rand_int_range(rand, 1, 4); d > 0; d--)
            damage_text(text, rand, (const char *const[]){"\x08", "\x12\x01", "\xff"}, 3);
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_of(text->str, text->len, &error);
        assert_true((trace != NULL) == (error == NULL));
        n_refused += !trace;
        if (trace)
            assert_true(trace->n_dependencies >= trace->dep->len);
    }
    assert_in_range(n_refused, MUTANTS / 2, MUTANTS - 1);
    random_case_free(&c);
}

#endif

/* Adds the k-th collective of a group to the traces of its ranks, but for `absent`. */
static void add_collective(const GPtrArray *traces, const char *group,
                           const GArray *ranks, uint32_t absent)
{
    for (guint i = 0; i < ranks->len; i++) {
        const uint32_t rank = g_array_index(ranks, uint32_t, i);
        if (rank == absent)
            continue;
        Trace *trace = traces->pdata[rank];
        trace_add(trace, &(TraceNode){.kind = TRACE_COLLECTIVE,
                                      .name = "c",
                                      .group = group,
                                      .collective = TRACE_COMM_ALL_REDUCE,
                                      .bytes = 1024});
        if (trace->node->len > 1)
            trace_wait(trace, trace->node->len - 2);
    }
}

/* A collective ends only with all ranks of its group: without one of them the traces are
 * refused, with its name. */
static void test_absent(void **state)
{
    (void)state;
    enum { RANKS = 6, RUNS = 200 };
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        cluster_load("star:hosts=6,bandwidth=1GB/s,latency=1us", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    SimOptions options;
    sim_options_init(&options);
    for (uint32_t run = 0; run < RUNS; run++) {
        g_autoptr(GPtrArray) traces =
            g_ptr_array_new_with_free_func((GDestroyNotify)trace_free);
        g_autoptr(GHashTable) groups = g_hash_table_new_full(
            g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
        for (uint32_t r = 0; r < RANKS; r++)
            g_ptr_array_add(traces, trace_new());
        for (uint32_t g = 1; g < 4; g++) { /* some ranks, at least two */
            GArray *ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
            for (uint32_t r = 0; r < RANKS; r++)
                if (r < 2 || g_rand_boolean(rand))
                    g_array_append_val(ranks, r);
            g_hash_table_insert(groups, g_strdup_printf("%u", g), ranks);
        }
        const uint32_t n = (uint32_t)g_rand_int_range(rand, 1, 8),
                       gone =
                           run % 4 ? (uint32_t)g_rand_int_range(rand, 0, (gint32)n) : n;
        g_autofree char *expected = NULL;
        for (uint32_t c = 0; c < n; c++) {
            g_autofree char *name = g_strdup_printf("%d", g_rand_int_range(rand, 1, 4));
            const GArray *ranks = g_hash_table_lookup(groups, name);
            const uint32_t absent =
                c == gone ? g_array_index(ranks, uint32_t,
                                          g_rand_int_range(rand, 0, (gint32)ranks->len))
                          : UINT32_MAX;
            if (c == gone)
                expected =
                    g_strdup_printf("rank %u of group %s never comes", absent, name);
            add_collective(traces, name, ranks, absent);
        }
        GError *failure = NULL;
        g_autoptr(SimExecutionReport) report =
            sim_execution_run(traces, groups, view, &options, &failure);
        assert_true(!report == !!failure && !failure == !expected);
        if (failure &&
            n == gone + 1) /* with further ones, another collective may lack it first */
            assert_error(failure, KILTER_ERROR_INPUT, expected);
        else if (failure)
            assert_error(failure, KILTER_ERROR_INPUT, "never comes to the ALL_REDUCE");
        g_clear_error(&failure);
    }
}

/* A group with a rank that has no trace, and a rank that is not in its group. */
static void test_groups(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank[2];
        const char *message;
    } WRONG[] = {
        {{0, 5}, "group 1 has rank 5, of which there is no trace"},
        {{1, 2}, "rank 0: node 1 is a collective of group 1, in which this rank"}};
    g_autoptr(Cluster) cluster =
        cluster_load("star:hosts=3,bandwidth=1GB/s,latency=1us", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    SimOptions options;
    sim_options_init(&options);
    for (size_t i = 0; i < G_N_ELEMENTS(WRONG); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) traces =
            g_ptr_array_new_with_free_func((GDestroyNotify)trace_free);
        g_autoptr(GHashTable) groups = g_hash_table_new_full(
            g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
        GArray *listed = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
               *all = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_array_append_vals(listed, WRONG[i].rank, 2);
        g_hash_table_insert(groups, g_strdup("1"), listed);
        for (uint32_t r = 0; r < 3; r++) {
            g_ptr_array_add(traces, trace_new());
            g_array_append_val(all, r);
        }
        add_collective(traces, "1", all, UINT32_MAX);
        g_array_unref(all);
        assert_null(sim_execution_run(traces, groups, view, &options, &error));
        assert_error(error, KILTER_ERROR_INPUT, WRONG[i].message);
    }
}

/* Ranks that wait for one another, and a message without a receiver. */
static void test_stuck(void **state)
{
    (void)state;
    RandomCase c = random_case_new(1);
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    g_autoptr(GPtrArray) traces =
        g_ptr_array_new_with_free_func((GDestroyNotify)trace_free);
    g_ptr_array_add(traces, trace_new());
    trace_add(traces->pdata[0],
              &(TraceNode){.kind = TRACE_RECEIVE, .name = "lost", .from = 1});
    assert_null(sim_execution_run(traces, NULL, c.view, &options, &error));
    assert_error(error, KILTER_ERROR_INPUT, "communicates with rank 1, expected another");
    g_clear_error(&error);
    g_ptr_array_add(traces, trace_new());
    assert_true(c.view->n_devices > 1);
    assert_null(sim_execution_run(traces, NULL, c.view, &options, &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "rank 0 waits in node 1 (lost) for a message of rank 1");
    random_case_free(&c);
}

int main(void)
{
#ifdef KILTER_PROTOBUF_C
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_flow),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_attribute_types), cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_stuck),           cmocka_unit_test(test_absent),
        cmocka_unit_test(test_groups),
    };
#else
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stuck),
                                       cmocka_unit_test(test_absent),
                                       cmocka_unit_test(test_groups)};
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
