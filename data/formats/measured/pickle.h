/* Lists, dicts, texts and integers in a pickle of Python, protocols 2 to 5, as JSON. Nothing is run
 * and no object made: an operation that asks for one is refused. */
#pragma once

#include <glib.h>
#include <jansson.h>

/* Of dicts only the members `key`, which NULL ends, are kept. Null are: tuples, reals, truth
 * values, and lists and dicts that are used again, as stacks of calls are. NULL with
 * KILTER_ERROR_INPUT that names file and byte. Free with json_decref. */
json_t *pickle_parse(const char *file, const char *bytes, gsize length,
                     const char *const *key, GError **error);
