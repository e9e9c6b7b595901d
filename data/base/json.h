/* JSON: values that it cannot represent directly, and reading files. The types are jansson's. */
#ifndef KILTER_DATA_BASE_JSON_H
#define KILTER_DATA_BASE_JSON_H

#include <glib.h>
#include <stdint.h>

struct json_t;

/* A real, or null for a number that JSON cannot represent (infinite, NaN). */
struct json_t *json_number(double value);

/* An integer, or above 2^63 - 1 its digits as a string. */
struct json_t *json_unsigned(uint64_t value);

/* A string; invalid UTF-8 is replaced. */
struct json_t *json_text(const char *text);

/* Writes without line breaks, keys sorted, and releases the value. Caller frees with g_free. */
char *json_canonical(struct json_t *value);

/* The value in a file without repeated keys. KILTER_ERROR_INPUT names file and line, and `what` (as
 * in "plan") as what was expected. */
struct json_t *json_read_file(const char *file, const char *what, GError **error);

#endif
