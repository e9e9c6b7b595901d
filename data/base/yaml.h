/* Files that people write (clusters, experiments): YAML, read by libcyaml under a schema, with
 * errors that name file, line and key on one line:
 *
 *     my.yaml:7: machines[1].gpsu: unknown key; expected one of name, count, type, gpus, inner, source
 *
 * A key is the path from the top, entries of lists counted from 0. Schemas hold mappings, lists and
 * texts only: numbers are parsed here, from texts, because libcyaml reads "08" as 0 and "3.5" as 3.
 * Aliases, several documents and repeated keys are refused. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"
#include "data/base/units.h"

/* Declared in cyaml/cyaml.h; the top schema must be a mapping with CYAML_FLAG_POINTER. */
struct cyaml_schema_value;

typedef struct Yaml Yaml;

/* Whether a text is YAML of the depth and the keys that readers take; to be asked before a parser
 * gets it that has no bounds. */
bool yaml_is_sound(const char *file, const char *text, size_t length, GError **error);

/* Reads `file`, or `length` bytes of text that messages call `file`. `schema` must
 * outlive the result. KILTER_ERROR_INPUT as above. */
Yaml *yaml_read(const char *file, const struct cyaml_schema_value *schema,
                GError **error);
Yaml *yaml_parse(const char *file, const char *text, size_t length,
                 const struct cyaml_schema_value *schema, GError **error);
AUTOPTR(yaml_close, Yaml) /* not yaml_free: that symbol is libyaml's */

/* The name of the file in messages. */
const char *yaml_file(const Yaml *yaml);

/* The loaded structure of the schema's top mapping; owned by the Yaml. */
const void *yaml_data(const Yaml *yaml);

/* "parent.name"; the name alone at the top, where the parent is "". Caller frees. */
static inline char *yaml_key(const char *parent, const char *name)
{
    return *parent ? g_strconcat(parent, ".", name, NULL) : g_strdup(name);
}

/* A key in words, as in yaml_at(yaml, "machines[%u].name", i); it lives as long as the Yaml. */
const char *yaml_at(const Yaml *yaml, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Fails with "FILE:LINE: KEY: message" for a key that was read; a missing key gets the line of the
 * nearest key around it. Always false. */
bool yaml_fail(const Yaml *yaml, GError **error, const char *key, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* The same for readers that name all that is wrong: the messages are kept, and yaml_is_good fails
 * with all of them, if there are any. yaml_pass_on keeps one of another file. */
bool yaml_wrong(const Yaml *yaml, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
bool yaml_pass_on(const Yaml *yaml, const GError *failure);
bool yaml_is_good(const Yaml *yaml, GError **error);

/* The values that a key accepts: of a quantity, in [low, high]. */
typedef struct {
    Quantity quantity;
    double low, high;
} YamlRange;

/* Parses a quantity in the range; else yaml_wrong names `key` and the range. */
bool yaml_quantity(const Yaml *yaml, const char *key, const char *text, YamlRange range,
                   double *value);
bool yaml_uint(const Yaml *yaml, const char *key, const char *text, uint32_t low,
               uint32_t high, uint32_t *value);
/* Parses a plain number without a unit in [low, high]. */
bool yaml_number(const Yaml *yaml, const char *key, const char *text, double low,
                 double high, double *value);
