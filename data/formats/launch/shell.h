/* Options of the commands of a shell script (private to data/formats). */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Calls `option` with the name of each option --NAME of the script's commands and the words
 * behind it, joined by spaces (NULL: none), in their order. Variables and arrays that the script
 * sets are put in their places, with the defaults of ${NAME:-DEFAULT}, and products and
 * quotients of numbers are worked out; conditions are not, so the last value counts.
 * KILTER_ERROR_INPUT for a quote or bracket that does not end. */
bool shell_options(const char *file, const char *text,
                   void (*option)(void *data, const char *name, const char *text),
                   void *data, GError **error);
