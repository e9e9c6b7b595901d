/* SVG files as pictures of a page: the address holds the same markup in fewer bytes, and nothing that a reader of HTML minds. */
#include "tests/test.h"

#include "experiments/report/page.h"

#define GROUP                                                                         \
    "<g fill=\"none\" color=\"black\" stroke=\"currentColor\" stroke-width=\"1.00\" " \
    "stroke-linecap=\"butt\" stroke-linejoin=\"miter\">"

/* The beginning of each picture: the attributes of gnuplot's groups, and its font, are named once. */
#define STYLE                                                                       \
    "<style>svg{font-family:'DejaVu Sans',sans-serif}.p{fill:none;color:black;"     \
    "stroke:currentColor;stroke-width:1;stroke-linecap:butt;stroke-linejoin:miter}" \
    "</style>"

/* The markup that the page's picture of `svg` holds. Caller frees. */
static char *held(const char *svg)
{
    static const char START[] = "src=\"data:image/svg+xml,";
    g_autoptr(GString) page = g_string_new("");
    page_picture(page, svg, strlen(svg), "words");
    const char *from = strstr(page->str, START);
    assert_non_null(from);
    from += strlen(START);
    g_autofree char *address = g_strndup(from, strcspn(from, "\""));
    for (const char *c = address; *c; c++)
        if (!g_ascii_isalnum(*c) && !strchr("-_.!*'(),;/=+%", *c))
            TEST_FAIL_AT(__FILE__, __LINE__, "'%c' stands in %s", *c, address);
    char *markup = g_uri_unescape_string(address, NULL);
    assert_non_null(markup);
    return markup;
}

static void test_markup(void **state)
{
    (void)state;
    static const struct {
        const char *svg, *held;
    } file[] = {
        {"<svg w=\"1\">a &amp; 5 % \u00b1</svg>",
         "<svg w='1'>" STYLE "a &amp; 5 % \u00b1</svg>"},
        {"<svg a=\"it's\" b=\"x\">\"</svg>", "<svg a=\"it's\" b='x'>" STYLE "\"</svg>"},
        {"<svg>\n  <p/>\n\t<p/>two\n words</svg>",
         "<svg>" STYLE "<p/><p/>two words</svg>"},
        {"<svg b=\"", "<svg b=\""},
        {"", ""},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(file); i++) {
        g_autofree char *markup = held(file[i].svg);
        assert_string_equal(markup, file[i].held);
    }
}

/* gnuplot's groups are named once. */
static void test_groups(void **state)
{
    (void)state;
    g_autofree char *markup =
        held("<svg w=\"1\">" GROUP "<p/></g>" GROUP "<p/></g></svg>");
    assert_string_equal(markup, "<svg w='1'>" STYLE
                                "<g class='p'><p/></g><g class='p'><p/></g></svg>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_markup),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
