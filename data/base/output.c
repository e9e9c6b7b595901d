/* Writes the output of a command, and never replaces anything but a plain file. */
#include "data/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"
#include "data/base/stream.h"

/* The descriptor that a system name such as "/dev/stdout" or "/dev/fd/3" stands for, or -1. */
static int descriptor_of(const char *file)
{
    static const char *const FOLDER[] = {"/dev/fd/", "/proc/self/fd/"};
    guint64 number;
    if (strcmp(file, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(file, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (guint i = 0; i < G_N_ELEMENTS(FOLDER); i++)
        if (g_str_has_prefix(file, FOLDER[i]) &&
            g_ascii_string_to_unsigned(file + strlen(FOLDER[i]), 10, 0, G_MAXINT, &number,
                                       NULL))
            return (int)number;
    return -1;
}

/* Whether the name stands for a stream: a device, a pipe, or an open descriptor. */
static bool is_stream(const char *file)
{
    struct stat status;
    return descriptor_of(file) >= 0 ||
           (stat(file, &status) == 0 && !S_ISREG(status.st_mode));
}

/* The file at the end of a chain of links, which need not exist; NULL if the chain has no end. The
 * caller frees it. */
static char *follow(const char *file)
{
    enum { MOST_LINKS = 40 };
    g_autofree char *at = g_strdup(file);
    for (int i = 0; i < MOST_LINKS; i++) {
        g_autofree char *to = g_file_read_link(at, NULL);
        if (!to)
            return g_steal_pointer(&at);
        g_autofree char *folder = g_path_get_dirname(at);
        char *next =
            g_path_is_absolute(to) ? g_strdup(to) : g_build_filename(folder, to, NULL);
        g_free(at);
        at = next;
    }
    return NULL;
}

bool output_check(const char *file, GError **error)
{
    if (g_file_test(file, G_FILE_TEST_IS_DIR))
        return refuse(error, "cannot write %s: it is a folder", file);
    if (is_stream(file))
        return descriptor_of(file) >= 0 || access(file, W_OK) == 0 ||
               refuse(error, "cannot write %s: %s", file, g_strerror(errno));
    g_autofree char *end = follow(file);
    if (!end)
        return refuse(error, "cannot write %s: too many symbolic links", file);
    g_autofree char *folder = g_path_get_dirname(end);
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
        return refuse(error, "cannot write %s: no folder %s", file, folder);
    if (access(folder, W_OK) != 0)
        return refuse(error, "cannot write %s: the folder is not writable", file);
    g_autofree char *beside = g_strconcat(end, ".XXXXXX", NULL); /* g_file_set_contents */
    return access(beside, F_OK) == 0 || errno == ENOENT ||
           refuse(error, "cannot write %s: %s", file, g_strerror(errno));
}

static bool write_all(int fd, const char *text, size_t length)
{
    g_assert(fd >= 0);
    while (length > 0) {
        const ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR)
            return false;
        text += MAX(n, 0);
        length -= (size_t)MAX(n, 0);
    }
    return true;
}

static bool write_stream(const char *file, const char *text, size_t length,
                         GError **error)
{
    const int own = descriptor_of(file);
    const int fd = own >= 0 ? own : open(file, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    const bool good = fd >= 0 && write_all(fd, text, length);
    const int wrong = errno;
    if (fd >= 0 && own < 0)
        close(fd);
    return good || kilter_fail(error, KILTER_ERROR_FAILED, "cannot write %s: %s", file,
                               g_strerror(wrong));
}

bool output_write(const char *file, const char *text, gssize length, GError **error)
{
    g_assert(file && text && length >= -1);
    gsize n = length < 0 ? strlen(text) : (size_t)length;
    if (is_stream(file))
        return write_stream(file, text, n, error);
    g_autofree char *packed = NULL;
    if (g_str_has_suffix(file, ".gz"))
        text = packed = stream_pack(text, &n);
    g_autofree char *end = follow(file);
    g_autoptr(GError) trouble = NULL;
    if (!end)
        return refuse(error, "cannot write %s: too many symbolic links", file);
    return g_file_set_contents(end, text, (gssize)n, &trouble) ||
           kilter_fail(error, KILTER_ERROR_FAILED, "cannot write %s: %s", file,
                       trouble->message);
}

bool output_take(const char *file, char *text, GError **error)
{
    g_autofree char *taken = text;
    return taken && output_write(file, taken, -1, error);
}

void output_forget(const char *folder)
{
    g_autoptr(GDir) dir = folder ? g_dir_open(folder, 0, NULL) : NULL;
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        unlink(file);
    }
    if (folder)
        rmdir(folder);
}
