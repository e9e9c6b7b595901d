/* HTML, escaped. */
#include "experiments/report/page.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/path.h"
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
    g_autofree char *plain = g_utf8_make_valid(title, -1);
    g_autofree char *escaped = g_markup_escape_text(plain, -1);
    return g_strdup_printf(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n"
        "<style>%s</style>\n</head>\n<body>\n%s<script>%s</script>\n</body>\n</html>\n",
        escaped, css, body, js);
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
