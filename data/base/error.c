/* The error domain, and messages of one line. */
#include "data/base/error.h"

G_DEFINE_QUARK(kilter - error - quark, kilter_error)

/* The text as one line of valid UTF-8, since texts quoted from input may contain anything. The
 * caller frees it. */
static char *one_line(const char *text)
{
    char *line = g_utf8_make_valid(text, -1);
    for (char *c = line; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return line;
}

bool kilter_fail(GError **error, KilterError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = one_line(text);
    g_set_error_literal(error, KILTER_ERROR, code, line);
    return false;
}

void kilter_prefix(GError **error, const char *format, ...)
{
    if (!error || !*error)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = one_line(text);
    g_prefix_error_literal(error, line);
}
