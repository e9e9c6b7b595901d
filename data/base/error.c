/* The error domain, and messages of one line. */
#include "data/base/error.h"

#include <string.h>

#include "data/base/text.h"

G_DEFINE_QUARK(kilter - error - quark, kilter_error)

/* Cuts what is quoted, and the text as a whole, to lengths that a person reads: what was refused
 * may be a file of one line. */
static void error_shorten(char *text)
{
    enum { QUOTED = 200, ALL = 6000 };
    static const char DOTS[] = "...";
    for (char *open = strchr(text, '\''), *close; open; open = strchr(open + 1, '\'')) {
        const bool quotes = open == text || !g_ascii_isalnum(open[-1]);
        close = quotes ? strchr(open + 1, '\'') : NULL;
        if (close && close - open > QUOTED + 1) {
            char *end = g_utf8_find_prev_char(text, open + 1 + QUOTED);
            memcpy(end, DOTS, sizeof DOTS - 1);
            memmove(end + sizeof DOTS - 1, close, strlen(close) + 1);
            close = end + sizeof DOTS - 1;
        }
        open = close ? close : open;
    }
    if (strlen(text) > ALL)
        memcpy(g_utf8_find_prev_char(text, text + ALL), DOTS, sizeof DOTS);
}

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

static bool error_set(GError **error, KilterError code, const char *text)
{
    g_autofree char *line = one_line(text);
    error_shorten(line);
    g_set_error_literal(error, KILTER_ERROR, code, line);
    return false;
}

bool kilter_fail(GError **error, KilterError code, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    return error_set(error, code, text);
}

bool refuse(GError **error, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    return error_set(error, KILTER_ERROR_INPUT, text);
}

void *refused(GError **error, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    error_set(error, KILTER_ERROR_INPUT, text);
    return NULL;
}

bool kilter_prefix(GError **error, const char *format, ...)
{
    if (!error || !*error)
        return false;
    TEXT_OF_ARGUMENTS(text, format);
    g_autofree char *line = one_line(text);
    g_prefix_error_literal(error, line);
    return false;
}
