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
         "<svg aria-hidden=\"true\" class=\"gp\" w=\"1\">a &amp; 5 % \u00b1</svg>"},
        {"<svg>\n  <p/>\n\t<p/>two\n words</svg>", "<svg><p/><p/>two words</svg>"},
        {"<svg>" GROUP "<p/></g>" GROUP "\n</g>" GROUP "<p/></g></svg>",
         "<svg><p/><p/></svg>"},
        {"<svg><defs>\n<a/></defs><use xlink:href='#a'/></svg>",
         "<svg><defs><a/></defs><use href='#a'/></svg>"},
        {"<svg b=\"", "<svg aria-hidden=\"true\" class=\"gp\" b=\""},
        {"", ""},
        {"<svg><metadata>a</metadata>" GROUP
         "<path stroke='rgb(221,221,221)' class=\"gridline\"  d='M81.90,260.13 "
         "L401.79,260.13  '/></g>" GROUP
         "<path stroke='rgb(68,68,68)'  d='M81.94,98.50 L81.94,72.15 M1.00,2.00 '/>"
         "<g transform=\"translate(63.05,264.36)\" stroke=\"none\" "
         "fill=\"rgb(34,34,34)\" "
         "font-size=\"13.00\" text-anchor=\"end\">\n<text>0.25, a</text>\n</g></g></svg>",
         "<svg><path class=\"gl\" d='M81,260H401'/><path d='M81,98V72'/>"
         "<text x=\"63\" y=\"264\">0.25, a</text></svg>"},
        {"<svg>" GROUP
         "<path d='M1.00,2.00 '/><g stroke='none' shape-rendering='crispEdges'>"
         "<polygon fill='rgb(1,2,3)' points='92.79,298.50 123.59,298.50 123.59,120.37 "
         "92.79,120.37 '/></g>"
         "<path stroke='rgb(34,34,34)' d='M92.79,298.50 L92.79,120.38 L123.58,120.38 "
         "L123.58,298.50 "
         "L92.79,298.50 Z '/></g></svg>",
         "<svg><path fill='rgb(1,2,3)' d='M92,298.5H123V120.3H92z'/></svg>"},
        {"<svg><polygon points='10.00,20.00 30.00,40.00 50.00,60.00 '/><path "
         "stroke='red' "
         "d='M11.00,20.00 L30.00,40.00 Z'/><text>M10.55,3 L4</text></svg>",
         "<svg><polygon points='10,20 30,40 50,60'/><path stroke='red' "
         "d='M11,20 30,40 Z'/><text>M10.55,3 L4</text></svg>"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(file); i++) {
        g_autofree char *held = page_svg(file[i].svg, true, NULL);
        assert_string_equal(held, file[i].held);
    }
    g_autofree char *later = page_svg(file[3].svg, false, NULL);
    assert_string_equal(later, "<svg><use href='#a'/></svg>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_markup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
