/* Reports of Nsight Systems, made here with its tables: kernels are joined with the ranges that
 * launched them, and rows have FLOPs, bytes and times worked out by hand. */
#include <sqlite3.h>

#include "data/data.h"
#include "data/formats/measured/kineto.h"
#include "tests/support/program_json.h"

/* A product by two kernels (4 + 1 us and 6 us); one inside another range of sizes; an all-reduce on
 * two GPUs; a kernel without a range, and the same correlation in another process. */
static const char REPORT[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
    " textId INTEGER, globalTid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,"
    " correlationId INTEGER, globalTid INTEGER, nameId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER,"
    " deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER, shortName INTEGER);"
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100, 80GB', 132);"
    "INSERT INTO StringIds VALUES (1, 'sm90_gemm_bf16bf16_f32'), (2, 'splitKreduce'),"
    " (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'), (4, 'relu'),"
    " (5, 'aten::mm, op_id = 3, sizes = [[2, 3], [3, 5]], input_op_ids = []');"
    /* process 16777216 * 7, thread 1 of it */
    "INSERT INTO NVTX_EVENTS VALUES (0, 1000, 59, 'aten::linear, sizes = [[2, 3], [5, "
    "3], "
    "[5]]', NULL, 117440513), (10, 500, 59, NULL, 5, 117440513),"
    " (2000, 2500, 59, 'aten::mm, sizes = [[2, 3], [3, 5]]', NULL, 117440513),"
    " (3000, 3900, 59, 'nccl:all_reduce, sizes = [[100, 10]]', NULL, 117440513),"
    " (7900, 8500, 59, 'aten::relu, op_id = 9, sizes = [[4, 5]]', NULL, 117440513),"
    " (0, 9000, 59, 'aten::mm, sizes = [[9, 9], [9, 9]]', NULL, 134217729);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 2020, 1, 117440513, 0),"
    " (40, 4040, 2, 117440513, 0), (2100, 5100, 3, 117440513, 0),"
    " (3100, 4100, 4, 117440513, 0), (3200, 4200, 5, 117440513, 0),"
    " (8000, 9000, 6, 117440513, 0);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
    " (10000, 14000, 0, 7, 1, 117440512, 1, 1), (14000, 15000, 0, 7, 2, 117440512, 2, 2),"
    " (20000, 26000, 0, 7, 3, 117440512, 1, 1), (30000, 50000, 0, 8, 4, 117440512, 3, 3),"
    " (30000, 60000, 1, 8, 5, 117440512, 3, 3), (70000, 71000, 0, 7, 6, 117440512, 4, 4),"
    " (80000, 81000, 0, 7, 1, 134217728, 4, 4);";

static void make_report(Sandbox *sandbox, const char *name, const char *sql)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void read_report(Sandbox *sandbox, const char *name, GArray *list, GArray *tables)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    g_autoptr(GError) error = NULL;
    measurements_read(path, list, tables, &error);
    assert_no_error(error);
}

static void test_rows(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    make_report(sandbox, "r.sqlite", REPORT);
    read_report(sandbox, "r.sqlite", list, tables);
    assert_int_equal(list->len, 3);
    const Measurement *product = &g_array_index(list, Measurement, 0),
                      *sum = &g_array_index(list, Measurement, 1);
    assert_int_equal(product->op, OP_LINEAR);
    assert_string_equal(product->shape, "2x3;3x5 bf16");
    assert_string_equal(product->device, "NVIDIA H100  80GB");
    assert_close(product->flops, 2 * 2 * 3 * 5, 0);
    assert_close(product->bytes, 2 * (6 + 15 + 10), 0);
    assert_int_equal(product->repeats, 2);
    assert_close(product->low_s, 5e-6, 1e-12); /* two kernels of one product */
    assert_close(product->high_s, 6e-6, 1e-12);
    assert_int_equal(sum->collective, COLLECTIVE_ALL_REDUCE);
    assert_int_equal(sum->ranks, 2);
    assert_close(sum->bytes, 2000, 0);
    assert_close(sum->median_s, 30e-6, 1e-12); /* the longer of 20 us and 30 us */
    const MeasuredTable *table = &g_array_index(tables, MeasuredTable, 0);
    assert_int_equal(table->rows, 3);
    assert_string_equal(table->test, "nsys: 7 kernels, launches of 2 us");
    assert_null(table->reason);
}

/* Without ranges there are kernels but no rows, and the report says how to record; the command
 * reads a report by its content, as it does logs. */
static void test_without_ranges(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    g_autofree char *sql = g_strconcat(REPORT, "DROP TABLE NVTX_EVENTS;", NULL);
    make_report(sandbox, "bare.sqlite", sql);
    read_report(sandbox, "bare.sqlite", list, tables);
    assert_int_equal(list->len, 0);
    const MeasuredTable *table = &g_array_index(tables, MeasuredTable, 0);
    assert_non_null(strstr(table->reason, "emit_nvtx(record_shapes=True)"));
    assert_int_equal(table->passed, 2);
    make_report(sandbox, "r.sqlite", REPORT);
    json_t *root = program_json(sandbox, "import r.sqlite -o m.csv --json");
    assert_int_equal(json_integer_value(json_object_get(root, "measurements")), 3);
    json_decref(root);
    g_autofree char *text = sandbox_read(sandbox, "m.csv");
    assert_non_null(strstr(text, "relu,relu 4x5 f32,1,1,20,160,1,1.0000"));
    assert_non_null(strstr(text, "linear,2x3;3x5 bf16,1,1,60,62,2,"));
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    make_report(sandbox, "other.db", "CREATE TABLE result (a);");
    program_refuses(sandbox, "import other.db", 2, "expected a report of Nsight Systems");
    make_report(sandbox, "view.db",
                "CREATE TABLE StringIds (id, value);"
                "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start;");
    program_refuses(sandbox, "import view.db", 2, "expected a report of Nsight Systems");
    make_report(sandbox, "columns.db",
                "CREATE TABLE StringIds (id, value);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end);");
    program_refuses(sandbox, "import columns.db", 2, "no such column");
    sandbox_write(sandbox, "cut.db", "SQLite format 3");
    program_refuses(sandbox, "import cut.db", 2, "cut.db");
}

/* A file that cannot be read is not a trace. */
static void test_no_trace(void **state)
{
    (void)state;
    assert_int_equal(format_of_file("/nonexistent/trace.json", FORMAT_ANY), FORMATS);
    assert_int_equal(format_of_file("/dev/null", FORMAT_ANY), FORMATS);
}

/* The beginning of a text says its format, whatever else is in it; and each format is read or
 * written by some command. */
static void test_formats_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        FileFormat format;
    } CASES[] = {{"\xef\xbb\xbf <system version=\"1\">", FORMAT_NCCL_TOPOLOGY},
                 {"<algo name=\"a\">", FORMATS},
                 {"{\"traceEvents\": []}", FORMAT_KINETO},
                 {"[ {\"ph\": \"X\"}]", FORMAT_KINETO},
                 {"{\"config\": {}, \"schema\": 1}", FORMAT_NCCL_TESTS_JSON},
                 {"{\"kilter\": {}, \"task\": []}", FORMAT_PLAN},
                 {"{\"task\": []}", FORMAT_TASKS},
                 {"{\"model_type\": \"llama\"}", FORMAT_HUGGINGFACE},
                 {"{\"format\": {\"name\": \"kilter-graph\"}}", FORMAT_GRAPH},
                 {"# a\n\ndevice,kind,median_s\n", FORMAT_MEASUREMENTS},
                 {"# size algbw busbw", FORMAT_NCCL_TESTS},
                 {"NodeName=a Gres=gpu:4", FORMAT_SLURM},
                 {"the NodeNames=", FORMATS},
                 {"\tGPU0\tGPU1\nGPU0\tX\tNV1", FORMAT_NVIDIA_SMI},
                 {"Hops between two GPUs", FORMAT_ROCM_SMI},
                 {"", FORMATS},
                 {"{}", FORMATS}};
    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const char *text = CASES[i].text;
        assert_int_equal(format_of_text(text, strlen(text), FORMAT_ANY), CASES[i].format);
    }
    for (FileFormat f = 0; f < FORMATS; f++) {
        assert_true(*format_row(f)->reads || *format_row(f)->writes);
        for (FileFormat g = 0; g < f; g++)
            assert_string_not_equal(format_row(f)->name, format_row(g)->name);
    }
    g_autofree char *hint = format_hint(NULL, "NodeName=a", strlen("NodeName=a"));
    assert_non_null(strstr(hint, "kilter cluster import"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_no_trace),
        cmocka_unit_test(test_without_ranges), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_formats_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
