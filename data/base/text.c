/* Text files: read whole, and checked to be text before use. */
#include "data/base/text.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/stream.h"

/* The largest text file: larger than any file that a person writes. */
enum { MOST_BYTES = 16 << 20 };

/* Whether `text`, in messages `name`, is UTF-8 without zero bytes; KILTER_ERROR_INPUT: the line. */
static bool text_check(const char *name, const char *text, gsize length, GError **error)
{
    const char *end = NULL;
    guint line = 1;
    if (g_utf8_validate(text, (gssize)length, &end))
        return true;
    for (const char *at = text; at < end; at++)
        line += *at == '\n';
    return refuse(error, "%s:%u: expected text in UTF-8, got the byte 0x%02x", name, line,
                  (unsigned char)*end);
}

char *file_read(const char *file, gsize most_bytes, gsize *length, GError **error)
{
    enum { STEP = 1 << 16 };
    g_assert(file && length && most_bytes < G_MAXSSIZE);
    const char *trouble = NULL;
    g_autoptr(Stream) stream = stream_open(file, error);
    g_autoptr(GString) bytes = stream ? g_string_new(NULL) : NULL;
    for (gsize n = STEP; stream && n == STEP && bytes->len <= most_bytes;) {
        const gsize before = bytes->len;
        g_string_set_size(bytes, before + STEP);
        n = stream_read(stream, bytes->str + before, STEP, &trouble);
        g_string_set_size(bytes, before + n);
    }
    if (trouble)
        return refused(error, "%s: %s", file, trouble);
    if (stream && bytes->len > most_bytes)
        return refused(error, "%s: expected at most %zu bytes, got more", file,
                       most_bytes);
    *length = stream ? bytes->len : 0;
    return stream ? g_string_free(g_steal_pointer(&bytes), FALSE) : NULL;
}

char *text_read(const char *file, GError **error)
{
    gsize length;
    /* A pipe would be empty when the file's contents are looked at again, for the result's
     * identity. */
    if (g_file_test(file, G_FILE_TEST_EXISTS) &&
        !g_file_test(file, G_FILE_TEST_IS_REGULAR))
        return refused(error, "%s: expected a regular file", file);
    g_autofree char *text = file_read(file, MOST_BYTES, &length, error);
    return text && text_check(file, text, length, error) ? g_steal_pointer(&text) : NULL;
}

char *text_from_utf16(const char *text, size_t length, size_t *out_length)
{
    gsize n = 0;
    char *out = NULL;
    if (length >= 2 &&
        (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        out = g_convert(text, (gssize)length, "UTF-8", "UTF-16", NULL, &n, NULL);
    if (out)
        *out_length = n;
    return out;
}

void text_uncolour(char *line)
{
    char *to = line;
    for (const char *from = line; *from;) {
        if (from[0] == '\033' && from[1] == '[') {
            from += 2 + strspn(from + 2, "0123456789;");
            from += *from != '\0';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

uint32_t text_split(char *line, char **word, uint32_t most)
{
    uint32_t n = 0;
    char *save = NULL;
    for (char *w = strtok_r(line, " \t\r", &save); w && n < most;
         w = strtok_r(NULL, " \t\r", &save))
        word[n++] = w;
    return n;
}
