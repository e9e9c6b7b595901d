/* Elements of pages: whatever a name holds, it ends neither an attribute nor an element. */
#include "experiments/report/page.h"
#include "tests/test.h"

static void test_escaped(void **state)
{
    (void)state;
    static const char NAME[] = "a\"><script>b</script>&'\xff";
    static const char *const COLUMNS[] = {"#x", "y", NULL};
    GString *page = g_string_new(NULL);
    page_add(page, "p", "%s", NAME);
    page_table(page, COLUMNS);
    page_row_of(page, NAME);
    page_link(page, NAME, NAME);
    page_mark(page, "n", NAME);
    page_row_end(page);
    page_table_end(page);
    g_autofree char *text = g_string_free(page, FALSE);
    assert_null(strstr(text, "<script>b"));
    assert_null(strstr(text, "a\""));
    assert_non_null(strstr(text, "id=\"a&quot;&gt;&lt;script&gt;b"));
    assert_non_null(strstr(text, "href=\"#a&quot;&gt;"));
    assert_true(g_utf8_validate(text, -1, NULL));
}

/* A whole page: the template is filled in, and its title is escaped. */
static void test_whole(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    json_t *facts = json_pack("{s:s, s:[]}", "heading", "<b>", "sweeps");
    g_autofree char *text = page_of("sweep.html", "a<b", facts, &error);
    assert_no_error(error);
    assert_non_null(strstr(text, "<title>a&lt;b</title>"));
    assert_non_null(strstr(text, "<h1>&lt;b&gt;</h1>"));
    assert_null(page_of("no-such.html", "a", facts, &error));
    assert_non_null(strstr(error->message, "no-such.html is missing"));
    json_decref(facts);
}

/* Scripts sort by more digits than are shown, which are left out where they are the same. */
static void test_numbers(void **state)
{
    (void)state;
    GString *page = g_string_new(NULL);
    page_number(page, 2, "%.0f");
    page_number(page, 1.0 / 3, "%.2f");
    page_number(page, 0.5, "%.1f");
    page_number(page, NAN, "%.2f");
    page_number(page, INFINITY, "%.2f");
    assert_string_equal(page->str,
                        "<td class=\"n\">2</td>\n"
                        "<td class=\"n\" data-v=\"0.333333333\">0.33</td>\n"
                        "<td class=\"n\">0.5</td>\n"
                        "<td class=\"n\"></td>\n<td class=\"n\">\u221e</td>\n");
    g_string_free(page, TRUE);
}

/* Sentences are in wider cells than words. */
static void test_long(void **state)
{
    (void)state;
    static const char LONG[] =
        "a cause of more than sixty bytes, which would be a column of its words";
    GString *page = g_string_new(NULL);
    page_cell(page, "a word");
    page_cell(page, NULL);
    page_cell(page, LONG);
    g_autofree char *expected =
        g_strdup_printf("<td>a word</td>\n<td></td>\n<td class=\"long\">%s</td>\n", LONG);
    assert_string_equal(page->str, expected);
    g_string_free(page, TRUE);
}

/* Blanks that a picture does not need are left out of its tags, not of its words. */
static void test_picture(void **state)
{
    (void)state;
    g_autofree char *svg =
        page_svg("<?xml?>\n<svg d=\"M1, 2\">\n<text>4 stages, 4 (a = 1)</text>\n</svg>",
                 true, NULL);
    assert_string_equal(svg, "<svg aria-hidden=\"true\" class=\"gp\" d=\"M1,2\">"
                             "<text>4 stages, 4 (a = 1)</text></svg>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escaped), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_long),
        cmocka_unit_test(test_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
