/* JSON Schema (2020-12) as far as data/schemas/ uses it: type, required, properties,
 * patternProperties, additionalProperties, items, anyOf, enum, const, minimum, and $ref to
 * FILE.json#/$defs/NAME. A schema with any other keyword is a failure, since it would not be
 * checked. */
#ifndef KILTER_TESTS_SUPPORT_SCHEMA_H
#define KILTER_TESTS_SUPPORT_SCHEMA_H

#include <glib.h>
#include <jansson.h>

typedef struct Schemas Schemas;

/* Opens the schemas of a folder. */
Schemas *schemas_new(const char *folder);
void schemas_free(Schemas *schemas);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Schemas, schemas_free)

/* The schema FILE.json; NULL if there is none. */
const json_t *schemas_get(Schemas *schemas, const char *file);

/* Why the value does not match the schema FILE, such as "devices[2].idle_s: expected number, got
 * string"; NULL if it matches. Caller frees. */
char *schemas_check(Schemas *schemas, const char *file, const json_t *value);

#endif
