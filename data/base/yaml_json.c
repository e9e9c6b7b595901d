/* Walks libyaml's document. */
#include "data/base/yaml_json.h"

#include "data/base/error.h"
#include "data/base/libyaml.h"
#include "data/base/yaml_lines.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *scalar(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return json_string(text);
    if (!*text || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
        return json_null();
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(*text == 't');
    char *end;
    const double number = g_ascii_strtod(text, &end);
    if (*end || !isfinite(number) || !strpbrk(text, "0123456789"))
        return json_string(text);
    return number == floor(number) && fabs(number) < 0x1p53
               ? json_integer((json_int_t)number)
               : json_real(number);
}

/* NULL: too deep. */
static json_t *node_json(yaml_document_t *document, int id, uint32_t depth)
{
    const yaml_node_t *node = yaml_document_get_node(document, id);
    if (!node || depth > YAML_MOST_DEPTH)
        return NULL;
    if (node->type == YAML_SCALAR_NODE)
        return scalar(node);
    const bool list = node->type == YAML_SEQUENCE_NODE;
    json_t *json = list ? json_array() : json_object();
    const yaml_node_item_t *item = node->data.sequence.items.start;
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    while (list ? item < node->data.sequence.items.top
                : pair < node->data.mapping.pairs.top) {
        const yaml_node_t *key =
            list ? NULL : yaml_document_get_node(document, pair->key);
        json_t *value = node_json(document, list ? *item : pair->value, depth + 1);
        if (!value || (key && key->type != YAML_SCALAR_NODE)) {
            json_decref(value);
            json_decref(json);
            return NULL;
        }
        if (list)
            json_array_append_new(json, value);
        else
            json_object_set_new(json, (const char *)key->data.scalar.value, value);
        item += list;
        pair += !list;
    }
    return json;
}

json_t *yaml_to_json(const char *file, const char *text, gsize length, GError **error)
{
    yaml_document_t document;
    YamlLines *lines = yaml_lines_read(file, text, length, NULL, error);
    if (!lines)
        return NULL;
    yaml_lines_free(lines);
    if (!libyaml_read(text, length, &document))
        return refused(error, "%s: not valid YAML", file);
    json_t *json =
        yaml_document_get_root_node(&document) ? node_json(&document, 1, 0) : NULL;
    yaml_document_delete(&document);
    if (!json)
        refuse(error, "%s: expected mappings, lists and texts, at most %d deep", file,
               YAML_MOST_DEPTH);
    return json;
}
