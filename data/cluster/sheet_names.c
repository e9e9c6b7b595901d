/* The data sheet of a product by its name as drivers print it: by whole words, and with the memory
 * that the name states. */
#include <math.h>
#include <string.h>

#include "data/cluster/sheet.h"

enum { MOST_WORDS = 24, WORD_BYTES = 24 };

/* A name in words without those that say nothing of the chip; amounts of memory are apart. */
typedef struct {
    uint32_t n, n_memory;
    char word[MOST_WORDS][WORD_BYTES];
    char memory[MOST_WORDS][WORD_BYTES];
    bool long_; /* more words than any name has */
} Words;

static bool says_nothing(const char *word)
{
    static const char *const NOTHING[] = {
        "NVIDIA",   "AMD",  "HUAWEI", "TESLA", "GEFORCE", "INSTINCT", "GPU", "GENERATION",
        "GRAPHICS", "HBM2", "HBM2E",  "HBM3",  "HBM3E",   "OAM",      NULL};
    return g_strv_contains(NOTHING, word);
}

/* "80GB", "144G" */
static bool is_memory(const char *word)
{
    const size_t digits = strspn(word, "0123456789");
    return digits > 0 && digits < 6 &&
           (strcmp(word + digits, "GB") == 0 || strcmp(word + digits, "G") == 0 ||
            strcmp(word + digits, "GIB") == 0);
}

/* Adds a word. The generation of a socket (SXM4) follows from the chip. */
static void add_word(Words *words, char *word)
{
    if (says_nothing(word))
        return;
    if (g_str_has_prefix(word, "SXM") && strlen(word) <= 4)
        word[3] = '\0';
    const bool memory = is_memory(word);
    uint32_t *n = memory ? &words->n_memory : &words->n;
    words->long_ |= *n == MOST_WORDS;
    if (*n < MOST_WORDS)
        g_strlcpy(memory ? words->memory[(*n)++] : words->word[(*n)++], word, WORD_BYTES);
}

/* The words of a text up to a parenthesis, "(UUID: ...)". */
static Words words_of(const char *text)
{
    Words words = {0};
    char word[WORD_BYTES];
    uint32_t n = 0;
    for (const char *c = text;; c++) {
        if (g_ascii_isalnum(*c)) {
            words.long_ |= n == WORD_BYTES - 1;
            if (n < WORD_BYTES - 1)
                word[n++] = g_ascii_toupper(*c);
            continue;
        }
        word[n] = '\0';
        if (n > 0)
            add_word(&words, word);
        n = 0;
        if (*c == '\0' || *c == '(')
            return words;
    }
}

static bool has_word(const Words *words, const char *word)
{
    return any_of(i, words->n, strcmp(words->word[i], word) == 0);
}

/* Whether both are the same without the gaps: "rtx3090" of a list of nodes. */
static bool same_joined(const Words *a, const Words *b)
{
    char joined[2][MOST_WORDS * WORD_BYTES] = {"", ""};
    for (uint32_t i = 0; i < a->n; i++)
        g_strlcat(joined[0], a->word[i], sizeof joined[0]);
    for (uint32_t i = 0; i < b->n; i++)
        g_strlcat(joined[1], b->word[i], sizeof joined[1]);
    return strcmp(joined[0], joined[1]) == 0;
}

/* Whether both have the same words in any order, but for those of `ignored`. */
static bool same_words(const Words *a, const Words *b, const char *ignored)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->word[i], ignored) != 0 && !has_word(b, a->word[i]))
            return false;
    return !any_of(i, b->n, strcmp(b->word[i], ignored) != 0 && !has_word(a, b->word[i]));
}

/* How far an amount in a name is from the sheet's, which may be in decimal or binary units. */
static double memory_error(const DeviceSheet *sheet, const char *word)
{
    const double amount = g_ascii_strtod(word, NULL), of = (double)sheet->memory_bytes;
    return fmin(fabs(amount * 1e9 / of - 1), fabs(amount * 0x1p30 / of - 1));
}

/* How far the memory in the text is from the product's; infinite: it is another one. A product
 * whose own name states the same amount is meant, whatever that counts. */
static double sheet_distance(const DeviceSheet *sheet, const Words *product,
                             const Words *text)
{
    static const double within = 0.04;
    double most = 0;
    for (uint32_t i = 0; i < text->n_memory; i++) {
        const bool own = any_of(k, product->n_memory,
                                strcmp(product->memory[k], text->memory[i]) == 0);
        const double error = own ? 0 : memory_error(sheet, text->memory[i]);
        most = fmax(most, error <= within ? error : INFINITY);
    }
    return most;
}

/* The nearest sheet among those with the same words that is not another one's equal. */
typedef struct {
    const DeviceSheet *found;
    double nearest;
    bool several;
} Nearest;

static void consider(const DeviceSheet *sheet, char *const *names, const Words *text,
                     const char *ignored, Nearest *best)
{
    for (; *names; names++) {
        const Words words = words_of(*names);
        if (words.n == 0 ||
            (!same_joined(&words, text) && !same_words(&words, text, ignored)))
            continue;
        const double far = sheet_distance(sheet, &words, text);
        best->several |=
            best->found && best->found != sheet && far == best->nearest && isfinite(far);
        if (far < best->nearest)
            *best = (Nearest){sheet, far, false};
    }
}

/* `own`: by the sheets' own names and aliases, else by the products'. */
static const DeviceSheet *find(const Sheets *sheets, const Words *text,
                               const char *ignored, bool own)
{
    Nearest best = {.nearest = INFINITY};
    items_each (const DeviceSheet, sheet, sheets->device, sheets->n_devices) {
        char *const name[] = {sheet->name, NULL};
        consider(sheet, own ? name : sheet->product, text, ignored, &best);
        if (own)
            consider(sheet, sheet->alias, text, ignored, &best);
    }
    return best.several ? NULL : best.found;
}

const DeviceSheet *sheets_find_product(const Sheets *sheets, const char *text)
{
    const Words words = words_of(text);
    if (words.n == 0 || words.long_)
        return NULL;
    const DeviceSheet *found = find(sheets, &words, "", false);
    return found ? found : find(sheets, &words, "SXM", false);
}

const DeviceSheet *sheets_find_cut(const Sheets *sheets, const char *text, double bytes)
{
    static const double within = 0.04; /* drivers keep some of it */
    const size_t n = strlen(text) - strlen("...");
    const DeviceSheet *found = NULL;
    items_each (const DeviceSheet, sheet, sheets->device, sheets->n_devices) {
        bool begins = false;
        for (char **name = sheet->product; *name; name++)
            begins |= g_ascii_strncasecmp(*name, text, n) == 0;
        if (!begins || fabs(bytes / (double)sheet->memory_bytes - 1) > within)
            continue;
        if (found)
            return NULL;
        found = sheet;
    }
    return found;
}

const DeviceSheet *sheets_find_words(const Sheets *sheets, const char *text)
{
    const DeviceSheet *found = sheets_find_product(sheets, text);
    const Words words = words_of(text);
    return found || words.n == 0 || words.long_ ? found : find(sheets, &words, "", true);
}
