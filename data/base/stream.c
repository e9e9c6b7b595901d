/* Streams of bytes from files, plain or gzipped. */
#include "data/base/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/base/error.h"
#include "data/base/libyaml.h"

Stream *stream_open(const char *path, GError **error)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0)
        return refused(error, "%s: %s", path,
                       errno == ENOENT ? "no such file" : g_strerror(errno));
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) &&
        !S_ISSOCK(status.st_mode)) {
        close(fd);
        return refused(error, "%s: expected a regular file or a pipe", path);
    }
    Stream *stream = gzdopen(fd, "r");
    if (!stream)
        libyaml_no_memory();
    return stream;
}

void stream_close(Stream *stream)
{
    gzclose(stream);
}

/* Goes back to where a signal interrupted a read, of which zlib may have lost bytes; false where
 * nothing can be read again. */
static bool stream_return(Stream *stream, z_off_t at)
{
    gzclearerr(stream);
    return gzrewind(stream) == 0 && gzseek(stream, at, SEEK_SET) == at;
}

gsize stream_read(Stream *stream, void *bytes, gsize size, const char **trouble)
{
    const z_off_t at = gztell(stream);
    int n, code;
    do {
        n = gzread(stream, bytes, (unsigned)size);
        gzerror(stream, &code);
    } while (code == Z_ERRNO && errno == EINTR && stream_return(stream, at));
    if (code == Z_MEM_ERROR)
        libyaml_no_memory();
    *trouble = code == Z_OK || n == (int)size ? NULL
               : code == Z_ERRNO              ? g_strerror(errno)
                                              : "expected a whole gzip file";
    return (gsize)MAX(n, 0);
}

bool stream_head(const char *path, void *bytes, gsize size, gsize *length)
{
    const char *trouble = NULL;
    g_autoptr(Stream) stream =
        g_file_test(path, G_FILE_TEST_IS_REGULAR) ? stream_open(path, NULL) : NULL;
    *length = stream ? stream_read(stream, bytes, size, &trouble) : 0;
    return stream && !trouble;
}

char *stream_pack(const char *bytes, gsize *size)
{
    const gsize n = *size;
    z_stream z = {.next_in = (Bytef *)bytes};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        libyaml_no_memory();
    const gsize most = deflateBound(&z, n);
    char *packed = g_malloc(most);
    z.next_out = (Bytef *)packed;
    for (int code = Z_OK; code == Z_OK;) {
        z.avail_in = (uInt)MIN(n - z.total_in, UINT_MAX);
        z.avail_out = (uInt)MIN(most - z.total_out, UINT_MAX);
        code = deflate(&z, n - z.total_in > UINT_MAX ? Z_NO_FLUSH : Z_FINISH);
    }
    *size = z.total_out;
    deflateEnd(&z);
    return packed;
}
