/* Fuzz target: a text as a built-in model ("vit:layers=2") is refused with one line, or its spec
 * with every parameter resolves to itself. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

/* Names of files belong to another reader; sizes of many digits are slow to build, not wrong. */
static bool is_ours(const char *text)
{
    size_t digits = 0;
    for (const char *at = text; *at && digits <= 3; at++)
        digits = g_ascii_isdigit(*at) ? digits + 1 : 0;
    return digits <= 3 && !strpbrk(text, "/\n") && !strstr(text, ".json");
}

/* The number that a spec gives a key, NAN if none. */
static double number_of(const char *spec, const char *key)
{
    const char *colon = strchr(spec, ':');
    g_auto(GStrv) pair = g_strsplit(colon ? colon + 1 : "", ",", -1);
    for (char **p = pair; *p; p++) {
        char *equals = strchr(*p, '='), *end;
        if (!equals)
            continue;
        *equals = '\0';
        const double number = g_ascii_strtod(equals + 1, &end);
        if (strcmp(g_strstrip(*p), key) == 0 && end != equals + 1 && !*end)
            return number;
    }
    return NAN;
}

/* Given numbers stay, but 0 may stand for a number that follows from others. */
static void check_kept(const char *text, const char *full)
{
    static const char *const KEY[] = {"layers",  "hidden", "heads", "seq",
                                      "experts", "batch",  "vocab", "dropout"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(KEY); i++) {
        const double given = number_of(text, KEY[i]);
        if (given > 0)
            fuzz_check(number_of(full, KEY[i]) == given, "given numbers stay");
    }
}

bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *text = g_strndup(data, size);
    g_autoptr(GError) error = NULL;
    if (!is_ours(text))
        return false;
    g_autofree char *content = NULL, *content_again = NULL;
    g_autofree char *full = model_resolve(text, 8, &content, &error);
    fuzz_check(!full == !!error, "either a spec or an error");
    if (!full) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    check_kept(text, full);
    g_autofree char *again = model_resolve(full, 8, &content_again, NULL);
    fuzz_check(again && strcmp(full, again) == 0, "the full spec resolves to itself");
    return true;
}
