/* Numbers, strings and lists of names as text. */
#include "experiments/render_value.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/units.h"

enum { NAMES_SHOWN = 4 };

typedef struct {
    bool left, sign;
    int width, precision; /* precision -1: none given */
    const char *kind;
} Format;

static Format format_of(const char *text)
{
    Format spec = {.precision = -1};
    for (; *text == '-' || *text == '+'; text++) {
        spec.left |= *text == '-';
        spec.sign |= *text == '+';
    }
    char *end = (char *)text;
    spec.width = (int)g_ascii_strtoull(text, &end, 10);
    if (*end == '.')
        spec.precision = (int)g_ascii_strtoull(end + 1, &end, 10);
    spec.kind = end;
    return spec;
}

bool render_is_there(const json_t *value)
{
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_string(value) && !*json_string_value(value)) &&
           !(json_is_array(value) && json_array_size(value) == 0) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

void render_pad(GString *out, const char *text, int width, bool left)
{
    const int blanks = MAX(0, width - (int)g_utf8_strlen(text, -1));
    g_string_append_printf(out, "%*s%s%*s", left ? 0 : blanks, "", text,
                           left ? blanks : 0, "");
}

/* --- numbers --- */

static bool quantity_of(const char *kind, Quantity *quantity)
{
    static const char *const KINDS[] = {
        [QUANTITY_BYTES] = "bytes", [QUANTITY_BANDWIDTH] = "bandwidth",
        [QUANTITY_RATE] = "rate",   [QUANTITY_TIME] = "time",
        [QUANTITY_POWER] = "power", [QUANTITY_PRICE] = "price",
        [QUANTITY_TOLL] = "toll",   [QUANTITY_FREQUENCY] = "frequency",
    };
    for (uint32_t q = 0; q < G_N_ELEMENTS(KINDS); q++)
        if (strcmp(KINDS[q], kind) == 0) {
            *quantity = (Quantity)q;
            return true;
        }
    return false;
}

/* A number with fixed digits, with or without a plus. */
static char *fixed(const Format *spec, double value, int digits, const char *unit)
{
    const int precision = spec->precision < 0 ? digits : spec->precision;
    return spec->sign ? g_strdup_printf("%+.*f%s", precision, value, unit)
                      : g_strdup_printf("%.*f%s", precision, value, unit);
}

/* "8.03 B": three digits, in thousands, millions, billions (10^9) or more. */
static char *short_text(double number)
{
    static const char *const unit[] = {"", " K", " M", " B", " T", " P", " E"};
    uint32_t u = 0;
    while (fabs(number) >= 999.5 && u + 1 < G_N_ELEMENTS(unit)) {
        number /= 1e3;
        u++;
    }
    const double size = fabs(number);
    return g_strdup_printf("%.*f%s",
                           u == 0 || size >= 99.95 ? 0
                           : size >= 9.995         ? 1
                                                   : 2,
                           number, unit[u]);
}

/* "114,000", "4,750", "13.9", "0.117": three digits of a real, all of an integer. */
static char *digits_text(const json_t *value, double factor)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    const double number = factor * json_number_value(value);
    g_ascii_formatd(text, sizeof text, "%.2e", number);
    const double three = json_is_integer(value) ? number : g_ascii_strtod(text, NULL);
    const int whole = three == 0 ? 3 : 1 + (int)floor(log10(fabs(three)));
    GString *out = g_string_new(NULL);
    g_string_printf(out, "%.*f", json_is_integer(value) ? 0 : CLAMP(3 - whole, 0, 12),
                    three);
    const char *point = strchr(out->str, '.');
    for (gssize at = (point ? point - out->str : (gssize)out->len) - 3; at > (three < 0);
         at -= 3)
        g_string_insert_c(out, at, ',');
    return g_string_free(out, FALSE);
}

static char *number_text(const json_t *value, const Format *spec)
{
    const double number = json_number_value(value);
    Quantity quantity;
    if (quantity_of(spec->kind, &quantity))
        return units_format(number, quantity);
    if (strcmp(spec->kind, "%") == 0)
        return fixed(spec, 100 * number, 1, " %");
    if (strcmp(spec->kind, "ms") == 0)
        return fixed(spec, 1e3 * number, 1, " ms");
    if (strcmp(spec->kind, "mi") == 0)
        return fixed(spec, number / (1 << 20), 1, "");
    if (strcmp(spec->kind, "si") == 0)
        return short_text(number);
    if (strcmp(spec->kind, "n") == 0)
        return digits_text(value, 1);
    if (strcmp(spec->kind, "n%") == 0) {
        g_autofree char *digits = digits_text(value, 100);
        return g_strconcat(digits, " %", NULL);
    }
    if (strcmp(spec->kind, "f") == 0)
        return fixed(spec, number, 6, "");
    if (strcmp(spec->kind, "s") == 0)
        return g_strdup(number == 1 ? "" : "s");
    g_assert(!*spec->kind || strcmp(spec->kind, "g") == 0);
    return json_is_integer(value)
               ? g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
               : g_strdup_printf("%.*g", spec->precision < 0 ? 4 : spec->precision,
                                 number);
}

/* --- lists --- */

static char *element_text(const json_t *list, size_t i)
{
    const json_t *value = json_array_get(list, i);
    const Format plain = {.precision = -1, .kind = ""};
    return json_is_number(value) ? number_text(value, &plain)
                                 : g_strdup(json_string_value(value));
}

/* "a, b, c and 4 more"; at most `most` + 1 names are written out. */
static char *some_names(const json_t *list, size_t most)
{
    GString *text = g_string_new(NULL);
    const size_t n = json_array_size(list), shown = n <= most + 1 ? n : most;
    for (size_t i = 0; i < shown; i++) {
        g_autofree char *name = element_text(list, i);
        g_string_append_printf(text, "%s%s", i ? ", " : "", name);
    }
    if (shown < n)
        g_string_append_printf(text, " and %zu more", n - shown);
    return g_string_free(text, FALSE);
}

/* The length of the name up to a number at its end, and the number; false if it has none. */
static bool numbered(const char *name, size_t *stem, unsigned long *number)
{
    const size_t n = strlen(name);
    *stem = n;
    while (*stem > 0 && g_ascii_isdigit(name[*stem - 1]))
        --*stem;
    *number = strtoul(name + *stem, NULL, 10);
    return *stem < n;
}

/* Whether b is a with the next number. */
static bool follows(const char *a, const char *b)
{
    size_t stem, other;
    unsigned long number, next;
    return numbered(a, &stem, &number) && numbered(b, &other, &next) && stem == other &&
           strncmp(a, b, stem) == 0 && next == number + 1;
}

/* The names from the second on, as "layers.1-7, layers.9". */
static char *rest_of(const json_t *names)
{
    GString *text = g_string_new(NULL);
    const size_t n = json_array_size(names);
    for (size_t i = 1; i < n;) {
        size_t last = i;
        const char *end = json_string_value(json_array_get(names, i));
        g_string_append_printf(text, "%s%s", i > 1 ? ", " : "", end);
        while (last + 1 < n &&
               follows(end, json_string_value(json_array_get(names, last + 1))))
            end = json_string_value(json_array_get(names, ++last));
        size_t stem;
        unsigned long number;
        if (last > i && numbered(end, &stem, &number))
            g_string_append_printf(text, "-%lu", number);
        i = last + 1;
    }
    return g_string_free(text, FALSE);
}

static char *list_text(const json_t *list, const Format *spec)
{
    const size_t n = json_array_size(list);
    if (strcmp(spec->kind, "count") == 0)
        return g_strdup_printf("%zu", n);
    if (strcmp(spec->kind, "rest") == 0)
        return rest_of(list);
    return some_names(list, strcmp(spec->kind, "names") == 0 ? NAMES_SHOWN : n);
}

/* Appends how much a number, or the length of a list, exceeds the precision; false if it does
 * not. */
static bool put_over(GString *out, const json_t *value, const Format *spec)
{
    const json_int_t n = json_is_array(value) ? (json_int_t)json_array_size(value)
                                              : json_integer_value(value);
    if (n > spec->precision)
        g_string_append_printf(out, "%" JSON_INTEGER_FORMAT, n - spec->precision);
    return n > spec->precision;
}

void render_html_escape(GString *out, const char *text, bool number, bool small)
{
    g_autofree char *plain = g_utf8_make_valid(text, -1);
    g_autofree char *escaped = g_markup_escape_text(plain, -1);
    g_auto(GStrv) words = g_strsplit(escaped, " ", number ? -1 : 1);
    const bool unit = number && small && words[0] && words[1];
    g_autofree char *joined = g_strjoinv(unit ? " <small>" : "\u00a0", words);
    g_string_append_printf(out, "%s%s", joined, unit ? "</small>" : "");
}

bool render_value(GString *out, const json_t *value, const char *text)
{
    const Format spec = format_of(text);
    if (strcmp(spec.kind, "over") == 0)
        return put_over(out, value, &spec);
    const bool there = render_is_there(value);
    g_autofree char *words =
        json_is_number(value) ? number_text(value, &spec)
        : !there              ? g_strdup("-")
        : json_is_array(value)
            ? list_text(value, &spec)
            : g_strdup(json_is_string(value) ? json_string_value(value) : "yes");
    render_pad(out, words, spec.width, spec.left);
    return there;
}
