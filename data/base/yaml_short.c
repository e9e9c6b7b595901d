/* Short forms of YAML: a value in place of a mapping. */
#include "data/base/yaml_short.h"

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "data/base/libyaml.h"

typedef struct {
    yaml_document_t *document;
    GArray *edit; /* Edit, in the order of the text */
} Walk;

typedef struct {
    size_t from, to; /* characters */
} Edit;

static bool has_short_form(const cyaml_schema_value_t *schema)
{
    return schema->type == CYAML_MAPPING && schema->mapping.fields[0].key &&
           strcmp(schema->mapping.fields[0].key, "link") == 0;
}

static const cyaml_schema_value_t *schema_of(const cyaml_schema_value_t *schema,
                                             const char *key)
{
    const cyaml_schema_field_t *field = schema->mapping.fields;
    while (field->key && strcmp(field->key, key) != 0)
        field++;
    return field->key ? &field->value : NULL;
}

/* The recursion is as deep as the schema. */
static void walk(Walk *w, int id, const cyaml_schema_value_t *schema)
{
    const yaml_node_t *node = yaml_document_get_node(w->document, id);
    if (!node || !schema)
        return;
    if (node->type == YAML_SCALAR_NODE && has_short_form(schema)) {
        const Edit edit = {node->start_mark.index, node->end_mark.index};
        if (edit.to > edit.from)
            g_array_append_val(w->edit, edit);
    } else if (node->type == YAML_MAPPING_NODE && schema->type == CYAML_MAPPING) {
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
            const yaml_node_t *key = yaml_document_get_node(w->document, pair->key);
            if (key->type == YAML_SCALAR_NODE)
                walk(w, pair->value,
                     schema_of(schema, (const char *)key->data.scalar.value));
        }
    } else if (node->type == YAML_SEQUENCE_NODE && schema->type == CYAML_SEQUENCE) {
        for (yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            walk(w, *item, schema->sequence.entry);
    }
}

static char *apply(const char *text, gsize *length, const GArray *edits)
{
    GString *out = g_string_sized_new(*length + 16 * edits->len);
    const char *at = text;
    size_t character = 0;
    for (guint i = 0; i < edits->len; i++) {
        const Edit *edit = &g_array_index(edits, Edit, i);
        const char *from = g_utf8_offset_to_pointer(at, (glong)(edit->from - character));
        const char *to = g_utf8_offset_to_pointer(from, (glong)(edit->to - edit->from));
        g_string_append_len(out, at, from - at);
        g_string_append(out, "{link: ");
        g_string_append_len(out, from, to - from);
        g_string_append(out, "}");
        at = to;
        character = edit->to;
    }
    g_string_append_len(out, at, text + *length - at);
    *length = out->len;
    return g_string_free(out, FALSE);
}

char *yaml_expand(const char *text, gsize *length,
                  const struct cyaml_schema_value *schema)
{
    yaml_document_t document;
    char *result = NULL;
    const bool marked =
        *length > 2 && (unsigned char)*text > 0x7f; /* a byte-order mark */
    if (!marked && g_utf8_validate(text, (gssize)*length, NULL) &&
        libyaml_read(text, *length, &document)) {
        Walk w = {&document, g_array_new(FALSE, FALSE, sizeof(Edit))};
        const yaml_node_t *root = yaml_document_get_root_node(&document);
        if (root)
            walk(&w, 1, schema); /* the root is the first node */
        if (w.edit->len > 0)
            result = apply(text, length, w.edit);
        g_array_unref(w.edit);
        yaml_document_delete(&document);
    }
    return result ? result : g_memdup2(text, *length);
}

/* --- keys --- */

typedef struct {
    yaml_document_t *document;
    YamlFault fault;
    void *data;
} Check;

static bool has_key(const Check *c, const yaml_node_t *node, const char *key)
{
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *found = yaml_document_get_node(c->document, pair->key);
        if (found && found->type == YAML_SCALAR_NODE &&
            strcmp((const char *)found->data.scalar.value, key) == 0)
            return true;
    }
    return false;
}

static char *key_below(const char *path, const char *key)
{
    return *path ? g_strconcat(path, ".", key, NULL) : g_strdup(key);
}

static void check(const Check *c, int id, const cyaml_schema_value_t *schema,
                  const char *path);

static void check_mapping(const Check *c, const yaml_node_t *node,
                          const cyaml_schema_value_t *schema, const char *path)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++)
        g_string_append_printf(known, "%s%s", known->len ? ", " : "", f->key);
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(c->document, pair->key);
        if (!key || key->type != YAML_SCALAR_NODE)
            continue;
        const char *name = (const char *)key->data.scalar.value;
        const cyaml_schema_value_t *value = schema_of(schema, name);
        g_autofree char *below = key_below(path, name);
        if (value)
            check(c, pair->value, value, below);
        else
            c->fault(below, false, known->str, c->data);
    }
    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
        g_autofree char *below = key_below(path, f->key);
        if (!(f->value.flags & CYAML_FLAG_OPTIONAL) && !has_key(c, node, f->key))
            c->fault(below, true, known->str, c->data);
    }
}

static void check(const Check *c, int id, const cyaml_schema_value_t *schema,
                  const char *path)
{
    const yaml_node_t *node = yaml_document_get_node(c->document, id);
    if (node && node->type == YAML_MAPPING_NODE && schema->type == CYAML_MAPPING) {
        check_mapping(c, node, schema, path);
    } else if (node && node->type == YAML_SEQUENCE_NODE &&
               schema->type == CYAML_SEQUENCE) {
        uint32_t i = 0;
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++) {
            g_autofree char *entry = g_strdup_printf("%s[%u]", path, i++);
            check(c, *item, schema->sequence.entry, entry);
        }
    }
}

void yaml_key_faults(const char *text, gsize length,
                     const struct cyaml_schema_value *schema, YamlFault fault, void *data)
{
    yaml_document_t document;
    if (libyaml_read(text, length, &document)) {
        const Check c = {&document, fault, data};
        if (yaml_document_get_root_node(&document))
            check(&c, 1, schema, "");
        yaml_document_delete(&document);
    }
}
