/* Things that people name: finding one by its name, and saying what was meant by one that is not there.
 *
 *     uint32_t index;
 *     if (!names_find("planner", text, known, &index, error))
 *         return NULL;      "unknown planner 'hpa', expected one of hap, dp-ev, ...; did you mean 'hap'?" */
#ifndef KILTER_DATA_BASE_NAMES_H
#define KILTER_DATA_BASE_NAMES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The names in a table whose rows have theirs at `first` and every `stride` bytes from there. Free the array, which ends
 * with NULL, with g_free; the names are borrowed. */
const char **names_of(const void *first, size_t stride, uint32_t n);
/* The same of an array of structs with a member `const char *`. */
#define NAMES_OF(array, member) \
    names_of(&(array)[0].member, sizeof(array)[0], G_N_ELEMENTS(array))

/* Where `name` is among `known`, which ends with NULL. KILTER_ERROR_INPUT lists them and names the nearest. */
bool names_find(const char *what, const char *name, const char *const *known,
                uint32_t *index, GError **error);

/* "; did you mean 'hap'?", or "" if none of `known` is near. Caller frees. */
char *names_hint(const char *name, const char *const *known);

/* "WORD:key=value,key=value" or "WORD", as models, networks and planners are written. Blanks around pairs do not count. */
typedef struct {
    char *word;
    uint32_t n;
    char **key, **value; /* [n]; a value is NULL where there was no '=' */
} Spec;

Spec *spec_read(const char *text);
/* The pairs alone: "key=value,key=value", or "". */
Spec *spec_read_pairs(const char *text);
/* Whether every key is given once; keys that begin with `many` (NULL: none) may be repeated. KILTER_ERROR_INPUT names the
 * key that is not. */
bool spec_check_once(const Spec *spec, const char *many, GError **error);
void spec_free(Spec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Spec, spec_free)

#endif
