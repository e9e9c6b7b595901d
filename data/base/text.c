/* Text files: read whole, and checked before anything believes that they are text. */
#include "data/base/text.h"

#include <errno.h>
#include <sys/stat.h>

#include "data/base/error.h"

/* More than any file that a person writes. */
enum { MOST_BYTES = 16 << 20 };

bool text_check(const char *name, const char *text, gsize length, GError **error)
{
    const char *end = NULL;
    guint line = 1;
    if (g_utf8_validate(text, (gssize)length, &end))
        return true;
    for (const char *at = text; at < end; at++)
        line += *at == '\n';
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "%s:%u: expected text in UTF-8, got the byte 0x%02x", name, line,
                       (unsigned char)*end);
}

char *text_read(const char *file, GError **error)
{
    struct stat status;
    g_autofree char *text = NULL;
    g_autoptr(GError) trouble = NULL;
    gsize length;
    if (stat(file, &status) != 0)
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: %s", file, g_strerror(errno));
    else if (!S_ISREG(status.st_mode))
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: expected a regular file", file);
    else if (status.st_size > MOST_BYTES)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: expected at most %d MiB of text, got %.0f MiB", file,
                    MOST_BYTES >> 20, (double)status.st_size / (1 << 20));
    else if (!g_file_get_contents(file, &text, &length, &trouble))
        kilter_fail(error, KILTER_ERROR_INPUT, "%s", trouble->message);
    else if (text_check(file, text, length, error))
        return g_steal_pointer(&text);
    return NULL;
}
