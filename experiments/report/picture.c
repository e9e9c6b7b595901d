/* Pictures of gnuplot as a part of pages. */
#include "experiments/report/page.h"

#include <stdint.h>

/* Each is replaced by the text after it. gnuplot opens a group with the same attributes around
 * nearly every element, a third of its files: plots/report.css has them as class gp. */
static const struct {
    const char *pattern, *by;
} CHANGE[] = {
    {"^.*?(?=<svg)", ""},
    {" ?xmlns(:xlink)?=\"[^\"]*\"| id=\"[^\"]*\"| font-family=\"[^\"]*\"", ""},
    {"<title>[^<]*</title>|<desc>[^<]*</desc>|<g[^>]*>\\s*</g>", ""},
    {"<svg ", "<svg aria-hidden=\"true\" "}, /* the box around it has the words */
    {"xlink:href", "href"},
    {"<g fill=\"none\" color=\"black\" stroke=\"currentColor\" stroke-width=\"1.00\" "
     "stroke-linecap=\"butt\" stroke-linejoin=\"miter\">",
     "<g class=\"gp\">"},
    {" stroke-linecap=\"butt\"| stroke-linejoin=\"miter\"", ""},
    {"(?<=>)\\s+(?=<)", ""},
    {"\\s+", " "},
    {"((?<=[,(]) | (?==)|(?<==) )(?=[^<>]*>)", ""}, /* in tags, not in words */
};

char *page_svg(const char *svg, bool first)
{
    char *text = g_utf8_make_valid(svg, -1);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE) + (first ? 0 : 1); i++) {
        const bool shapes = i == G_N_ELEMENTS(CHANGE);
        g_autoptr(GRegex) regex = g_regex_new(
            shapes ? "<defs>.*?</defs>" : CHANGE[i].pattern, G_REGEX_DOTALL, 0, NULL);
        char *next = g_regex_replace_literal(regex, text, -1, 0,
                                             shapes ? "" : CHANGE[i].by, 0, NULL);
        g_free(text);
        text = next;
    }
    return text;
}
