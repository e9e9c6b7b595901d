/* Files that are read as a stream of bytes, plain or gzipped. */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

/* The file's bytes, unpacked if they begin like a gzip file. NULL with KILTER_ERROR_INPUT that
 * names the file. Free with g_object_unref. */
GInputStream *stream_open(const char *path, GError **error);

/* The plain bytes of a gzip file's, of which there may be at most `most`; *size: their number, in
 * and out. NULL with KILTER_ERROR_INPUT that names the file. Caller frees. */
char *stream_unpack(const char *file, const char *bytes, gsize *size, gsize most,
                    GError **error);

/* Reads the first bytes of a regular file, unpacked as above, up to `size` of them; false if it
 * cannot be read. */
bool stream_head(const char *path, void *bytes, gsize size, gsize *length);
