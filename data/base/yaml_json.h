/* YAML of any shape as JSON: numbers, true, false and null where they are written without quotes,
 * texts otherwise. */
#pragma once

#include <glib.h>

struct json_t;

/* NULL with KILTER_ERROR_INPUT, "FILE:LINE: ...": no document of mappings, lists and texts, keys
 * that repeat, aliases, or deeper than YAML_MOST_DEPTH. */
enum { YAML_MOST_DEPTH = 32 };
struct json_t *yaml_to_json(const char *file, const char *text, gsize length,
                            GError **error);
