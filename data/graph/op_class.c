/* Finding the class of an op by its key. */
#include "data/graph/op_class.h"

#include <string.h>

#include "data/base/free.h"

struct OpClasses {
    GPtrArray *all;     /* OpClass */
    GHashTable *by_key; /* GBytes -> OpClass */
    GByteArray *key;    /* key of the class being looked up */
};

static void class_free(gpointer data)
{
    OpClass *class = data;
    free_each(class->rule, class);
}

OpClasses *op_classes_new(void)
{
    OpClasses *classes = g_new(OpClasses, 1);
    classes->all = g_ptr_array_new_with_free_func(class_free);
    classes->by_key = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                            (GDestroyNotify)g_bytes_unref, NULL);
    classes->key = g_byte_array_new();
    return classes;
}

FREE_DEFINE(op_classes_free, OpClasses, classes, g_hash_table_destroy(classes->by_key),
            g_ptr_array_free(classes->all, TRUE), g_byte_array_free(classes->key, TRUE));

static void key_add(OpClasses *classes, const void *data, size_t bytes)
{
    g_byte_array_append(classes->key, data, (guint)bytes);
}

/* The class of the key, or a new, zeroed class; empties the key. */
static OpClass *take_class(OpClasses *classes, bool *is_new)
{
    GBytes *key = g_bytes_new(classes->key->data, classes->key->len);
    g_byte_array_set_size(classes->key, 0);
    OpClass *class = g_hash_table_lookup(classes->by_key, key);
    *is_new = !class;
    if (class) {
        g_bytes_unref(key);
        return class;
    }
    class = g_new0(OpClass, 1);
    class->index = classes->all->len;
    g_ptr_array_add(classes->all, class);
    g_hash_table_insert(classes->by_key, key, class);
    return class;
}

const OpClass *op_classes_bind(OpClasses *classes, OpKind kind, const OpAttr *attr,
                               uint32_t n_in, const Shape *in, const char *extents)
{
    const bool masked = op_kind_skips_masked(kind) && attr->causal;
    const uint32_t head[] = {UINT32_MAX, kind, n_in, masked ? 1 + attr->span : 0};
    key_add(classes, head, sizeof head);
    for (uint32_t i = 0; i < n_in; i++) {
        key_add(classes, &in[i].rank, sizeof in[i].rank);
        key_add(classes, in[i].dim, in[i].rank * sizeof *in[i].dim);
    }
    if (extents)
        key_add(classes, extents, strlen(extents));
    if (masked && attr->documents)
        key_add(classes, attr->documents, strlen(attr->documents));
    if (op_kind_is_opaque(kind)) /* each has times of its own */
        key_add(classes, &classes->all->len, sizeof classes->all->len);
    bool is_new;
    OpClass *class = take_class(classes, &is_new);
    if (is_new) {
        class->kind = kind;
        class->n_in = n_in;
        class->n_out = space_bind(kind, n_in, in, extents, &class->space, class->out);
        class->space.visible = space_visible(kind, attr, &class->space);
    }
    return class;
}

const OpClass *op_classes_cut(OpClasses *classes, const OpClass *plain,
                              const uint32_t *units)
{
    g_assert(plain->space.n_loops <= OP_MAX_LOOPS);
    key_add(classes, &plain->index, sizeof plain->index);
    key_add(classes, units, plain->space.n_loops * sizeof *units);
    bool is_new;
    OpClass *class = take_class(classes, &is_new);
    if (!is_new)
        return class;
    uint32_t index = class->index;
    *class = *plain;
    class->index = index;
    for (uint32_t l = 0; l < class->space.n_loops; l++)
        class->space.loop[l].units = units[l];
    Rule rule[OP_MAX_RULES];
    class->n_rules =
        space_rules(class->kind, class->n_in, class->n_out, &class->space, 2, rule);
    class->rule = g_memdup2(rule, class->n_rules * sizeof *rule);
    class->has_queries = space_queries_rule(class->kind, class->n_in, class->n_out,
                                            &class->space, &class->queries);
    return class;
}
