/* HTML, escaped. */
#include "experiments/report/page.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "experiments/render.h"

static char *asset(const char *name, GError **error)
{
    g_autofree char *relative = g_strdup_printf("plots/%s", name);
    g_autofree char *path = path_find(relative);
    char *text = NULL;
    if (!path)
        refuse(error, "%s is missing: reports need it", relative);
    else
        g_file_get_contents(path, &text, NULL, error);
    return text;
}

/* Text that neither ends an element nor an attribute. Caller frees. */
static char *escape(const char *text)
{
    g_autofree char *plain = g_utf8_make_valid(text, -1);
    return g_markup_escape_text(plain, -1);
}

char *page_of(const char *template, const char *title, const json_t *facts,
              GError **error)
{
    static const char PART[] =
        "<!--sweeps-->\n"; /* stands for a template that two pages have */
    g_autofree char *whole = asset(template, error);
    g_autofree char *part = whole ? asset("sweeps.html", error) : NULL;
    g_autofree char *css = part ? asset("report.css", error) : NULL;
    g_autofree char *js = css ? asset("report.js", error) : NULL;
    if (!js)
        return NULL;
    g_auto(GStrv) around = g_strsplit(whole, PART, -1);
    g_autofree char *text = g_strjoinv(part, around);
    g_autofree char *body = render_html(text, facts);
    g_autofree char *escaped = escape(title);
    return g_strdup_printf(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n"
        "<style>%s</style>\n</head>\n<body>\n%s<script>%s</script>\n</body>\n</html>\n",
        escaped, css, body, js);
}

static void page_text(GString *page, const char *text)
{
    g_autofree char *escaped = escape(text);
    g_string_append(page, escaped);
}

void page_anchor(GString *page, const char *id, const char *text)
{
    g_autofree char *escaped = escape(id);
    g_string_append_printf(page, "<a href=\"#%s\">", escaped);
    page_text(page, text);
    g_string_append(page, "</a>");
}

static void close_element(GString *page, const char *element)
{
    g_string_append_printf(page, "</%.*s>\n", (int)strcspn(element, " "), element);
}

void page_add(GString *page, const char *element, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    g_string_append_printf(page, "<%s>", element);
    page_text(page, text);
    close_element(page, element);
}

char *page_svg(const char *svg, bool first, GError **error)
{
    g_autofree char *table = asset("picture.txt", error);
    g_auto(GStrv) row = g_strsplit(table ? table : "", "\n", -1);
    char *text = table ? g_utf8_make_valid(svg, -1) : NULL;
    for (char **pattern = row; text && *pattern; pattern++) {
        char *by = strchr(*pattern, '\t');
        if (!by || **pattern == '#')
            continue;
        *by = '\0';
        g_autoptr(GRegex) regex = g_regex_new(*pattern, G_REGEX_DOTALL, 0, error);
        char *next = regex ? g_regex_replace(regex, text, -1, 0, by + 1, 0, error) : NULL;
        g_free(text);
        text = next;
    }
    char *shapes = text && !first ? strstr(text, "<defs>") : NULL,
         *end = shapes ? strstr(shapes, "</defs>") : NULL;
    if (end)
        memmove(shapes, end + strlen("</defs>"), strlen(end + strlen("</defs>")) + 1);
    return text;
}

/* --- tables --- */

void page_table(GString *page, const char *const *columns)
{
    g_string_append(page,
                    "<div class=\"scroll\">\n<table class=\"sort\">\n<thead>\n<tr>\n");
    for (; *columns; columns++) {
        const bool number = **columns == '#';
        page_add(page, number ? "th class=\"n\" scope=\"col\"" : "th scope=\"col\"", "%s",
                 *columns + number);
    }
    g_string_append(page, "</tr>\n</thead>\n<tbody>\n");
}

void page_row_of(GString *page, const char *id)
{
    g_autofree char *escaped = escape(id);
    g_string_append_printf(page, "<tr id=\"%s\">\n", escaped);
}

void page_row_end(GString *page)
{
    g_string_append(page, "</tr>\n");
}

void page_mark(GString *page, const char *class, const char *text)
{
    g_autofree char *open =
        class ? g_strdup_printf("td class=\"%s\"", class) : g_strdup("td");
    page_add(page, open, "%s", text ? text : "");
}

void page_cell(GString *page, const char *text)
{
    enum { LONG = 60 }; /* bytes: sentences get a wider column, so that rows stay low */
    page_mark(page, text && strlen(text) > LONG ? "long" : NULL, text);
}

void page_link(GString *page, const char *id, const char *text)
{
    g_string_append(page, "<td>");
    page_anchor(page, id, text);
    g_string_append(page, "</td>\n");
}

/* Scripts sort by the number behind what is shown. */
void page_number(GString *page, double value, const char *format)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    if (!isfinite(value)) {
        page_mark(page, "n", isnan(value) ? "" : "\u221e");
        return;
    }
    g_ascii_formatd(exact, sizeof exact, "%.9g", value);
    g_autofree char *shown = number_rounded(value, format);
    g_string_append(page, "<td class=\"n\"");
    if (strcmp(exact, shown) != 0)
        g_string_append_printf(page, " data-v=\"%s\"", exact);
    g_string_append_printf(page, ">%s</td>\n", shown);
}

void page_table_end(GString *page)
{
    g_string_append(page, "</tbody>\n</table>\n</div>\n");
}
