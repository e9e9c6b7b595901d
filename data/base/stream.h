/* Files that are read as a stream of bytes, plain or gzipped. */
#pragma once

#include <stdbool.h>

#include "data/base/free.h"

typedef struct gzFile_s Stream;

AUTOPTR(stream_close, Stream)

/* The bytes of a regular file, or of a pipe until it ends, unpacked if they begin like a gzip
 * file. NULL with KILTER_ERROR_INPUT that names the file: it cannot be read, or never ends. */
Stream *stream_open(const char *path, GError **error);

/* Reads the next bytes, and returns how many: fewer than `size` (of at most 2^31) at the end, or
 * in trouble; *trouble: why no more come, else NULL. */
gsize stream_read(Stream *stream, void *bytes, gsize size, const char **trouble);

/* The bytes gzipped, without a time; *size: their number, in and out. Caller frees. */
char *stream_pack(const char *bytes, gsize *size);

/* Reads the first bytes of a regular file, unpacked as above, up to `size` of them; false if it
 * cannot be read. */
bool stream_head(const char *path, void *bytes, gsize size, gsize *length);
