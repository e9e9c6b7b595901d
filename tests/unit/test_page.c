/* Elements of pages: whatever a name holds, it ends neither an attribute nor an element. */
#include "experiments/render.h"
#include "experiments/report/page.h"
#include "tests/test.h"

static void test_escaped(void **state)
{
    (void)state;
    static const char NAME[] = "a\"><script>b</script>&'";
    json_t *facts = json_pack("{s:s}", "name", NAME);
    g_autofree char *text = render_html("<p>{name}</p><tr id=\"{name}\">", facts);
    assert_null(strstr(text, "<script>b"));
    assert_null(strstr(text, "a\""));
    assert_non_null(strstr(text, "id=\"a&quot;&gt;&lt;script&gt;b"));
    json_decref(facts);
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
        cmocka_unit_test(test_escaped),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
