/* Names, the nearest name, and specs: words with pairs behind a colon. */
#include "data/base/names.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"

uint32_t names_place(const void *first, size_t stride, uint32_t n, const char *name)
{
    uint32_t i = 0;
    while (i < n &&
           strcmp(*(const char *const *)(const void *)((const char *)first + i * stride),
                  name) != 0)
        i++;
    return i;
}

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
static uint32_t names_distance(const char *a, const char *b)
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

/* The most names that are suggested, and the letters of a list of names. */
enum { SUGGESTED = 3, LIST_LETTERS = 160 };

/* How far a known name is from the given one, both in lower case: 0 the same; 1 it contains the
 * other at an end of a word, or what precedes and what follows the other's last dash; then the
 * letters that differ, half of those that follow if the given name begins with the known one, else
 * two of five at most or one of a shorter name; UINT32_MAX: not near. */
static uint32_t names_far(const char *name, const char *known)
{
    const size_t n = strlen(name);
    const uint32_t most = MAX(1, (uint32_t)n * 2 / 5);
    const char *at = n >= 3 ? strstr(known, name) : NULL, *dash = strrchr(name, '-');
    if (at && (at == known || !g_ascii_isalnum(at[-1]) || !g_ascii_isalnum(at[n])))
        return at == known && !at[n] ? 0 : 1;
    if (dash && dash > name && g_str_has_suffix(known, dash) &&
        strncmp(known, name, (size_t)(dash - name)) == 0)
        return 1;
    const size_t m = strlen(known);
    const bool begins =
        m >= 3 && g_str_has_prefix(name, known) && !g_ascii_isalnum(name[m]);
    const uint32_t far = m > LONGEST ? UINT32_MAX : names_distance(name, known);
    if (begins)
        return 1 + (uint32_t)(n - m + 1) / 2;
    return far == 0 ? 0 : far <= most ? 1 + far : UINT32_MAX;
}

const char *names_synonym(const char *name)
{
    static const char *const SAME[][2] = {
        {"dtype", "precision"},
        {"fsdp", "zero"},
        {"gbs", "global_batch"},
        {"gpu", "device"},
        {"gradient_checkpointing", "recompute"},
        {"hosts", "machines"},
        {"interconnect", "peers"},
        {"lora", "train"},
        {"mbs", "micro_batch"},
        {"network", "nic"},
        {"nodes", "machines"},
        {"num_gpus", "gpus"},
        {"sequence_length", "seq"},
        {"zero_stage", "zero"},
    };
    const uint32_t i = names_place(SAME, sizeof *SAME, G_N_ELEMENTS(SAME), name);
    return i < G_N_ELEMENTS(SAME) ? SAME[i][1] : name;
}

/* The nearest of the known names: at most SUGGESTED that contain the given one, or else one. The
 * owner before a slash does not count. */
static uint32_t names_near(const char *name, const char *const *known,
                           const char *near[SUGGESTED])
{
    uint32_t n = 0, least = UINT32_MAX - 1;
    name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    g_autofree char *low = g_ascii_strdown(name, -1);
    if (!*name || strlen(name) > LONGEST)
        return 0;
    near[0] = names_synonym(low);
    if (near[0] != low && g_strv_contains(known, near[0]))
        return 1;
    for (; *known; known++) {
        g_autofree char *other = g_ascii_strdown(*known, -1);
        const uint32_t far = names_far(low, other);
        if (far > least)
            continue;
        if (far < least)
            n = 0;
        else if (far > 1)
            continue;
        least = far;
        if (n < SUGGESTED)
            near[n++] = *known;
    }
    return n;
}

char *names_hint(const char *name, const char *const *known)
{
    const char *near[SUGGESTED];
    const uint32_t n = names_near(name, known, near);
    g_autoptr(GString) text = g_string_new(n ? "; did you mean " : "");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s'%s'",
                               i == 0       ? ""
                               : i + 1 == n ? " or "
                                            : ", ",
                               near[i]);
    return g_strconcat(text->str, n ? "?" : "", NULL);
}

char *names_meant(const char *name, const char *const *known, const char *otherwise)
{
    g_autofree char *hint = names_hint(name, known);
    return g_strdup(*hint ? hint + strlen("; ") : otherwise);
}

char *names_expected(const char *name, const char *const *known)
{
    g_autoptr(GString) text = g_string_new("expected one of ");
    const uint32_t n = g_strv_length((char **)known);
    for (uint32_t i = 0; i < n; i++) {
        if (text->len > LIST_LETTERS && i + 1 < n) {
            g_string_append_printf(text, " and %u more", n - i);
            break;
        }
        g_string_append_printf(text, "%s%s", i ? ", " : "", known[i]);
    }
    return names_meant(name, known, text->str);
}

int names_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool names_find(const char *what, const char *name, const char *const *known,
                uint32_t *index, GError **error)
{
    *index = TEXT_PLACE(known, g_strv_length((char **)known), name);
    if (known[*index])
        return true;
    g_autofree char *expected = names_expected(name, known);
    return refuse(error, "unknown %s '%.60s'; %s", what, name, expected);
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
    const char *colon = strchr(text, ':');
    Spec *spec = spec_read_pairs(colon ? spec_after_colon(colon) : "");
    put_block(spec->word,
              colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text));
    return spec;
}

bool spec_check_once(const Spec *spec, const char *many, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < spec->n; i++)
        if (!*spec->key[i])
            return refuse(error,
                          "expected key=value after each colon and comma, got nothing");
        else if (!g_hash_table_add(seen, spec->key[i]) &&
                 !(many && g_str_has_prefix(spec->key[i], many)))
            return refuse(error, "%.60s: given twice", spec->key[i]);
    return true;
}

FREE_DEFINE(spec_free, Spec, spec, free_items(spec->key, spec->n),
            free_items(spec->value, spec->n),
            free_each(spec->word, spec->key, spec->value));
