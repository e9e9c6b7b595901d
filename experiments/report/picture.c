/* SVG files as pictures of a page. */
#include "experiments/report/page.h"

#include <string.h>

/* gnuplot opens a group with these attributes around nearly every element: a third of its files. */
static const char GROUP[] =
    "<g fill=\"none\" color=\"black\" stroke=\"currentColor\" stroke-width=\"1.00\" "
    "stroke-linecap=\"butt\" stroke-linejoin=\"miter\">";
static const char SHORT[] = "<g class='p'>";
/* Attributes of many elements, of which the first two are what SVG has anyway. */
static const char *const COMMON[] = {" stroke-linecap=\"butt\"",
                                     " stroke-linejoin=\"miter\"",
                                     " font-family=\"DejaVu Sans\""};
static const char STYLE[] =
    "<style>svg{font-family:'DejaVu "
    "Sans',sans-serif}.p{fill:none;color:black;stroke:currentColor;stroke-width:1;"
    "stroke-linecap:butt;stroke-linejoin:miter}</style>";

/* The end of the white space at c. */
static const char *skip(const char *c)
{
    return c + strspn(c, " \t\n");
}

/* White space is one space; none between two tags that stand in lines of their own, nor inside a
 * tag after a comma or a parenthesis or beside an equals sign. */
static void squeeze(GString *text)
{
    g_autofree char *copy = g_strdup(text->str);
    bool inside = false;
    g_string_truncate(text, 0);
    for (const char *c = copy; *c;) {
        const char *end = skip(c);
        const char before = text->len > 0 ? text->str[text->len - 1] : '\0';
        const bool lines = memchr(c, '\n', (size_t)(end - c)) != NULL;
        const bool idle = inside ? strchr(",(=", before) || *end == '='
                                 : lines && *end == '<' && before == '>';
        if (end > c && !(before && idle))
            g_string_append_c(text, ' ');
        c = end;
        inside = *c == '<' || (inside && *c != '>');
        if (*c)
            g_string_append_c(text, *c++);
    }
}

/* The same picture in fewer bytes. */
static char *shorten(const char *svg, gsize length)
{
    g_autoptr(GString) text = g_string_new_len(svg, (gssize)length);
    g_string_replace(text, GROUP, SHORT, 0);
    const char *start = strstr(text->str, "<svg");
    const char *end = start ? strchr(start, '>') : NULL;
    if (end)
        g_string_insert(text, end + 1 - text->str, STYLE);
    squeeze(text);
    for (guint i = 0; i < G_N_ELEMENTS(COMMON); i++)
        g_string_replace(text, COMMON[i], "", 0);
    return g_strdup(text->str);
}

/* Quotation marks of an attribute become apostrophes where its value has none, as the address
 * stands in quotation marks. */
static const char *quote(const char *at, const char *closing)
{
    const char *apostrophe = memchr(at, '\'', (size_t)(closing - at));
    return apostrophe ? "%22" : "'";
}

/* As an address of the kind data:, in which markup stays readable; half as long as in base 64. */
static void add_escaped(GString *page, const char *svg)
{
    const char *mark = NULL; /* of the attribute that is open */
    bool inside = false;     /* of a tag */
    for (const char *c = svg; *c; c++) {
        if (mark && *c == '"') {
            g_string_append(page, mark);
            mark = NULL;
        } else if (inside && *c == '"' && strchr(c + 1, '"')) {
            mark = quote(c + 1, strchr(c + 1, '"'));
            g_string_append(page, mark);
        } else if (*c == '"') {
            g_string_append(page, "%22");
        } else if (g_ascii_isalnum(*c) || strchr("-_.!*'(),;/=+", *c)) {
            g_string_append_c(page, *c);
        } else {
            g_string_append_printf(page, "%%%02X", (unsigned)(unsigned char)*c);
        }
        inside = *c == '<' || (inside && *c != '>');
    }
}

void page_picture(GString *page, const char *svg, gsize length, const char *words)
{
    g_autofree char *less = shorten(svg, length);
    g_autofree char *alt = g_markup_escape_text(words, -1);
    g_string_append_printf(page, "<figure><img alt=\"%s\" src=\"data:image/svg+xml,",
                           alt);
    add_escaped(page, less);
    g_string_append(page, "\"></figure>\n");
}
