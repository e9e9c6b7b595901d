/* Names that users type: finding the thing by its name, and suggesting the nearest name if there is
 * none.
 *
 *     uint32_t index;
 *     if (!names_find("planner", text, known, &index, error))
 *         return NULL;      "unknown planner 'hpa'; did you mean 'hap'?" */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/assert.h"
#include "data/base/free.h"

/* The n names in a table, the first at `first` and each further one `stride` bytes on. Free the
 * array, which ends with NULL, with g_free; the names are borrowed. */
const char **names_of(const void *first, size_t stride, uint32_t n);
/* The same for an array of structs with a member `const char *`. */
#define NAMES_OF(array, member) \
    names_of(&(array)[0].member, sizeof(array)[0], G_N_ELEMENTS(array))

/* The place of a name among the n names of a table, the first at `first` and each further one
 * `stride` bytes on; n: it has none. Of an array of structs by a member, and of texts. */
uint32_t names_place(const void *first, size_t stride, uint32_t n, const char *name);
#define NAME_PLACE(array, n, member, name) \
    names_place((n) > 0 ? NAME_FIRST((array)->member) : NULL, sizeof *(array), n, name)
#define TEXT_PLACE(array, n, name) \
    names_place(NAME_FIRST((array)[0]), sizeof *(array), n, name)
/* The address of a pointer to a text; an array of characters does not compile. */
#define NAME_FIRST(text) \
    _Generic(&(text), char **: &(text), char *const *: &(text),   \
             const char **: &(text), const char *const *: &(text), void **: &(text))
/* The element whose member is the name, or NULL. */
#define NAME_ROW(array, n, member, name) \
    names_row(array, sizeof *(array), NAME_PLACE(array, n, member, name), n)
static inline void *names_row(const void *array, size_t size, uint32_t place, uint32_t n)
{
    return place < n ? (char *)array + place * size : NULL;
}

/* Defines `const char *function(Type of)`, which says the words of an enum of n: from a table, or
 * from the list itself:
 *
 *     NAMES_FUNCTION(traffic_name, Traffic, TRAFFICS, TRAFFIC_NAME[of])
 *     NAMES_LIST(split_name, Split, SPLITS, "fit", "development", "sealed") */
#define NAMES_FUNCTION(function, Type, n, text) \
    const char *function(Type of)               \
    {                                           \
        g_assert((guint)of < (guint)(n));       \
        return text;                            \
    }
#define NAMES_LIST(function, Type, n, ...)                \
    const char *function(Type of)                         \
    {                                                     \
        static const char *const NAME[n] = {__VA_ARGS__}; \
        g_assert((guint)of < (guint)(n));                 \
        return NAME[of];                                  \
    }

/* The same for any column of a table. */
#define ROW_FUNCTION(Returns, function, Type, n, value) \
    Returns function(Type of)                           \
    {                                                   \
        KILTER_ASSERT((guint)of < (guint)(n));          \
        return value;                                   \
    }

/* Texts (char *) in the order of strcmp, for qsort and g_ptr_array_sort. */
int names_compare(const void *a, const void *b);

/* Finds the index of `name` in `known`, which ends with NULL. KILTER_ERROR_INPUT ends with
 * names_expected. */
bool names_find(const char *what, const char *name, const char *const *known,
                uint32_t *index, GError **error);
/* Defines `bool function(const char *name, Type *value, GError **error)`, which finds the value of
 * an enum by its name; `names`: a new array of them, as NAMES_OF's. */
#define NAMES_FINDER(function, Type, what, names)                        \
    bool function(const char *name, Type *value, GError **error)         \
    {                                                                    \
        uint32_t index;                                                  \
        g_autofree const char **known = names;                           \
        const bool found = names_find(what, name, known, &index, error); \
        if (found)                                                       \
            *value = (Type)index;                                        \
        return found;                                                    \
    }

/* Kilter's word for what people call otherwise, "global_batch" for "gbs"; else the name. */
const char *names_synonym(const char *name);

/* "; did you mean 'hap'?", or "" if none of `known` is near. Near are names with few other letters
 * and names that contain the given one, in upper or lower case: at most three. Caller frees. */
char *names_hint(const char *name, const char *const *known);

/* "did you mean 'hap'?" where a known name is near; else a copy of `otherwise`. Caller frees. */
char *names_meant(const char *name, const char *const *known, const char *otherwise);
/* The same, or else "expected one of hap, dp-ev and 20 more", with as many names as a line
 * holds. */
char *names_expected(const char *name, const char *const *known);

/* "WORD:key=value,key=value" or "WORD", the text form of models, networks and planners. Blanks
 * around pairs are ignored. */
typedef struct {
    char *word;
    uint32_t n;
    char **key, **value; /* [n]; a value is NULL where there was no '=' */
} Spec;

Spec *spec_read(const char *text);
/* The pairs after a colon, which are refused if there are none. */
const char *spec_after_colon(const char *colon);
/* A spec without its word: "key=value,key=value", or "". */
Spec *spec_read_pairs(const char *text);
/* Whether every key is given once; keys that begin with `many` (NULL: none) may be repeated.
 * KILTER_ERROR_INPUT names the key that is not. */
bool spec_check_once(const Spec *spec, const char *many, GError **error);
AUTOPTR(spec_free, Spec)
