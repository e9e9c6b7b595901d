/* Measurement files and the output of nccl-tests: reading, and refusals with their messages. */
#include "data/data.h"
#include "tests/test.h"

#define HEADER "device,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n"
#define ROW    "cpu,linear,4x8;8x8,2,0.75,1e6,4096,10,1e-3,9e-4,1.1e-3\n"

static GArray *parse(const char *file, const char *text)
{
    g_autoptr(GError) error = NULL;
    GArray *list = measurements_new();
    measurements_parse(file, text, strlen(text), list, NULL, &error);
    assert_no_error(error);
    return list;
}

/* Nothing is kept of a file that is refused, and nothing is lost of those before it. */
static void expect_refusal(const char *file, const char *text, const char *part)
{
    static const char GOOD[] =
        "{\"args\": [\"all_gather_perf\"], \"config\": {\"ngpus\": 2, \"nthreads\": 1, "
        "\"devices\": [{\"rank\": 0}]}, \"results\": [{\"size\": "
        "64, \"out_of_place\": {\"time\": 12.5}}]}";
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    assert_true(measurements_parse("x.json", GOOD, strlen(GOOD), list, tables, NULL));
    assert_false(measurements_parse(file, text, strlen(text), list, NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, part);
    assert_int_equal(list->len, 1);
    /* With a list of tables to go to, some files are reported as tables without rows. */
    if (!measurements_parse(file, text, strlen(text), list, tables, NULL))
        assert_int_equal(tables->len, 1);
    assert_int_equal(list->len, 1);
}

static const Measurement *at(const GArray *list, uint32_t i)
{
    return &g_array_index(list, Measurement, i);
}

static void test_csv(void **state)
{
    (void)state;
    g_autoptr(GArray) list =
        parse("m.csv", "# from somewhere\r\n" HEADER ROW
                       "\ncpu,all_to_all,,4,0.25,0,1024,1,1e-5,1e-5,1e-5\n");
    assert_int_equal(list->len, 2);
    assert_int_equal(at(list, 0)->op, OP_LINEAR);
    assert_int_equal(at(list, 0)->ranks, 2);
    assert_close(at(list, 0)->share, 0.75, 1e-15);
    assert_close(at(list, 0)->flops, 1e6, 1e-15);
    assert_close(at(list, 0)->high_s, 1.1e-3, 1e-15);
    assert_int_equal(at(list, 1)->op, OP_KINDS);
    assert_int_equal(at(list, 1)->collective, COLLECTIVE_ALL_TO_ALL);
}

/* read(write(x)) == x for random rows, and the order of the columns does not matter. */
static void test_round_trip(void **state)
{
    (void)state;
    GRand *rand = g_rand_new_with_seed(3);
    g_autoptr(GArray) list = measurements_new();
    for (uint32_t i = 0; i < 300; i++) {
        const bool op = g_rand_boolean(rand);
        Measurement m = {
            .device = g_strdup_printf("type %u%s", i % 3, i % 2 ? ", \"x\"" : ""),
            .shape = g_strdup(i % 2 ? "3x4;5" : ""),
            .op = op ? (OpKind)g_rand_int_range(rand, 0, OP_KINDS) : OP_KINDS,
            .collective = op ? COLLECTIVES
                             : (Collective)g_rand_int_range(rand, 0, COLLECTIVES_PRICED),
            .ranks = (uint32_t)g_rand_int_range(rand, 1, 100),
            .repeats = (uint32_t)g_rand_int_range(rand, 1, 100),
            .share = g_rand_double(rand),
            .flops = op ? g_rand_double_range(rand, 0, 1e15) : 0,
            .bytes = g_rand_double_range(rand, 0, 1e12),
            .median_s = exp(g_rand_double_range(rand, -15, 3))};
        m.low_s = m.median_s * g_rand_double(rand);
        m.high_s = m.median_s * (1 + g_rand_double(rand));
        g_array_append_val(list, m);
    }
    g_rand_free(rand);
    g_autofree char *text = measurements_write(list, "made up");
    g_autoptr(GArray) again = parse("m.csv", text);
    g_autofree char *second = measurements_write(again, "made up");
    assert_string_equal(text, second);
    assert_int_equal(again->len, list->len);
    for (uint32_t i = 0; i < list->len; i++)
        assert_true(at(again, i)->median_s == at(list, i)->median_s &&
                    at(again, i)->bytes == at(list, i)->bytes &&
                    at(again, i)->op == at(list, i)->op &&
                    at(again, i)->collective == at(list, i)->collective);
}

static void test_bad_rows(void **state)
{
    (void)state;
    static const struct {
        const char *row, *part;
    } bad[] = {
        {"cpu,linear,s,2,0.75,1e6,4096,10,1e-3,9e-4\n", "m.csv:2: expected 11 columns"},
        {"cpu,linaer,s,2,0.75,1e6,4096,10,1e-3,9e-4,1\n", "kind: expected an op kind"},
        {"cpu,slice,s,2,0.75,1e6,4096,10,1e-3,9e-4,1\n", "kind: expected an op kind"},
        {"cpu,linear,s,0,0.75,1e6,4096,10,1e-3,9e-4,1\n",
         "ranks: expected a whole number"},
        {"cpu,linear,s,1.5,0.75,1e6,4096,10,1e-3,9e-4,1\n",
         "ranks: expected a whole number"},
        {"cpu,linear,s,2,1.75,1e6,4096,10,1e-3,9e-4,1\n", "share: expected a number"},
        {"cpu,linear,s,2,0.75,x,4096,10,1e-3,9e-4,1\n", "flops: expected a number"},
        {"cpu,linear,s,2,0.75,nan,4096,10,1e-3,9e-4,1\n", "flops: expected a number"},
        {"cpu,linear,s,2,0.75,1,-1,10,1e-3,9e-4,1\n", "bytes: expected a number"},
        {"cpu,linear,s,2,0.75,1,1,10,0,0,1\n", "median_s: expected a number"},
        {"cpu,linear,s,2,0.75,1,1,10,1e-3,2e-3,1\n", "low_s: expected a number"},
        {"cpu,linear,s,2,0.75,1,1,10,1e-3,1e-3,1e-4\n", "high_s: expected a number"},
        {",linear,s,2,0.75,1,1,10,1e-3,1e-3,1\n", "device: expected a name"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strconcat(HEADER, bad[i].row, NULL);
        expect_refusal("m.csv", text, bad[i].part);
    }
    expect_refusal("m.csv", HEADER, "holds no measurement");
    expect_refusal("m.csv", "colour," HEADER,
                   "m.csv:1: column 'colour': expected one of device,");
    expect_refusal("m.csv", "device,kind,median_s\n", "expected a column 'shape'");
    expect_refusal("m.csv", "something else\n", "expected a measurement file");
    expect_refusal("m.csv", "", "expected a measurement file");
}

#define NCCL_HEAD                                                                        \
    "# nThread 1 nGpus 2 minBytes 0 maxBytes 1024 step: 2(factor) iters: 20\n"           \
    "# Using devices\n"                                                                  \
    "#  Rank  0 Group  0 Pid  1 on  host device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n" \
    "#  Rank  1 Group  0 Pid  1 on  host device  1 [0000:05:00] NVIDIA H100 80GB HBM3\n" \
    "#       size         count      type   redop    root     time   algbw   busbw "     \
    "#wrong"
#define NCCL_ROWS                                                                        \
    "\n#        (B)    (elements)                               (us)  (GB/s)\n"          \
    "           0             0     float     sum      -1     5.00    0.00    0.00     " \
    " 0\n"                                                                               \
    "host:1:1 [0] NCCL INFO something\n"                                                 \
    "        1024           256     float     sum      -1    20.00    0.05    0.05     " \
    " 0\n"                                                                               \
    "# Out of bounds values : 0 OK\n"

static void test_nccl_text(void **state)
{
    (void)state;
    static const struct {
        const char *test;
        Collective kind;
        double bytes, seconds;
    } cases[] = {{"all_reduce", COLLECTIVE_ALL_REDUCE, 1024, 20e-6},
                 {"all_gather", COLLECTIVE_ALL_GATHER, 1024, 20e-6},
                 {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, 1024, 20e-6},
                 {"alltoall", COLLECTIVE_ALL_TO_ALL, 2048, 20e-6},
                 {"broadcast", COLLECTIVE_GROUPED_ALL_GATHER, 2048, 40e-6},
                 {"reduce", COLLECTIVE_GROUPED_REDUCE_SCATTER, 2048, 40e-6}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "# Collective test starting: %s_perf\n" NCCL_HEAD NCCL_ROWS, cases[i].test);
        g_autofree char *file = g_strdup_printf("%s.log", cases[i].test);
        g_autoptr(GArray) named = parse("x.log", text);
        g_autoptr(GArray) unnamed = parse(file, NCCL_HEAD NCCL_ROWS);
        g_autofree char *a = measurements_write(named, NULL),
                        *b = measurements_write(unnamed, NULL);
        assert_string_equal(a, b);
        assert_int_equal(named->len, 1);
        assert_int_equal(at(named, 0)->collective, cases[i].kind);
        assert_int_equal(at(named, 0)->ranks, 2);
        assert_string_equal(at(named, 0)->device, "NVIDIA H100 80GB HBM3");
        assert_close(at(named, 0)->bytes, cases[i].bytes, 1e-15);
        assert_close(at(named, 0)->median_s, cases[i].seconds, 1e-12);
    }
    expect_refusal("x.log", NCCL_HEAD NCCL_ROWS, "expected '# Collective test starting");
    expect_refusal("x.log",
                   "# Collective test starting: hypercube_perf\n" NCCL_HEAD NCCL_ROWS,
                   "no cost follows from it");
    expect_refusal("all_reduce.log", NCCL_HEAD "\n 1024 256 float\n", "cut off");
    expect_refusal("all_reduce.log", NCCL_HEAD "\n 1024 256 float sum -1 N/A 0 0 0\n",
                   "cut off");
    expect_refusal("all_reduce.log",
                   "# size count type time algbw busbw\n 1024 256 float 9 0 0 0\n",
                   "no list of the ranks");
    expect_refusal("all_reduce.log", "# algbw busbw\n", "expected rows of nccl-tests");
}

static const MeasuredTable *table_at(const GArray *tables, uint32_t i)
{
    return &g_array_index(tables, MeasuredTable, i);
}

/* The output of wrappers: several tests, one that no cost is fitted to, ranks of two machines, tags
 * of mpirun, old columns, times with exponents, wrong results, and an end in the middle of a
 * row. */
static void test_nccl_as_people_have_it(void **state)
{
    (void)state;
    static const char TEXT[] =
        "$ mpirun -n 2 build/sendrecv_perf -b 8\n"
        "[1,0]<stdout>:# Using devices\n"
        "[1,0]<stdout>:#  Rank  0 Group  0 Pid 1 on node-a device  0 [0000:04:00] H100\n"
        "[1,0]<stdout>:#  Rank  1 Group  0 Pid 2 on node-b device  0 [0000:05:00] H100\n"
        "[1,0]<stdout>:#   size  count  type  redop  root  time  algbw  busbw  #wrong\n"
        "[1,0]<stdout>:   1024    256 float    sum    -1 20.00   0.05   0.05       0\n"
        "node-a:17:99 NCCL INFO 12 channels\n"
        "   2048    512 float    sum    -1 1.5e+07  0.05   0.05       0\n"
        "   4096   1024 float    sum    -1 30.00   0.05   0.05       7\n"
        "# Collective test concluded: sendrecv_perf\n"
        "# Collective test starting: gather_perf\n"
        "   1024    256 float    sum    -1 20.00   0.05   0.05       0\n"
        "# Collective test starting: all_gather_perf\n"
        "#   size  count  type  time  algbw  busbw  error\n"
        "   1024    256 float 20.00   0.05   0.05     N/A\n"
        "   2048    512 float 2";
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GArray) tables = measured_tables_new();
    assert_true(measurements_parse("x.log", TEXT, strlen(TEXT), list, tables, &error));
    assert_int_equal(list->len,
                     4); /* the time of the last row is cut to 2, which none can see */
    assert_true(at(list, 0)->send && at(list, 1)->send);
    assert_int_equal(at(list, 0)->hosts, 2);
    assert_close(at(list, 1)->median_s, 15, 1e-12);
    assert_int_equal(at(list, 2)->collective, COLLECTIVE_ALL_GATHER);
    assert_int_equal(tables->len, 3);
    assert_string_equal(table_at(tables, 0)->test, "sendrecv_perf");
    assert_int_equal(table_at(tables, 0)->rows, 2);
    assert_int_equal(table_at(tables, 0)->passed, 1);
    assert_string_equal(table_at(tables, 0)->reason, "its results were wrong");
    assert_string_equal(table_at(tables, 1)->test, "gather_perf");
    assert_int_equal(table_at(tables, 1)->passed, 1);
    g_autofree char *written = measurements_write(list, NULL);
    assert_non_null(strstr(written, ",send,"));
    g_autoptr(GArray) again = parse("m.csv", written);
    g_autofree char *twice = measurements_write(again, NULL);
    assert_string_equal(written, twice);
}

#define JSON(program, rows)                                                         \
    "{\"version\": 2, \"args\": [\"/x/" program "_perf\", \"-b\"], \"config\": "    \
    "{\"nthreads\": 1, \"ngpus\": 2, \"devices\": [{\"rank\": 0, \"device_info\": " \
    "\"H100\"}, {\"rank\": 2}]}, \"results\": [" rows "]}"

static void test_nccl_json(void **state)
{
    (void)state;
    g_autoptr(GArray) list = parse(
        "x.json", JSON("all_gather", "{\"size\": 4096, \"out_of_place\": {\"time\": "
                                     "12.5}, \"in_place\": {\"time\": 99.0}}"));
    assert_int_equal(list->len, 1);
    assert_int_equal(at(list, 0)->ranks, 4);
    assert_int_equal(at(list, 0)->collective, COLLECTIVE_ALL_GATHER);
    assert_string_equal(at(list, 0)->device, "H100");
    assert_close(at(list, 0)->median_s, 12.5e-6, 1e-12);
    expect_refusal("x.json", JSON("all_gather", ""), "holds no measurement");
    expect_refusal("x.json", JSON("other", ""), "expected output of all_reduce_perf");
    expect_refusal("x.json",
                   JSON("hypercube", "{\"size\": 9, \"out_of_place\": {\"time\": 1}}"),
                   "no cost follows");
    expect_refusal("x.json", JSON("all_gather", "{\"size\": 4096}"),
                   "results[0]: expected size");
    expect_refusal(
        "x.json",
        JSON("all_gather",
             "{\"size\": 4096, \"out_of_place\": {\"time\": 9}}, {\"size\": 4096}"),
        "results[1]: expected size");
    expect_refusal("x.json", "{}", "expected the JSON of nccl-tests");
    /* Machines are counted where every process names its own. */
    static const struct {
        const char *first, *second;
        uint32_t hosts;
    } HOSTS[] = {{"\"hostname\": \"a\"", "\"host\": \"b\"", 2},
                 {"\"hostname\": \"a\"", "\"hostname\": \"a\"", 1},
                 {"\"hostname\": \"a\"", "\"rank\": 1", 0}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(HOSTS); i++) {
        g_autofree char *text =
            g_strdup_printf("{\"args\": [\"all_gather_perf\"], \"config\": "
                            "{\"nthreads\": 1, \"ngpus\": 1, "
                            "\"devices\": [{%s}, {%s}]}, \"results\": [{\"size\": 4096, "
                            "\"out_of_place\": "
                            "{\"time\": 12.5}}]}",
                            HOSTS[i].first, HOSTS[i].second);
        g_autoptr(GArray) named = parse("x.json", text);
        assert_int_equal(at(named, 0)->hosts, HOSTS[i].hosts);
    }
    expect_refusal("x.json", "{", "not JSON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_nccl_text),
        cmocka_unit_test(test_nccl_as_people_have_it),
        cmocka_unit_test(test_nccl_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
