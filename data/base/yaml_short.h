/* Short forms in YAML (private to data). */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct cyaml_schema_value;

/* Where the schema has a mapping whose first key is `link`, a text may stand in its place: `inner:
 * nvlink3` becomes `inner: {link: nvlink3}`, in the same line. Returns the expanded text, or a copy
 * if nothing is short or the text is not YAML; *length becomes the result's length. The caller
 * frees it. */
char *yaml_expand(const char *text, gsize *length,
                  const struct cyaml_schema_value *schema);

/* Calls `fault`, mapping by mapping, for each key that the schema does not have (`missing` false)
 * and each required key that the text lacks (`missing` true). `known`: the keys of that mapping. */
typedef void (*YamlFault)(const char *key, bool missing, const char *known, void *data);
void yaml_key_faults(const char *text, gsize length,
                     const struct cyaml_schema_value *schema, YamlFault fault,
                     void *data);
