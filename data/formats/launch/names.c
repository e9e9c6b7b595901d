/* Reading data/launches.csv, and the two ways to use its rows. */
#include "data/formats/launch/names.h"

#include <stdlib.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/each.h"
#include "data/base/free.h"
#include "data/base/path.h"

typedef struct {
    char *framework, *name, *says; /* says: NULL: the name has the word's value */
    LaunchWord word;
} LaunchName;

static CLEAR_DEFINE(launch_name_clear, LaunchName, row,
                    free_each(row->framework, row->name, row->says));

static bool names_take_row(const Csv *csv, void *data, GError **error)
{
    static const char *const WORD[] = {
#define X(id) #id,
        LAUNCH_WORDS(X)
#undef X
            "nothing"};
    const char *word = csv_text(csv, "word"), *says = csv_text(csv, "says");
    uint32_t w = 0;
    while (w < G_N_ELEMENTS(WORD) && g_ascii_strcasecmp(WORD[w], word) != 0)
        w++;
    if (w == G_N_ELEMENTS(WORD))
        return csv_fail(csv, "word", error, "expected a word of launches, got '%.60s'",
                        word);
    const LaunchName row = {.framework = g_strdup(csv_text(csv, "framework")),
                            .name = g_strdup(csv_text(csv, "name")),
                            .says = *says ? g_strdup(says) : NULL,
                            .word = (LaunchWord)w};
    g_array_append_val((GArray *)data, row);
    return true;
}

GArray *launch_names_read(GError **error)
{
    static const char *const COLUMNS[] = {"framework", "name", "word", "says", NULL};
    g_autofree char *path = path_bundled("launches.csv", error);
    g_autoptr(Csv) csv = path ? csv_read(path, error) : NULL;
    g_autoptr(GArray) names = array_owning(LaunchName, launch_name_clear);
    return csv && csv_expect(csv, COLUMNS, NULL, error) &&
                   csv_each(csv, names_take_row, names, error)
               ? g_steal_pointer(&names)
               : NULL;
}

/* Names match as they are, or by what stands before a '*' at the end. */
static bool name_is(const LaunchName *row, const char *name)
{
    const size_t n = strlen(row->name);
    return n > 0 && row->name[n - 1] == '*' ? strncmp(name, row->name, n - 1) == 0
                                            : strcmp(name, row->name) == 0;
}

/* Whether a word may have the text: degrees, batches and numbers of layers are whole numbers; "-1"
 * and "null" leave them to the framework. (Numbers of nodes and GPUs may be the scheduler's.) */
static bool word_has_sense(LaunchWord word, const char *text)
{
    static const char *const LEFT[] = {"", "-1", "null", "None", "~", NULL};
    return word < WORD_WORLD || word > WORD_LAYERS || g_strv_contains(LEFT, text) ||
           g_ascii_string_to_unsigned(text, 10, 0, LAUNCH_MOST, NULL, NULL);
}

bool launch_take(const GArray *names, const char *framework, const char *name,
                 const char *text, char **value)
{
    bool known = false;
    array_each (const LaunchName, row, names) {
        const char *equal = row->says ? strchr(row->says, '=') : NULL;
        g_autofree char *form =
            equal ? g_strndup(row->says, (gsize)(equal - row->says)) : NULL;
        const char *word = !row->says ? text
                           : equal    ? equal + 1
                                      : row->says,
                   *said = text ? text : "true"; /* a switch */
        if (strcmp(row->framework, framework) != 0 || !name_is(row, name) ||
            (form && !g_pattern_match_simple(form, said)) || !word ||
            !word_has_sense(row->word, word))
            continue;
        /* a flag that divides states says less than another one that divides more of them */
        const bool less = row->word == WORD_ZERO &&
                          launch_number(value, WORD_ZERO) > strtoul(word, NULL, 10);
        if (row->word < WORDS && !less)
            put_block(value[row->word], g_strdup(word));
        known = true;
    }
    return known;
}

void launch_write(const GArray *names, const char *framework, char *const *value,
                  void (*write)(void *data, const char *name, const char *text),
                  void *data)
{
    bool said[WORDS] = {false};
    array_each (const LaunchName, row, names) {
        const char *equal = row->says ? strchr(row->says, '=') : NULL;
        if (strcmp(row->framework, framework) != 0 || row->word == WORD_NOTHING ||
            said[row->word] || !value[row->word] || (equal && *row->says == '*') ||
            (row->says && strcmp(equal ? equal + 1 : row->says, value[row->word]) != 0))
            continue;
        g_autofree char *text =
            equal ? g_strndup(row->says, (gsize)(equal - row->says)) : NULL;
        said[row->word] = true;
        write(data, row->name, !row->says ? value[row->word] : text);
    }
}

uint32_t launch_number(char *const *value, LaunchWord word)
{
    guint64 number = 0;
    return value[word] && g_ascii_string_to_unsigned(value[word], 10, 0, LAUNCH_MOST,
                                                     &number, NULL)
               ? (uint32_t)number
               : 0;
}
