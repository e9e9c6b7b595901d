/* Names, the nearest name, and specs: words with pairs behind a colon. */
#include "data/base/names.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"

const char **names_of(const void *first, size_t stride, uint32_t n)
{
    g_assert(first && stride >= sizeof(char *));
    const char **names = g_new0(const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        names[i] = *(const char *const *)(const void *)((const char *)first + i * stride);
    return names;
}

/* --- the nearest --- */

/* Longer names are not treated as misspellings. */
enum { LONGEST = 40 };

/* The number of letters to insert, drop, replace or swap with a neighbour that turns one word into
 * the other (optimal string alignment distance). */
static uint32_t distance(const char *a, const char *b)
{
    KILTER_ASSERT(strlen(a) <= LONGEST && strlen(b) <= LONGEST);
    const uint32_t n = (uint32_t)strlen(a), m = (uint32_t)strlen(b);
    uint32_t row[LONGEST + 1][LONGEST + 1];
    for (uint32_t i = 0; i <= n; i++)
        for (uint32_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                row[i][j] = i + j;
                continue;
            }
            const bool same = a[i - 1] == b[j - 1];
            row[i][j] =
                MIN(MIN(row[i - 1][j], row[i][j - 1]) + 1, row[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[i][j] = MIN(row[i][j], row[i - 2][j - 2] + 1);
        }
    return row[n][m];
}

/* The nearest known name: two letters of five may be wrong, or one letter of a shorter name; else
 * NULL. */
static const char *nearest(const char *name, const char *const *known)
{
    const char *best = NULL;
    uint32_t least = MAX(1, (uint32_t)MIN(strlen(name), LONGEST) * 2 / 5) + 1;
    if (!*name || strlen(name) > LONGEST)
        return NULL;
    for (; *known; known++) {
        const uint32_t d = strlen(*known) > LONGEST ? least : distance(name, *known);
        if (d < least) {
            least = d;
            best = *known;
        }
    }
    return best;
}

char *names_hint(const char *name, const char *const *known)
{
    const char *best = nearest(name, known);
    return best ? g_strdup_printf("; did you mean '%s'?", best) : g_strdup("");
}

bool names_find(const char *what, const char *name, const char *const *known,
                uint32_t *index, GError **error)
{
    g_assert(what && name && known);
    for (*index = 0; known[*index]; ++*index)
        if (strcmp(known[*index], name) == 0)
            return true;
    g_autofree char *list = g_strjoinv(", ", (char **)known);
    g_autofree char *hint = names_hint(name, known);
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "unknown %s '%.60s', expected one of %s%s", what, name, list,
                       hint);
}

/* --- specs --- */

Spec *spec_read_pairs(const char *text)
{
    Spec *spec = g_new0(Spec, 1);
    g_auto(GStrv) pair = g_strsplit(text, ",", -1);
    spec->word = g_strdup("");
    spec->n = g_strv_length(pair);
    spec->key = g_new0(char *, spec->n);
    spec->value = g_new0(char *, spec->n);
    for (uint32_t i = 0; i < spec->n; i++) {
        char *equals = strchr(g_strstrip(pair[i]), '=');
        spec->key[i] =
            equals ? g_strndup(pair[i], (gsize)(equals - pair[i])) : g_strdup(pair[i]);
        spec->value[i] = equals ? g_strdup(equals + 1) : NULL;
    }
    return spec;
}

const char *spec_after_colon(const char *colon)
{
    return colon[1] ? colon + 1 : ",";
}

Spec *spec_read(const char *text)
{
    g_assert(text);
    const char *colon = strchr(text, ':');
    Spec *spec = spec_read_pairs(colon ? spec_after_colon(colon) : "");
    g_free(spec->word);
    spec->word = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
    return spec;
}

bool spec_check_once(const Spec *spec, const char *many, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < spec->n; i++)
        if (!*spec->key[i])
            return kilter_fail(
                error, KILTER_ERROR_INPUT,
                "expected key=value after each colon and comma, got nothing");
        else if (!g_hash_table_add(seen, spec->key[i]) &&
                 !(many && g_str_has_prefix(spec->key[i], many)))
            return kilter_fail(error, KILTER_ERROR_INPUT, "%.60s: given twice",
                               spec->key[i]);
    return true;
}

void spec_free(Spec *spec)
{
    if (!spec)
        return;
    for (uint32_t i = 0; i < spec->n; i++) {
        g_free(spec->key[i]);
        g_free(spec->value[i]);
    }
    g_free(spec->word);
    g_free(spec->key);
    g_free(spec->value);
    g_free(spec);
}
