/* Files that a user names for the output of a command, as with -o FILE; the end of scratch
 * folders. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether `file` can be written, as far as can be known in advance: it is not a folder, and it is
 * writable or its folder is. KILTER_ERROR_INPUT says what is wrong. */
bool output_check(const char *file, GError **error);

/* Writes `length` bytes (-1: up to the '\0') to `file`. A regular file, or one that does not
 * exist, appears whole or stays as it was; a symbolic link is followed, and the link stays.
 * Anything else (a device, a pipe) is opened and written, never replaced. KILTER_ERROR_FAILED
 * says what is wrong, such as a full disk; what output_check finds is KILTER_ERROR_INPUT. A file
 * whose name ends in .gz is gzipped. */
bool output_write(const char *file, const char *text, gssize length, GError **error);
/* Writes a text, and frees it; false of NULL, which stands for an error that is set. */
bool output_take(const char *file, char *text, GError **error);

/* Removes a scratch folder with the files in it; NULL: there is none. */
void output_forget(const char *folder);
