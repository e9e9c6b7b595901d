/* Functions of an ONNX file: each call becomes the function's nodes, whose values and nodes get
 * names of their own. */
#include "data/base/json.h"
#include "data/formats/onnx/onnx.h"

#include "data/base/error.h"

enum { DEEPEST = 32 };

typedef struct {
    const char *file;
    GHashTable *function; /* key_of -> JSON of the function */
    json_t *nodes;
    uint32_t calls;
    GError **error;
} Inliner;

/* One call: names in the function -> names outside, and the attributes that it has. */
typedef struct {
    const char *name; /* of the calling node */
    uint32_t number;
    GHashTable *value; /* char * -> char * */
    const json_t *attr, *otherwise;
} Call;

/* Domain, name and overload of a function, or of the node that calls it. Caller frees. */
static char *key_of(const json_t *object)
{
    return g_strjoin("\n", json_word(object, "domain"), json_word(object, "op"),
                     json_word(object, "overload"), NULL);
}

/* The name outside for one inside; "" stays: it is an operand that is left out. */
static const char *outside(const Call *call, const char *name)
{
    if (!call || !*name)
        return name;
    const char *known = g_hash_table_lookup(call->value, name);
    if (known)
        return known;
    char *own = g_strdup_printf("%s#%u/%s", call->name, call->number, name);
    g_hash_table_insert(call->value, g_strdup(name), own);
    return own;
}

static json_t *renamed(const Call *call, const json_t *names)
{
    json_t *list = json_array();
    elements_each (name, names) {
        const char *text = json_string_value(name);
        json_array_append_new(list,
                              text ? json_string(outside(call, text)) : json_null());
    }
    return list;
}

/* Attributes of a node in a function, those of the call in place of references to them. */
static json_t *filled_in(const Call *call, const json_t *attr)
{
    json_t *filled = json_object();
    members_each (key, value, attr) {
        const char *ref = json_string_value(json_object_get(value, "ref"));
        json_t *own = ref && call ? json_object_get(call->attr, ref) : value;
        if (ref && call && !own)
            own = json_object_get(call->otherwise, ref);
        if (own && !json_object_get(own, "ref"))
            json_object_set(filled, key, own);
    }
    return filled;
}

/* A node as it is outside of the function that it stands in. */
static json_t *outside_node(const Call *call, const json_t *node)
{
    const char *name = json_word(node, "name");
    if (!call)
        return json_incref((json_t *)node);
    json_t *copy = json_copy((json_t *)node);
    g_autofree char *full = g_strdup_printf("%s/%s", call->name, name);
    json_object_set_new(copy, "name", json_string(full));
    json_object_set_new(copy, "in", renamed(call, json_object_get(node, "in")));
    json_object_set_new(copy, "out", renamed(call, json_object_get(node, "out")));
    json_object_set_new(copy, "attr", filled_in(call, json_object_get(node, "attr")));
    return copy;
}

static bool inline_add_node(Inliner *in, const json_t *node, uint32_t depth);

/* Names of the parameters become those of the operands. An output that is an input of the function
 * as it is becomes a copy of it, in *copies. */
static void bind(const Call *call, const json_t *function, const json_t *node,
                 json_t *copies)
{
    static const char *const side[] = {"in", "out"};
    for (uint32_t s = 0; s < 2; s++) {
        const json_t *operands = json_object_get(node, side[s]);
        elements_at (parameter, i, json_object_get(function, side[s])) {
            const char *name = json_string_value(parameter),
                       *is = json_string_value(json_array_get(operands, i));
            if (!name || (s == 1 && (!is || !*is)))
                continue;
            const char *known = g_hash_table_lookup(call->value, name);
            if (!known)
                g_hash_table_insert(call->value, g_strdup(name), g_strdup(is ? is : ""));
            else if (s == 1)
                json_array_append_new(copies, json_pack("{s:s, s:s, s:[s], s:[s]}", "op",
                                                        "Identity", "name", call->name,
                                                        "in", known, "out", is));
        }
    }
}

static bool add_call(Inliner *in, const json_t *node, const json_t *function,
                     uint32_t depth)
{
    g_autoptr(GHashTable) value = text_table(g_free);
    const char *name = json_word(node, "name");
    const Call call = {.name = *name ? name : json_word(node, "op"),
                       .number = in->calls++,
                       .value = value,
                       .attr = json_object_get(node, "attr"),
                       .otherwise = json_object_get(function, "attr")};
    json_t *copies = json_array();
    bool good = true;
    if (depth == DEEPEST || in->calls > ONNX_MOST_NODES) {
        json_decref(copies);
        return refuse(in->error,
                      "%s: function '%s' is called more than %d deep, or a circle",
                      in->file, json_word(function, "op"), DEEPEST);
    }
    bind(&call, function, node, copies);
    elements_each (inner, json_object_get(function, "nodes")) {
        json_auto_t *made = good ? outside_node(&call, inner) : NULL;
        good = good && inline_add_node(in, made, depth + 1);
    }
    json_array_extend(in->nodes, copies);
    json_decref(copies);
    return good;
}

static bool inline_add_node(Inliner *in, const json_t *node, uint32_t depth)
{
    g_autofree char *key = key_of(node);
    const json_t *function = g_hash_table_lookup(in->function, key);
    if (function)
        return add_call(in, node, function, depth);
    if (json_array_size(in->nodes) >= ONNX_MOST_NODES)
        return refuse(in->error, "%s: expected at most %d nodes", in->file,
                      ONNX_MOST_NODES);
    json_array_append(in->nodes, (json_t *)node);
    return true;
}

json_t *onnx_inline(const char *file, const json_t *root, GError **error)
{
    g_autoptr(GHashTable) function = text_table(NULL);
    Inliner in = {file, function, json_array(), 0, error};
    elements_each (entry, json_object_get(root, "functions"))
        g_hash_table_replace(function, key_of(entry), entry);
    elements_each (entry, json_object_get(root, "nodes"))
        if (!inline_add_node(&in, entry, 0)) {
            json_decref(in.nodes);
            return NULL;
        }
    return in.nodes;
}
