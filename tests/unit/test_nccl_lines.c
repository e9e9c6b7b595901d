/* Logs of nccl-tests as launchers pass them on, and tables whose test no line names, give the rows
 * of the plain log. */
#include "data/data.h"
#include "tests/test.h"

typedef struct {
    const char *name; /* of the program */
    bool reduces;
    int root;
    double per_gpu, of_all; /* bus bandwidth / bandwidth = per_gpu + of_all (n - 1) / n */
} Made;

static const Made MADE[] = {
    {"all_reduce", true, -1, 0, 2},  {"reduce_scatter", true, -1, 0, 1},
    {"all_gather", false, -1, 0, 1}, {"alltoall", false, -1, 0, 1},
    {"broadcast", false, 0, 1, 0},   {"reduce", true, 0, 1, 0},
    {"sendrecv", false, -1, 1, 0}};

/* A log, with the line that names the test or without. */
static char *made_log(const Made *made, uint32_t ranks, bool named)
{
    GString *log = g_string_new(NULL);
    if (named)
        g_string_append_printf(log, "mpirun -np %u ./build/%s_perf -b 1M -e 1G -f 2\n",
                               ranks, made->name);
    g_string_append(log, "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: "
                         "2(factor) warmup iters: 5 iters: 20 validation: 1\n#\n# Using "
                         "devices\n");
    for (uint32_t r = 0; r < ranks; r++)
        g_string_append_printf(log,
                               "#  Rank %2u Group  0 Pid %u on node%u device  %u "
                               "[0000:9d:00] NVIDIA H100 80GB HBM3\n",
                               r, 100 + r, r / 8, r % 8);
    g_string_append(log,
                    "#\n#       size    count  type  redop  root   time  algbw  busbw "
                    "#wrong   time  algbw  busbw #wrong\n#        (B)  (elements)   "
                    "(us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n");
    const double factor = made->per_gpu + made->of_all * (ranks - 1.0) / ranks;
    for (double size = 1048576; size <= 1073741824; size *= 2) {
        const double us = 20 + size / 200e3, bandwidth = size / us / 1e3;
        g_string_append_printf(
            log,
            "%12.0f %12.0f float %6s %6d %8.2f %7.2f %7.2f 0 %8.2f %7.2f "
            "%7.2f N/A\n",
            size, size / 4, made->reduces ? "sum" : "none", made->root, us, bandwidth,
            bandwidth * factor, us, bandwidth, bandwidth * factor);
    }
    return g_string_free(log, FALSE);
}

static char *rows_of(const char *text)
{
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    g_autoptr(GError) error = NULL;
    assert_true(measurements_parse("a.log", text, strlen(text), list, tables, &error));
    assert_no_error(error);
    return measurements_write(list, NULL);
}

static void test_launchers(void **state)
{
    (void)state;
    static const char *const before[] = {
        "0: ",
        "15: ",
        "[1,0]<stdout>:",
        "[1,7]<stdout>: ",
        "[prterun-node1-12345@1,0]<stdout>: ",
        "2024-05-01T10:20:30.123456789Z ",
        "2024-05-01T10:20:30+02:00 ",
        "nccl-launcher-0  | ",
        "2024-05-01T10:20:30Z [1,0]<stdout>:",
        "\033[32m",
        "\033[1;36mworker-1 | \033[0m",
        "node17: ",
        "[nccl-test-launcher-abcde nccl] ",
        "2024-05-01T10:20:30.123456789Z stdout F ",
        "2024-05-01 10:20:30,123 INFO ",
        "May  1 10:20:30 node17 slurmd[1234]: ",
    };
    g_autofree char *log = made_log(&MADE[0], 16, true), *plain = rows_of(log);
    for (uint32_t i = 0; i <= G_N_ELEMENTS(before); i++) {
        g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
        g_autoptr(GString) other = g_string_new(NULL);
        for (char **line = lines; *line; line++)
            g_string_append_printf(other, "%s%s%s", i > 0 ? before[i - 1] : "", *line,
                                   i == 0 ? "\r\n" : "\n");
        g_autofree char *rows = rows_of(other->str);
        assert_string_equal(rows, plain);
    }
}

/* A log in UTF-16, either way around, as PowerShell writes it. */
static void test_utf16(void **state)
{
    (void)state;
    static const char *const CODE[] = {"UTF-16LE", "UTF-16BE"};
    g_autofree char *log = made_log(&MADE[0], 8, true), *plain = rows_of(log),
                    *marked = g_strconcat("\xef\xbb\xbf", log, NULL);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CODE); i++) {
        g_autoptr(GArray) list = measurements_new();
        g_autoptr(GError) error = NULL;
        gsize length;
        g_autofree char *text =
            g_convert(marked, -1, CODE[i], "UTF-8", NULL, &length, &error);
        assert_no_error(error);
        assert_true(measurements_parse("a.log", text, length, list, NULL, &error));
        g_autofree char *rows = measurements_write(list, NULL);
        assert_string_equal(rows, plain);
        assert_false(measurements_parse("a.log", text, 2, list, NULL, &error));
        assert_non_null(error);
    }
}

/* Tests that only their columns tell apart from others are found, and no other. */
static void test_unnamed(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {2, 3, 4, 8, 16, 64};
    for (uint32_t r = 0; r < G_N_ELEMENTS(ranks); r++)
        for (uint32_t m = 0; m < G_N_ELEMENTS(MADE); m++) {
            g_autofree char *named = made_log(&MADE[m], ranks[r], true),
                            *unnamed = made_log(&MADE[m], ranks[r], false),
                            *expected = rows_of(named), *got = rows_of(unnamed);
            if (MADE[m].reduces || MADE[m].root >= 0)
                assert_string_equal(got, expected);
            else
                assert_null(strstr(got, "nccl-tests")); /* no row */
        }
    /* Two tables of one file, each by its own columns. */
    g_autofree char *first = made_log(&MADE[0], 8, false),
                    *second = made_log(&MADE[4], 8, false),
                    *both = g_strconcat(first, second, NULL), *got = rows_of(both);
    assert_non_null(strstr(got, "all_reduce"));
    assert_non_null(strstr(got, "grouped_all_gather"));
}

static void replace(GString *text, const char *from, const char *to)
{
    assert_true(g_string_replace(text, from, to, 0) > 0);
}

/* Replaces in the lines that do not list a rank. */
static void replace_in_rows(GString *text, const char *from, const char *to)
{
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    g_string_truncate(text, 0);
    for (char **line = lines; *line; line++) {
        g_autoptr(GString) one = g_string_new(*line);
        if (!strstr(*line, "Rank "))
            g_string_replace(one, from, to, 0);
        g_string_append_printf(text, "%s%s", one->str, line[1] ? "\n" : "");
    }
}

/* Columns before version 2.13: the largest relative error instead of wrong results. A log whose
 * head is cut off has the ranks of its process. */
static void test_old_and_cut(void **state)
{
    (void)state;
    g_autofree char *log = made_log(&MADE[0], 8, true), *plain = rows_of(log);
    g_autoptr(GString) old = g_string_new(log);
    replace(old, "#wrong", "error");
    replace_in_rows(old, " 0 ", " 3e-07 ");
    g_autofree char *rows = rows_of(old->str);
    assert_string_equal(rows, plain);
    g_string_assign(old, log);
    replace(old, "#wrong", "error");
    replace_in_rows(old, " 0 ", " 2e+00 ");
    g_autofree char *bad = rows_of(old->str);
    assert_null(strstr(bad, "nccl-tests"));
    g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
    g_autoptr(GString) cut = g_string_new(NULL);
    for (char **line = lines; *line; line++)
        if (!strstr(*line, "Rank ") && !strstr(*line, "Using devices"))
            g_string_append_printf(cut, "%s\n", *line);
    replace(cut, "nGpus 1 ", "nGpus 8 ");
    g_autofree char *of_process = rows_of(cut->str);
    g_autoptr(GString) unnamed = g_string_new(of_process);
    replace(unnamed, "gpu,", "NVIDIA H100 80GB HBM3,");
    assert_string_equal(unnamed->str, plain);
}

/* The tables of a text, of which no row but those of the last one may be used. */
static void check_left_out(const char *text, uint32_t rows, uint32_t passed,
                           const char *why)
{
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    g_autoptr(GError) error = NULL;
    assert_true(measurements_parse("a.log", text, strlen(text), list, tables, &error));
    assert_int_equal(list->len, rows);
    const MeasuredTable *table = &g_array_index(tables, MeasuredTable, 0);
    assert_int_equal(table->passed, passed);
    assert_non_null(strstr(table->reason, why));
}

/* Worlds of one rank, whatever the test and however small its tensors; bandwidths that are not
 * those of the listed ranks, or of the named test; a test that stops after its header, before
 * another one. */
static void test_worlds(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MADE); m++) {
        g_autofree char *log = made_log(&MADE[m], 1, true);
        check_left_out(log, 0, 11, "a world of one rank");
    }
    g_autofree char *log = made_log(&MADE[0], 8, true),
                    *other = made_log(&MADE[2], 8, true);
    g_autoptr(GString) text = g_string_new(log);
    replace(text,
            "#  Rank  7 Group  0 Pid 107 on node0 device  7 [0000:9d:00] NVIDIA H100 "
            "80GB HBM3\n",
            "");
    check_left_out(text->str, 0, 11, "other ranks than are listed");
    for (uint32_t twice = 0; twice < 7;
         twice += 6) { /* the first, and the last but one */
        g_autofree char *rank = g_strdup_printf("Rank  %u Group", twice);
        g_autofree char *why = g_strdup_printf("rank %u occurs 2 times", twice);
        g_string_assign(text, log);
        replace(text, "Rank  7 Group", rank);
        check_left_out(text->str, 0, 11, why);
    }
    g_string_assign(text, other);
    replace(text, "all_gather", "all_reduce");
    check_left_out(text->str, 0, 11, "of another test");
    g_string_truncate(g_string_assign(text, log), strstr(log, "float") - log - 26);
    g_string_append(text, log);
    check_left_out(text->str, 11, 1, "stopped after its header");
    g_string_assign(text, log); /* unlike GPUs are not those of the first rank */
    replace(text, "device  7 [0000:9d:00] NVIDIA H100 80GB HBM3",
            "device  7 [0000:9d:00] Tesla T4");
    g_autofree char *rows = rows_of(text->str);
    assert_non_null(strstr(rows, "NVIDIA H100 80GB HBM3 + Tesla T4,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf16), cmocka_unit_test(test_launchers),
        cmocka_unit_test(test_unnamed), cmocka_unit_test(test_old_and_cut),
        cmocka_unit_test(test_worlds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
