/* Logs of nccl-tests by others: kilter import reads all of them with the facts of the samples'
 * expected.csv, and kilter calibrate fits costs to them. */
#include "data/data.h"
#include "tests/support/costs_text.h"
#include "tests/support/damage.h"
#include "tests/support/expected.h"
#include "tests/support/program_json.h"

#ifdef KILTER_PROTOBUF_C
enum { HAS_PROTOBUF_C = 1 };
#else
enum { HAS_PROTOBUF_C = 0 };
#endif

/* Skips a test of a format whose library is not in the build. */
static void need(bool there, const char *library)
{
    if (there)
        return;
    print_message("built without %s\n", library);
    skip();
}

static gboolean check_log(void *key, void *value, void *data)
{
    const GPtrArray *facts = value;
    g_autofree char *relative = g_strconcat("samples/", (const char *)key, NULL);
    const char *path = test_shared(relative);
    assert_non_null(path);
    g_autofree char *line = g_strdup_printf("import '%s' --json", path);
    json_t *root = program_json(data, line);
    const json_t *json = json_array_get(json_object_get(root, "files"), 0);
    for (guint i = 0; i < facts->len; i++) {
        const Expected *fact = facts->pdata[i];
        const json_t *got = json_object_get(json, fact->fact);
        /* The samples' counts leave out rows of five columns, which all_gather had before version
         * 2.13. */
        const bool old = strcmp(fact->fact, "rows") == 0 && strcmp(fact->value, "0") == 0;
        if (old)
            assert_int_equal(json_integer_value(got), 27);
        else if (json_is_string(got))
            assert_string_equal(json_string_value(got), fact->value);
        else if (strcmp(fact->fact, "trap") != 0)
            assert_close(json_number_value(got), g_ascii_strtod(fact->value, NULL),
                         1e-15);
    }
    assert_close(number(root, "measurements"), number(json, "rows"), 1e-15);
    json_decref(root);
    return FALSE;
}

static void test_nccl_tests(void **state)
{
    (void)state;
    GTree *files = expected_of("nccl_tests");
    if (!files)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_tree_foreach(files, check_log, sandbox);
    g_tree_unref(files);
}

/* {"RECV": 14, "SEND": 14} as "RECV=14;SEND=14". */
static char *counts_text(const json_t *counts)
{
    json_t *sorted = json_deep_copy(counts);
    g_autofree char *text = json_dumps(sorted, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(sorted);
    GString *plain = g_string_new(NULL);
    for (const char *c = text; *c; c++)
        if (*c == ':' || *c == ',')
            g_string_append_c(plain, *c == ':' ? '=' : ';');
        else if (!strchr("{}\"", *c))
            g_string_append_c(plain, *c);
    return g_string_free(plain, FALSE);
}

/* The answer of kilter import on a trace agrees with the facts. */
static void check_facts(const Sandbox *sandbox, const char *line, const GPtrArray *facts,
                        double tolerance)
{
    json_t *root = program_json(sandbox, line);
    const json_t *json = json_array_get(json_object_get(root, "traces"), 0);
    for (guint i = 0; i < facts->len; i++) {
        const Expected *fact = facts->pdata[i];
        const json_t *got = json_object_get(json, fact->fact);
        g_autofree char *counts = json_is_object(got) ? counts_text(got) : NULL;
        if (counts || json_is_string(got))
            assert_string_equal(counts ? counts : json_string_value(got), fact->value);
        else if (strcmp(fact->fact, "trap") != 0)
            assert_close(json_number_value(got), g_ascii_strtod(fact->value, NULL),
                         tolerance);
    }
    json_decref(root);
}

static char *import_line(const char *file)
{
    g_autofree char *relative = g_strconcat("samples/", file, NULL);
    const char *path = test_shared(relative);
    assert_non_null(path);
    return g_strdup_printf("import '%s' --json", path);
}

static gboolean check_trace(void *key, void *facts, void *sandbox)
{
    g_autofree char *line = import_line(key);
    if (expected_fact(facts, "nodes"))
        program_refuses(sandbox, line, 2, "execution trace");
    else
        check_facts(sandbox, line, facts, 1e-9);
    return FALSE;
}

static void test_kineto(void **state)
{
    (void)state;
    GTree *files = expected_of("kineto");
    if (!files)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_tree_foreach(files, check_trace, sandbox);
    g_tree_unref(files);
}

static gboolean check_execution(void *key, void *facts, void *sandbox)
{
    g_autofree char *line = import_line(key);
    check_facts(sandbox, line, facts, 1e-15);
    return FALSE;
}

static void test_chakra(void **state)
{
    (void)state;
    need(HAS_PROTOBUF_C, "protobuf-c");
    GTree *files = expected_of("chakra");
    if (!files)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_tree_foreach(files, check_execution, sandbox);
    g_tree_unref(files);
}

/* A product of matrices by two kernels, one without shapes, and an all-reduce that waits twice:
 * rows with FLOPs, bytes and times that can be worked out by hand. */
static void test_made_trace(void **state)
{
    (void)state;
    static const char TRACE[] =
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
        "H200\"}],"
        "\"traceEvents\": ["
        "{\"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"args\": {\"External id\": 7, "
        "\"Input type\": [\"float\"], \"Input Dims\": [[5], [2, 3], [3, 5], [], []]}},"
        "{\"cat\": \"kernel\", \"name\": \"gemm\", \"dur\": 10, \"args\": {\"External "
        "id\": 7, "
        "\"stream\": 7}},"
        "{\"cat\": \"kernel\", \"name\": \"bias\", \"dur\": 2.5, \"args\": {\"External "
        "id\": 7, "
        "\"stream\": 8}},"
        "{\"cat\": \"cpu_op\", \"name\": \"aten::gelu\", \"args\": {\"External id\": 9, "
        "\"Input type\": [\"c10::Half\"], \"Input Dims\": [[2, 8, 16]]}},"
        "{\"cat\": \"cpu_op\", \"name\": \"aten::add\", \"args\": {\"External id\": 10, "
        "\"Input type\": [\"float\"], \"Input Dims\": [[2, 8], [8]]}},"
        "{\"cat\": \"kernel\", \"name\": \"relu\", \"dur\": 99, \"args\": {\"External "
        "id\": 9}},"
        "{\"cat\": \"kernel\", \"name\": \"ncclAllReduce\", \"dur\": 30, \"args\": "
        "{\"Collective name\": "
        "\"allreduce\", \"In msg nelems\": 1000, \"Group size\": 4, \"dtype\": "
        "\"BFloat16\"}},"
        "{\"cat\": \"kernel\", \"name\": \"ncclAllReduce\", \"dur\": 500, \"args\": "
        "{\"Collective name\": "
        "\"allreduce\", \"In msg nelems\": 1000, \"Group size\": 4, \"dtype\": "
        "\"BFloat16\"}}]}";
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "trace.json", TRACE);
    json_t *root = program_json(sandbox, "import trace.json -o m.csv --json");
    const json_t *json = json_array_get(json_object_get(root, "traces"), 0);
    assert_int_equal(number(json, "kernels"), 5);
    assert_int_equal(number(json, "streams"), 3);
    json_decref(root);
    g_autofree char *text = sandbox_read(sandbox, "m.csv");
    assert_non_null(strstr(text, "NVIDIA H200,linear,2x3;3x5 float,1,1,60,124,1,1.2"));
    /* 8 FLOPs for each of 256 halves, which are read and written; unequal sums are none */
    assert_non_null(
        strstr(text, "NVIDIA H200,gelu,gelu 2x8x16 c10::Half,1,1,2048,1024,1,9.9e-05"));
    assert_null(strstr(text, "H200,add"));
    assert_non_null(
        strstr(text, "NVIDIA H200,all_reduce,all_reduce 2000 of 4,4,0.25,0,2000,2,"));
    /* Old versions write keys in other cases, and numbers in quotation marks. */
    g_autoptr(GString) old = g_string_new(TRACE);
    g_string_replace(old, "\"External id\": 7, \"Input", "\"external id\": 7, \"Input",
                     0);
    g_string_replace(old, "\"External id\": 7", "\"External id\": \"7\"", 0);
    g_string_replace(old, "Input Dims", "Input dims", 0);
    g_string_replace(old, "\"Group size\": 4", "\"Group size\": \"4\"", 0);
    g_string_replace(old, "\"cat\": \"kernel\"", "\"cat\": \"Kernel\"", 0);
    sandbox_write(sandbox, "trace.json", old->str);
    json_decref(program_json(sandbox, "import trace.json -o old.csv --json"));
    g_autofree char *old_text = sandbox_read(sandbox, "old.csv");
    assert_string_equal(old_text, text);
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    static const char *const PIECE[] = {"[", "]",  "{",     "}",   "\"",
                                        ",", "-1", "1e400", "null"};
    for (uint32_t i = 0; i < 300; i++) { /* damaged: refused in one line, or rows */
        g_autoptr(GString) damaged = g_string_new(TRACE);
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
        KinetoFacts facts;
        for (gint32 d = g_rand_int_range(rand, 1, 4); d > 0; d--)
            damage_text(damaged, rand, PIECE, G_N_ELEMENTS(PIECE));
        sandbox_write(sandbox, "damaged.json", damaged->str);
        g_autofree char *path = g_build_filename(sandbox->folder, "damaged.json", NULL);
        const bool good = kineto_read(path, list, tables, &facts, &error);
        assert_true(good == !error);
        assert_true(good || error->code == KILTER_ERROR_INPUT);
        kineto_facts_clear(&facts);
    }
    g_autofree char *marked = g_strconcat("\xef\xbb\xbf", TRACE, NULL);
    sandbox_write(sandbox, "trace.json", marked);
    json_decref(program_json(sandbox, "import trace.json -o marked.csv --json"));
    g_autofree char *marked_text = sandbox_read(sandbox, "marked.csv");
    assert_string_equal(marked_text, text);
    g_autofree char *half = g_strndup(TRACE, strlen(TRACE) / 2);
    sandbox_write(sandbox, "half.json", half);
    /* its whole events are read; a file without any is refused */
    root = program_json(sandbox, "import half.json --json");
    const json_t *cut = json_array_get(json_object_get(root, "traces"), 0);
    assert_int_equal(number(cut, "events"), 3);
    assert_non_null(
        strstr(json_string_value(json_array_get(json_object_get(cut, "notes"), 0)),
               "cut off in line 1, column 521"));
    json_decref(root);
    sandbox_write(sandbox, "none.json", "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph");
    program_refuses(sandbox, "import none.json", 2,
                    "none.json:1:42: not JSON, or cut off");
    sandbox_write(sandbox, "empty.json", "{\"traceEvents\": []}");
    program_refuses(sandbox, "import empty.json", 2, "empty.json: expected measurements");
    sandbox_write(sandbox, "cpu.json",
                  "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
                  "\"aten::mm\", \"ts\": 1, \"dur\": 2, \"pid\": 1, \"tid\": 1}]}");
    program_refuses(sandbox, "import cpu.json -o cpu.csv", 2,
                    "cpu.json: expected measurements: the trace has no GPU kernels");
    json_decref(program_json(sandbox, "import cpu.json --json"));
}

/* --- made here --- */

/* t = latency + factor x bytes / bandwidth, on `hosts` machines with `each` GPUs. */
static void add_test(GString *out, const char *name, uint32_t hosts, uint32_t each,
                     double latency_us, double us_a_byte)
{
    g_string_append_printf(out, "# Collective test starting: %s_perf\n# Using devices\n",
                           name);
    for (uint32_t i = 0; i < hosts * each; i++)
        g_string_append_printf(
            out, "#  Rank %u Group 0 Pid 9 on host-%u device %u [0:0] gpu\n", i, i / each,
            i % each);
    g_string_append(out, "# size count type redop root time algbw busbw #wrong\n");
    for (double size = 1024; size <= 1 << 28; size *= 4)
        g_string_append_printf(out, " %.0f 1 float sum -1 %.9g 0 0 0\n", size,
                               latency_us + us_a_byte * size);
    g_string_append_printf(out, "# Collective test concluded: %s_perf\n", name);
}

static const char CLUSTER[] =
    "name: two\n"
    "device_types: [{name: gpu, rate: 1 TFLOP/s, memory: 64 GiB, source: s}]\n"
    "machines:\n"
    "  - {name: a, count: 2, type: gpu, gpus: 4, inner: {latency: 4 us, bandwidth: 9 "
    "GB/s}, "
    "source: s}\n" COSTS_TEXT;

/* The fit of that kind in a place. */
static const json_t *fit_of(const json_t *root, const char *kind)
{
    const json_t *fits = json_object_get(root, "fits");
    for (size_t i = 0; i < json_array_size(fits); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(fits, i), "kind")),
                   kind) == 0)
            return json_array_get(fits, i);
    TEST_FAIL_AT(__FILE__, __LINE__, "no fit of %s", kind);
    return NULL;
}

static void check_fit(const json_t *root, const char *kind, uint32_t ranks,
                      double latency_s, double bandwidth)
{
    const json_t *fit = fit_of(root, kind);
    const json_t *seconds = json_object_get(json_object_get(fit, "line"), "seconds");
    assert_int_equal(number(fit, "ranks"), ranks);
    assert_close(json_number_value(json_array_get(seconds, 0)), latency_s, 1e-3);
    assert_close(1 / json_number_value(json_array_get(seconds, 1)), bandwidth, 1e-3);
}

/* The GPUs of one machine fit the inner link, all GPUs or one per machine the links between
 * machines, sendrecv the transfers; the nearer of two numbers of ranks makes the line, and each of
 * them a curve. */
static void test_places(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autoptr(GString) log = g_string_new(NULL);
    add_test(log, "all_reduce", 1, 4, 10,
             1.5 / 100e3); /* 2 (n - 1) / n = 1.5, 100 GB/s */
    add_test(log, "all_reduce", 1, 2, 10, 1.0 / 70e3);
    add_test(log, "all_reduce", 2, 4, 30, 1.75 / 20e3);
    add_test(log, "sendrecv", 2, 1, 15, 1.0 / 5e3);
    add_test(log, "gather", 2, 4, 15, 1.0 / 5e3);
    sandbox_write(sandbox, "all.log", log->str);
    sandbox_write(sandbox, "two.yaml", CLUSTER);
    json_t *root =
        program_json(sandbox, "calibrate all.log --base two.yaml -o mine.yaml --json");
    check_fit(root, "inside machines", 4, 10e-6, 100e9);
    check_fit(root, "all_reduce", 8, 30e-6, 20e9);
    check_fit(root, "send", 2, 15e-6, 5e9);
    const json_t *file = json_array_get(json_object_get(root, "files"), 0);
    const json_t *tables = json_object_get(file, "tables");
    assert_int_equal(json_array_size(tables), 5);
    assert_int_equal(number(json_array_get(tables, 1), "used"),
                     10); /* a curve of its own */
    assert_int_equal(number(json_array_get(tables, 4), "left_out"), 10);
    json_decref(root);
    g_autofree char *text = sandbox_read(sandbox, "mine.yaml");
    assert_non_null(strstr(text, "send: {latency: 15 us, bandwidth: 5 GB/s}"));
    /* The written cluster can be read. */
    root = program_json(sandbox, "plan vgg19 mine.yaml --planner dp-ev --json");
    json_decref(root);
}

/* Numbers of ranks that do not occur in the cluster give an error that says so, and nothing is
 * written. */
static void test_nothing_used(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autoptr(GString) log = g_string_new(NULL);
    add_test(log, "all_reduce", 1, 16, 10, 1e-5);
    sandbox_write(sandbox, "all.log", log->str);
    sandbox_write(sandbox, "two.yaml", CLUSTER);
    program_refuses(
        sandbox, "calibrate all.log --base two.yaml -o mine.yaml", 2,
        "none of the 10 measurements can be used on cluster two: 16 ranks on one "
        "machine");
    g_string_truncate(
        log, 0); /* unlike GPUs, and GPUs with other links, are not the cluster's */
    add_test(log, "all_reduce", 1, 4, 10, 1e-3);
    g_string_replace(log, "] gpu", "] Tesla T4", 0);
    sandbox_write(sandbox, "t4.log", log->str);
    program_refuses(sandbox, "calibrate t4.log --base dgx-a100 -o mine.yaml", 2,
                    "of t4 with pcie3, and the cluster's a100-80g have nvlink3");
    g_string_replace(log, "] Tesla T4", "] NVIDIA A100-SXM4-80GB", 1);
    sandbox_write(sandbox, "both.log", log->str);
    program_refuses(sandbox, "calibrate both.log --base dgx-a100 -o mine.yaml", 2,
                    "unlike GPUs in a machine");
    g_autoptr(GString) gather = g_string_new(NULL);
    add_test(gather, "gather", 2, 4, 10, 1e-5);
    sandbox_write(sandbox, "gather.log", gather->str);
    program_refuses(sandbox, "calibrate gather.log --base two.yaml -o mine.yaml", 2,
                    "gather.log: no row can be used: no cost follows from it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl_tests), cmocka_unit_test(test_chakra),
        cmocka_unit_test(test_kineto),     cmocka_unit_test(test_made_trace),
        cmocka_unit_test(test_places),     cmocka_unit_test(test_nothing_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
