/* CSV files: cells, quotes, columns, numbers; refusals and their messages. */
#include <glib/gstdio.h>

#include "data/data.h"
#include "tests/test.h"

static Csv *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    Csv *csv = csv_parse("t.csv", text, strlen(text), &error);
    assert_no_error(error);
    return csv;
}

/* LINE:cell|cell| of every line. */
static bool show(const Csv *csv, void *out, GError **error)
{
    (void)error;
    g_string_append_printf(out, "%u:", csv->line);
    for (uint32_t c = 0; c < csv->n_columns; c++)
        g_string_append_printf(out, "%s|", csv->cell[c]);
    return true;
}

static void test_cells(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"a,b\n1,2\n", "2:1|2|"},
        {"a,b\r\n1,2\r\n\r\n3,4", "2:1|2|4:3|4|"},
        {"# from\n\na,b\n#\n 1 , x y \n", "5:1|x y|"},
        {"a,b\n,\n", "2:||"},
        {"a,b\n\"1,2\",\"say \"\"so\"\"\"\n", "2:1,2|say \"so\"|"},
        {"a,b\n \" x \" ,\"\"\n", "2: x ||"},
        {"a,b\n5\" disk,#2\n", "2:5\" disk|#2|"},
        {"\"a,b\"\nx\n", "2:x|"},
        {"a;b\n1,5;\"x;y\"\n", "2:1,5|x;y|"},
        {"a\tb\tc\r\n1,2\t x \t\r\n", "2:1,2|x||"},
        {"a\n", ""},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Csv) csv = parse(cases[i].text);
        g_autoptr(GString) shown = g_string_new(NULL);
        assert_true(csv_each(csv, show, shown, NULL));
        assert_string_equal(shown->str, cases[i].shown);
    }
}

static void expect_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) shown = g_string_new(NULL);
    g_autoptr(Csv) csv = csv_parse("t.csv", text, strlen(text), &error);
    assert_false(csv && csv_each(csv, show, shown, &error));
    assert_error(error, KILTER_ERROR_INPUT, message);
}

/* A byte order mark before the first column is passed over. */
static void test_mark(void **state)
{
    (void)state;
    g_autoptr(Csv) csv = parse("\xef\xbb\xbf"
                               "a,b\r\n1,2\r\n");
    assert_string_equal(csv->column[0], "a");
    assert_int_equal(csv->n_columns, 2);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("", "t.csv: expected a first line that names the columns");
    expect_refused("# a,b\n\n", "t.csv: expected a first line that names the columns");
    expect_refused("a,b,a\n", "t.csv:1: column 'a': expected once");
    expect_refused("a,b\n\n1\n", "t.csv:3: expected 2 columns, got 1");
    expect_refused("a,b\n1,2,\n", "t.csv:2: expected 2 columns, got 3");
    expect_refused("a,b\n1,\"2\n", "t.csv:2: cell 2: expected a closing quote");
    expect_refused("a,b\n1,\"2\"\"\n", "t.csv:2: cell 2: expected a closing quote");
    expect_refused("a,b\n\"1\"x,2\n",
                   "t.csv:2: cell 1: expected a closing quote, then a comma");
    expect_refused("a,\"\n", "t.csv:1: cell 2");
    g_autoptr(GError) error = NULL;
    assert_null(csv_parse("t.csv", "a\0b", 3, &error));
    assert_error(error, KILTER_ERROR_INPUT, "t.csv: expected a text");
    g_clear_error(&error);
    assert_null(csv_read("/no/such.csv", &error));
    assert_error(error, KILTER_ERROR_INPUT, "/no/such.csv");
}

static void test_columns(void **state)
{
    (void)state;
    static const char *const ab[] = {"a", "b", NULL}, *const c[] = {"c", NULL},
                             *const none[] = {NULL};
    g_autoptr(Csv) csv = parse("# x\nb,d,a\n");
    g_autoptr(GError) error = NULL;
    assert_true(csv_has(csv, "d") && !csv_has(csv, "c"));
    assert_true(csv_expect(csv, ab, NULL, NULL));
    assert_false(csv_expect(csv, c, NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, "t.csv:2: expected a column 'c'");
    g_clear_error(&error);
    assert_false(csv_expect(csv, ab, c, &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "t.csv:2: column 'd': expected one of a, b, c");
    g_clear_error(&error);
    assert_false(csv_expect(csv, ab, none, &error));
    assert_error(error, KILTER_ERROR_INPUT, "column 'd': expected one of a, b");
}

typedef struct {
    uint32_t low, high;
    const char *refusal; /* NULL: there is none */
} Range;

static bool check_number(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const Range *range = data;
    g_autoptr(GError) number_error = NULL, count_error = NULL;
    double number = -1;
    uint32_t count = 77;
    csv_number(csv, "n", range->low, range->high, &number, &number_error);
    csv_count(csv, "n", range->low, range->high, &count, &count_error);
    const bool whole = g_strcmp0(csv_text(csv, "whole"), "yes") == 0;
    if (range->refusal)
        assert_error(number_error, KILTER_ERROR_INPUT, range->refusal);
    else
        assert_close(number, g_ascii_strtod(csv_text(csv, "n"), NULL), 0);
    if (whole)
        assert_true(count == number);
    else
        assert_error(count_error, KILTER_ERROR_INPUT, "n: expected a whole number from ");
    return true;
}

static void test_numbers(void **state)
{
    (void)state;
    Range range = {1, 4000000000u, NULL};
    g_autoptr(Csv) good = parse("n,whole\n1,yes\n4e9,yes\n1.5,no\n 3 ,yes\n");
    assert_true(csv_each(good, check_number, &range, NULL));
    range = (Range){1, 9, "n: expected a number from 1 to 9, got '"};
    g_autoptr(Csv) bad =
        parse("n,whole\n,no\n0,no\n10,no\n2x,no\nnan,no\ninf,no\n-1,no\n");
    assert_true(csv_each(bad, check_number, &range, NULL));
}

static bool stop(const Csv *csv, void *seen, GError **error)
{
    ++*(uint32_t *)seen;
    return csv->line < 3 || csv_fail(csv, "a", error, "expected %d", 7);
}

static void test_taker_fails(void **state)
{
    (void)state;
    uint32_t seen = 0;
    g_autoptr(Csv) csv = parse("a\n1\n2\n3\n");
    g_autoptr(GError) error = NULL;
    assert_false(csv_each(csv, stop, &seen, &error));
    assert_error(error, KILTER_ERROR_INPUT, "t.csv:3: a: expected 7");
    assert_int_equal(seen, 2);
}

/* Text written by csv_append is read back unchanged. */
/* Decimal commas where semicolons end the cells. */
static void test_decimal_commas(void **state)
{
    (void)state;
    double value = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(Csv) csv = parse("a;b\n0,31;1,2,3\n");
    csv->cell = g_strsplit("0,31;1,2,3", ";", -1);
    assert_true(csv_number(csv, "a", 0, 1, &value, &error));
    assert_float_equal(value, 0.31, 0);
    assert_false(csv_number(csv, "b", 0, 10, &value, &error));
}

static void test_append(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "",    "a,b",        "\"",
                                        "#x",    " x ", "a \"b\", c", "5\" disk"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GString) text = g_string_new("a,b\n");
        g_autofree char *shown = g_strdup_printf("2:%s|1|", texts[i]);
        csv_append(text, texts[i]);
        g_string_append(text, ",1\n");
        g_autoptr(Csv) csv = parse(text->str);
        g_autoptr(GString) got = g_string_new(NULL);
        assert_true(csv_each(csv, show, got, NULL));
        assert_string_equal(got->str, shown);
    }
    g_autoptr(GString) plain = g_string_new(NULL);
    csv_append(plain, "as it is");
    assert_string_equal(plain->str, "as it is");
}

static void test_file(void **state)
{
    (void)state;
    g_autofree char *file = NULL;
    g_autoptr(GError) error = NULL;
    const int descriptor = g_file_open_tmp("rows-XXXXXX.csv", &file, NULL);
    assert_true(descriptor >= 0);
    g_close(descriptor, NULL);
    assert_true(g_file_set_contents(file, "a\n1\n", -1, NULL));
    g_autoptr(Csv) csv = csv_read(file, &error);
    assert_no_error(error);
    g_autoptr(GString) shown = g_string_new(NULL);
    assert_true(csv_each(csv, show, shown, NULL));
    assert_string_equal(shown->str, "2:1|");
    g_remove(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),          cmocka_unit_test(test_mark),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_columns),
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_append),
        cmocka_unit_test(test_decimal_commas), cmocka_unit_test(test_taker_fails),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
