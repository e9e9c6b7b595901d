/* JSON: values that it cannot represent directly, and reading files. The types are jansson's. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct json_t;

/* A real, or null for a number that JSON cannot represent (infinite, NaN). */
struct json_t *json_number(double value);

/* An integer, or above 2^63 - 1 its digits as a string. */
struct json_t *json_unsigned(uint64_t value);

/* A string; invalid UTF-8 is replaced. */
struct json_t *json_text(const char *text);

/* Lists of texts (ended by NULL; NULL: none), integers and numbers. */
struct json_t *json_strings(char *const *text);
struct json_t *json_texts(const GPtrArray *texts);
struct json_t *json_integers(const uint32_t *number, uint32_t n);
struct json_t *json_numbers(const double *number, uint32_t n);

/* A member that is a text; without it "". Borrowed from the object. */
const char *json_word(const struct json_t *object, const char *key);

/* The value for a message: its first 60 bytes, "nothing" of NULL. Caller frees with g_free. */
char *json_shown(const struct json_t *value);

/* Walking all elements of an array, with their places or without, and the members of an object:
 *
 *     members_each (name, nodes, json_object_get(root, "layers"))
 *         elements_at (node, i, nodes)
 *             put(name, i, node);
 *
 * `name` is a text, `node` and `nodes` are json_t *; keys_each has the names alone. Of what is no
 * array or no object there are none. A break leaves the walk. */
#define elements_at(element, place, array)                                               \
    for (size_t place = 0, place##_on = 1; place##_on && place < json_array_size(array); \
         place++)                                                                        \
        for (json_t *element = (place##_on = 0, json_array_get(array, place));           \
             !place##_on; place##_on = 1)
#define elements_each(element, array) elements_at (element, element##_at, array)
#define keys_each(key, object)                                                         \
    for (const char *key = json_object_iter_key(json_object_iter((json_t *)(object))); \
         key; key = json_object_iter_key(json_object_iter_next(                        \
                  (json_t *)(object), json_object_key_to_iter(key))))
#define members_each(key, member, object)                                              \
    for (const char *key = json_object_iter_key(json_object_iter((json_t *)(object))), \
                    *key##_on = "";                                                    \
         key##_on && key; key = json_object_iter_key(json_object_iter_next(            \
                              (json_t *)(object), json_object_key_to_iter(key))))      \
        for (json_t *member = (key##_on = NULL,                                        \
                              json_object_iter_value(json_object_key_to_iter(key)));   \
             !key##_on; key##_on = "")

/* A list of what is made at each step of a walk, as of data/base/each.h:
 *
 *     json_list(items_each (const Group, group, plan->group, plan->n_groups), group_json(group)) */
#define json_list(walk, made)                       \
    __extension__({                                 \
        json_t *all_made = json_array();            \
        walk json_array_append_new(all_made, made); \
        all_made;                                   \
    })

/* Writes without line breaks, keys sorted, and releases the value. Caller frees with g_free. */
char *json_canonical(struct json_t *value);

/* Appends what json_dumps writes, in a fraction of its time; `canonical`: without blanks, keys
 * sorted. Reals have enough digits to be read as the same double again. */
enum { JSON_DIGITS = 17 };
void json_append(GString *text, const struct json_t *value, bool canonical);

/* The value in a file, plain or gzipped, without repeated keys. KILTER_ERROR_INPUT names file and
 * line, and `what` (as in "plan") as what was expected. */
struct json_t *json_read_file(const char *file, const char *what, GError **error);

/* Whether the file is meant to be a JSON object with a member `key`, a plain word. The text is
 * looked through, not parsed, which takes a twentieth of the time. False for a file that cannot be
 * read. */
bool json_file_has(const char *file, const char *key);

/* A file, or an item of it, that is read. */
typedef struct {
    const char *file, *list;
    const struct json_t
        *item; /* element `index` of the file's array `list`; NULL: none of them */
    size_t index;
    GError **error;
} JsonPlace;

/* Fails with "FILE: LIST[INDEX].KEY: reason", KILTER_ERROR_INPUT; returns false. */
bool json_fail(const JsonPlace *at, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Checks that an object has no other keys than these. known: NULL ends it. */
bool json_known(const JsonPlace *at, const struct json_t *object,
                const char *const *known);
