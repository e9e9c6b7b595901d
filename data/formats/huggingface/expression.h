/* Expressions over the keys of a configuration: the language of data/families.yaml and of models in
 * YAML (private to data).
 *
 *     hidden_size | n_embd | 768             the first that is there and not null
 *     if $layer % 4 == 3 then 'attention' else 'delta'
 *     layer_types[$layer] == 'full_attention',  $layer in mlp_only_layers,  vision_config.depth
 *     $layer in '4,5,6'                    also among the integers of a text
 *     min(a, b)  max(a, b)  floor(a)  ceil(a)  length(text or list)  given(key)
 *
 * A word is a key, 'text' a text, $word a fact that was read before, $layer the layer, from 0.
 * Operators, from the loosest: if/then/else; or; and; not; == != < <= > >= in; |; + -; * / %; a[i]
 * and a.b. A key that is missing is nothing; sums, products and comparisons with nothing are
 * nothing, and nothing counts as false. given(key) is true for null, too. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef enum { VALUE_NONE, VALUE_NUMBER, VALUE_FLAG, VALUE_TEXT, VALUE_JSON } ValueKind;

typedef struct {
    ValueKind kind;
    double number; /* of VALUE_FLAG: 0 or 1 */
    /* VALUE_TEXT: not terminated; it lives as long as the root and the expression */
    const char *text;
    size_t length;
    const json_t *json; /* VALUE_JSON: a list or an object */
} Value;

typedef struct {
    const json_t *root; /* an object: the keys */
    GHashTable *read;   /* a set: keys that an expression names */
    const char *key;    /* the last key that had a value, or NULL; of `root` */
    /* The fact of that name: false if there is none. *key is set to the key that it came from. */
    bool (*fact)(void *data, const char *name, Value *value, const char **key);
    void *data;
    double layer;
} Scope;

/* The value of an expression. False with *wrong, a text that the caller frees: it is no expression,
 * or a key's value does not fit its operator. */
bool expression_value(Scope *scope, const char *text, Value *value, char **wrong);
