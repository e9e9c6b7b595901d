/* Pictures of gnuplot in a page: the same markup in fewer bytes, without what only files need. */
#include "tests/test.h"

#include "experiments/report/page.h"

#define GROUP                                                                         \
    "<g fill=\"none\" color=\"black\" stroke=\"currentColor\" stroke-width=\"1.00\" " \
    "stroke-linecap=\"butt\" stroke-linejoin=\"miter\">"

static void test_markup(void **state)
{
    (void)state;
    static const struct {
        const char *svg, *held;
    } file[] = {
        {"<?xml version=\"1.0\"?>\n<svg \n w=\"1\"\n xmlns=\"http://a/b\">a &amp; 5 % "
         "\u00b1</svg>",
         "<svg aria-hidden=\"true\" w=\"1\" >a &amp; 5 % \u00b1</svg>"},
        {"<svg>\n  <p/>\n\t<p/>two\n words</svg>", "<svg><p/><p/>two words</svg>"},
        {"<svg>" GROUP "<p/></g>" GROUP "\n</g>" GROUP "<p/></g></svg>",
         "<svg><g class=\"gp\"><p/></g><g class=\"gp\"><p/></g></svg>"},
        {"<svg><defs>\n<a/></defs><use xlink:href='#a'/></svg>",
         "<svg><defs><a/></defs><use href='#a'/></svg>"},
        {"<svg b=\"", "<svg aria-hidden=\"true\" b=\""},
        {"", ""},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(file); i++) {
        g_autofree char *held = page_svg(file[i].svg, true);
        assert_string_equal(held, file[i].held);
    }
    g_autofree char *later = page_svg(file[3].svg, false);
    assert_string_equal(later, "<svg><use href='#a'/></svg>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_markup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
