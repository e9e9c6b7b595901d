/* Text files: read whole, and checked to be text before use. */
#include "data/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"

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

/* Bytes of fd to the end, or until there are more than `most`; NULL: reading failed, see errno. */
static GString *read_all(int fd, gsize most)
{
    enum { STEP = 1 << 16 };
    GString *bytes = g_string_new(NULL);
    for (ssize_t n = 1; n != 0 && bytes->len <= most;) {
        const gsize before = bytes->len;
        g_string_set_size(bytes, before + STEP);
        n = read(fd, bytes->str + before, STEP);
        g_string_set_size(bytes, before + (gsize)MAX(n, 0));
        if (n < 0 && errno != EINTR) {
            g_string_free(bytes, TRUE);
            return NULL;
        }
    }
    return bytes;
}

/* Whether an open file is one that ends. */
static bool ends(int fd, const char *file, GError **error)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return refuse(error, "%s: %s", file,
                      errno == ENOENT ? "no such file" : g_strerror(errno));
    return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) ||
           S_ISSOCK(status.st_mode) ||
           refuse(error, "%s: expected a regular file or a pipe", file);
}

char *file_read(const char *file, gsize most_bytes, gsize *length, GError **error)
{
    g_assert(file && length && most_bytes < G_MAXSSIZE);
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const bool good = ends(fd, file, error);
    g_autoptr(GString) bytes = good ? read_all(fd, most_bytes) : NULL;
    const int wrong = errno;
    if (fd >= 0)
        close(fd);
    if (good && !bytes)
        refuse(error, "cannot read %s: %s", file, g_strerror(wrong));
    else if (good && bytes->len > most_bytes)
        refuse(error, "%s: expected at most %zu bytes, got more", file, most_bytes);
    else if (good) {
        *length = bytes->len;
        return g_string_free(g_steal_pointer(&bytes), FALSE);
    }
    return NULL;
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
