/* Members of zip archives, as APPNOTE.TXT of PKWARE has them. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The bytes of the first member in the archive's directory whose name `is_wanted` takes, with a
 * '\0' behind *length of them. NULL with KILTER_ERROR_INPUT that names the file: no archive, no
 * such member, or one that is packed or of more than `most` bytes. Other members are not looked
 * at, whatever their size. Caller frees. */
char *zip_member(const char *path, bool (*is_wanted)(const char *name), gsize most,
                 gsize *length, GError **error);
