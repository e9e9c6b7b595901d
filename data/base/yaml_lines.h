/* The line of each key in a YAML text. libcyaml forgets lines once it has loaded a file, and stops
 * at the first fault, so one pass over libyaml's events (which libcyaml itself reads) keeps the
 * lines and names all faults. It also refuses constructs that Kilter's files never contain. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

struct cyaml_schema_value; /* cyaml/cyaml.h */

typedef struct YamlLines YamlLines;

/* A text that stands for a mapping whose first key is `link`. */
typedef struct {
    size_t from, to; /* characters */
} YamlShort;

/* KILTER_ERROR_INPUT, "FILE:LINE: ...", if the text is not one well-formed document of
 * mappings, lists and texts with unique keys, without aliases and NUL bytes, or not of the schema
 * (NULL: any), which also says where a text is short for a mapping. */
YamlLines *yaml_lines_read(const char *file, const char *text, size_t length,
                           const struct cyaml_schema_value *schema, GError **error);
AUTOPTR(yaml_lines_free, YamlLines)

/* The line (from 1) of a key such as "machines[1].gpus", or of the nearest key around it. */
uint32_t yaml_lines_at(const YamlLines *lines, const char *key);

/* The short texts (YamlShort) in their order. */
const GArray *yaml_lines_short(const YamlLines *lines);
