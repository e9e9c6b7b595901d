/* What a command may use, and a word when it takes much. */
#ifndef KILTER_EXPERIMENTS_CLI_LIMITS_H
#define KILTER_EXPERIMENTS_CLI_LIMITS_H

#include <glib.h>
#include <stdbool.h>

/* From here on memory that cannot be had, and output that cannot be written, end the program with one line on stderr and
 * status 1; a command that takes a minute, or 2 GiB, says so once on stderr. Call first in main(). */
void limits_begin(void);

/* Says nothing of the kind any more: the command is to be quiet, or shows its progress itself. */
void limits_hush(void);

/* Bounds the memory of this process to "SIZE", such as 4GiB. KILTER_ERROR_INPUT: it is no size, or less than 64 MiB. */
bool limits_set_memory(const char *size, GError **error);

#endif
