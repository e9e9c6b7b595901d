/* Streams of bytes from files, plain or gzipped. */
#include "data/base/stream.h"

#include "data/base/error.h"

GInputStream *stream_open(const char *path, GError **error)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GInputStream) stream = G_INPUT_STREAM(g_file_read(file, NULL, &failure));
    unsigned char magic[2] = {0};
    if (!stream)
        return refused(error, "%s: %s", path,
                       g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_NOT_FOUND)
                           ? "no such file"
                           : failure->message);
    const gssize n = g_input_stream_read(stream, magic, sizeof magic, NULL, NULL);
    if (!g_seekable_seek(G_SEEKABLE(stream), 0, G_SEEK_SET, NULL, &failure))
        return refused(error, "%s: %s", path, failure->message);
    if (n != 2 || magic[0] != 0x1f || magic[1] != 0x8b)
        return g_steal_pointer(&stream);
    g_autoptr(GConverter) gzip =
        G_CONVERTER(g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP));
    return g_converter_input_stream_new(stream, gzip);
}

bool stream_head(const char *path, void *bytes, gsize size, gsize *length)
{
    *length = 0;
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return false;
    g_autoptr(GInputStream) stream = stream_open(path, NULL);
    return stream && g_input_stream_read_all(stream, bytes, size, length, NULL, NULL);
}

char *stream_unpack(const char *file, const char *bytes, gsize *size, gsize most,
                    GError **error)
{
    g_autoptr(GConverter) gzip =
        G_CONVERTER(g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP));
    g_autoptr(GInputStream) packed =
        g_memory_input_stream_new_from_data(bytes, (gssize)*size, NULL);
    g_autoptr(GInputStream) stream = g_converter_input_stream_new(packed, gzip);
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GError) failure = NULL;
    guint8 block[1 << 16];
    gssize n = 1;
    while (n > 0 && out->len <= most) {
        n = g_input_stream_read(stream, block, sizeof block, NULL, &failure);
        g_byte_array_append(out, block, (guint)MAX(n, 0));
    }
    if (n < 0 || out->len > most)
        return refused(error, "%s: expected a whole gzip file of at most %zu bytes", file,
                       most);
    *size = out->len;
    return (char *)g_byte_array_free(g_steal_pointer(&out), FALSE);
}
