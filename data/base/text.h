/* Texts: of files read whole, whose size is bounded, where what never ends is refused; of the
 * arguments of a function. */
#pragma once

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* The bytes of `file` with a zero after them: of a regular file, or of a pipe until it ends, at
 * most `most_bytes`; unpacked if it is gzipped. NULL with KILTER_ERROR_INPUT that names the file:
 * it cannot be read, is a folder or a device, or is longer. Caller frees. */
char *file_read(const char *file, gsize most_bytes, gsize *length, GError **error);

/* The whole of a regular file of at most 16 MiB of UTF-8 without zero bytes. NULL with
 * KILTER_ERROR_INPUT that names the file and, for a wrong byte, its line. The caller frees it. */
char *text_read(const char *file, GError **error);

/* A text in UTF-16 with a byte-order mark, as PowerShell writes what programs print, in UTF-8 with
 * its length; NULL for any other. The caller frees it. */
char *text_from_utf16(const char *text, size_t length, size_t *out_length);

/* Removes the escape codes of terminals (ESC [ ... letter) in place. */
void text_uncolour(char *line);
/* Cuts a line at blanks, tabs and CRs, in place, into at most `most` words; returns their
 * number. */
uint32_t text_split(char *line, char **word, uint32_t most);

/* In a function of variable arguments: declares `text`, what those after its parameter `format` say
 * as printf does. */
#define TEXT_OF_ARGUMENTS(text, format)                          \
    va_list text##_of;                                           \
    va_start(text##_of, format);                                 \
    g_autofree char *text = g_strdup_vprintf(format, text##_of); \
    va_end(text##_of)
