/* Text from JSON by templates. A template is short and is parsed again for every row. */
#include "experiments/render.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "data/models/model.h"

#include <glib.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- values --- */

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

/* Whether the value is there: not NULL, null, false, "" or an empty list. */
static bool render_is_there(const json_t *value)
{
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_string(value) && !*json_string_value(value)) &&
           !(json_is_array(value) && json_array_size(value) == 0) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

/* Appends the text in at least `width` columns. */
static void render_pad(GString *out, const char *text, int width, bool left)
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
    *quantity = TEXT_PLACE(KINDS, G_N_ELEMENTS(KINDS), kind);
    return *quantity < G_N_ELEMENTS(KINDS);
}

/* A number with fixed digits, with or without a plus. */
static char *fixed(const Format *spec, double value, int digits, const char *unit)
{
    const int precision = spec->precision < 0 ? digits : spec->precision;
    return spec->sign ? g_strdup_printf("%+.*f%s", precision, value, unit)
                      : g_strdup_printf("%.*f%s", precision, value, unit);
}

/* "8.03 B": three digits, in thousands, millions, billions (10^9) or more. */
static char *render_short_text(double number)
{
    static const char *const unit[] = {"", " K", " M", " B", " T", " P", " E"};
    uint32_t u = 0;
    while (fabs(number) >= 999.5 && u + 1 < G_N_ELEMENTS(unit)) {
        number /= 1e3;
        u++;
    }
    const double size = fabs(number);
    const int digits = u ? (size < 99.95) + (size < 9.995) : 0;
    return g_strdup_printf("%.*f%s", digits, number, unit[u]);
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
    if (strcmp(spec->kind, "flop") == 0) {
        g_autofree char *rate = units_format(number, QUANTITY_RATE);
        return g_strndup(rate, strlen(rate) - strlen("/s"));
    }
    if (strcmp(spec->kind, "si") == 0)
        return render_short_text(number);
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

/* Appends how much a number, or a list's length, exceeds the precision; false if it does not. */
static bool put_over(GString *out, const json_t *value, const Format *spec)
{
    const json_int_t n = json_is_array(value) ? (json_int_t)json_array_size(value)
                                              : json_integer_value(value);
    if (n > spec->precision)
        g_string_append_printf(out, "%" JSON_INTEGER_FORMAT, n - spec->precision);
    return n > spec->precision;
}

/* Appends text of a page, escaped; of a number the blanks keep it in one line, and `small` marks
 * its unit. */
static void render_html_escape(GString *out, const char *text, bool number, bool small)
{
    g_autofree char *plain = g_utf8_make_valid(text, -1);
    g_autofree char *escaped = g_markup_escape_text(plain, -1);
    g_auto(GStrv) words = g_strsplit(escaped, " ", number ? -1 : 1);
    const bool unit = number && small && words[0] && words[1];
    g_autofree char *joined = g_strjoinv(unit ? " <small>" : "\u00a0", words);
    g_string_append_printf(out, "%s%s", joined, unit ? "</small>" : "");
}

/* Appends text of a manual page, escaped. */
static void render_roff_escape(GString *out, const char *text)
{
    bool begins = true;
    for (const char *c = text; *c; c++) {
        if (begins && (*c == '.' || *c == '\''))
            g_string_append(out, "\\&");
        if (*c == '\\')
            g_string_append(out, "\\e");
        else if (*c == '-')
            g_string_append(out, "\\-");
        else
            g_string_append_c(out, *c);
        begins = *c == '\n';
    }
}

/* Appends the value, or "-", and returns whether it is there. */
static bool render_value(GString *out, const json_t *value, const char *text)
{
    const Format spec = format_of(text);
    if (strcmp(spec.kind, "over") == 0)
        return put_over(out, value, &spec);
    const bool there = render_is_there(value);
    g_autofree char *words =
        json_is_number(value)  ? number_text(value, &spec)
        : !there               ? g_strdup("-")
        : json_is_array(value) ? list_text(value, &spec)
        : strcmp(spec.kind, "brief") == 0
            ? model_brief(json_string_value(value))
            : g_strdup(json_is_string(value) ? json_string_value(value) : "yes");
    render_pad(out, words, spec.width, spec.left);
    return there;
}

/* The language of the text. */
typedef enum { MARKUP_NONE, MARKUP_HTML, MARKUP_ROFF } Markup;

/* The scope in which a key is looked up: an element of a list, then the scope around it. */
typedef struct Scope {
    const struct Scope *outer;
    const json_t *value;
    const json_t *facts;  /* {"#", "alike"}; NULL outside of rows */
    const json_t *before; /* the previous row; NULL at the first */
    Markup markup;
} Scope;

/* A piece of a template, from `at` to before `end`. */
typedef struct {
    const char *at, *end;
} Piece;

static bool put(GString *out, Piece piece, const Scope *scope);

/* --- members --- */

static const json_t *step(const json_t *value, const char *key)
{
    return json_is_array(value)
               ? json_array_get(value, (size_t)g_ascii_strtoull(key, NULL, 10))
               : json_object_get(value, key);
}

static const json_t *find(const Scope *scope, const char *path)
{
    g_auto(GStrv) key = g_strsplit(path, ".", -1);
    const json_t *value = NULL;
    if (strcmp(path, ".") == 0)
        return scope->value;
    if (*path == '.')
        return json_object_get(scope->value, path + 1);
    for (; scope && !value; scope = scope->outer) {
        value = json_object_get(scope->facts, key[0]);
        value = value ? value : json_object_get(scope->value, key[0]);
    }
    for (char **next = key + 1; value && key[0] && *next; next++)
        value = step(value, *next);
    return value;
}

/* --- fields --- */

/* A number, or the length of a list. */
static double size_of(const json_t *value)
{
    return json_is_array(value) ? (double)json_array_size(value)
                                : json_number_value(value);
}

static bool is_met(const char *condition, const Scope *scope)
{
    g_autofree char *key = g_strndup(condition + 1, strcspn(condition + 1, "=>"));
    const char *than = condition + 1 + strlen(key);
    const json_t *value = find(scope, key);
    if (*condition == '^')
        return !json_equal(value, json_object_get(scope->before, key));
    const bool is = *than == '=' ? g_strcmp0(json_string_value(value), than + 1) == 0
                    : *than == '>'
                        ? size_of(value) > g_ascii_strtod(than + 1, NULL)
                        : render_is_there(value) &&
                              (!json_is_number(value) || json_number_value(value) != 0);
    return is == (*condition == '?');
}

static bool put_field(GString *out, Piece piece, const Scope *scope)
{
    g_autofree char *text = g_strndup(piece.at, (size_t)(piece.end - piece.at));
    if (*text == '?' || *text == '!' || *text == '^')
        return is_met(text, scope);
    char *spec = strchr(text, ':');
    if (spec)
        *spec++ = '\0';
    const json_t *value = find(scope, text);
    const bool plain = !scope->markup || g_strcmp0(spec, "raw") == 0;
    if (plain)
        return render_value(out, value, spec && !scope->markup ? spec : "");
    g_autoptr(GString) words = g_string_new("");
    const bool there = render_value(words, value, spec ? spec : "");
    if (scope->markup == MARKUP_ROFF)
        render_roff_escape(out, words->str);
    else
        render_html_escape(out, words->str, json_is_number(value), spec && *spec == '+');
    return there;
}

/* --- groups --- */

/* The bracket that closes the one before `at`. */
static const char *closing(const char *at, const char *end)
{
    for (uint32_t depth = 1; at < end; at++) {
        at += *at == '\\';
        depth += *at == '[';
        depth -= *at == ']';
        if (depth == 0)
            return at;
    }
    g_assert_not_reached();
}

/* Cuts off the text before the next `mark` outside of brackets; `end` itself without one. */
static Piece cut(Piece *rest, char mark)
{
    uint32_t depth = 0;
    const char *at = rest->at;
    for (; at < rest->end && (*at != mark || depth > 0); at++) {
        at += *at == '\\';
        depth += *at == '[';
        depth -= *at == ']';
    }
    const Piece first = {rest->at, MIN(at, rest->end)};
    rest->at = MIN(at + 1, rest->end + 1);
    return first;
}

static void put_first_complete(GString *out, Piece piece, const Scope *scope)
{
    while (piece.at <= piece.end) {
        const Piece choice = cut(&piece, '|');
        const gsize length = out->len;
        if (put(out, choice, scope))
            return;
        g_string_truncate(out, length);
    }
}

static void put_padded(GString *out, Piece piece, const Scope *scope)
{
    g_autoptr(GString) text = g_string_new("");
    char *after;
    const gint64 width = g_ascii_strtoll(piece.at, &after, 10);
    g_assert(*after == ':');
    put(text, (Piece){after + 1, piece.end}, scope);
    render_pad(out, text->str, (int)ABS(width), width < 0);
}

/* [*KEY/SEPARATOR<N:A&B&C] */
typedef struct {
    json_t *list;
    const char *separator; /* "" */
    size_t most;
    Piece head, tail, apart;
    bool folds;
} Rows;

static json_t *facts_of(size_t index, size_t alike)
{
    return json_pack("{s:I, s:I}", "#", (json_int_t)index, "alike", (json_int_t)alike);
}

static char *render_text_of(const Rows *rows, size_t i, Piece piece, const Scope *outer)
{
    GString *text = g_string_new("");
    json_auto_t *facts = facts_of(i, 1);
    const Scope scope = {outer, json_array_get(rows->list, i), facts, NULL,
                         outer->markup};
    put(text, piece, &scope);
    return g_string_free(text, FALSE);
}

/* [i]: the number of elements that are equal to element i, which is the first of them; 0 if an
 * earlier one is. Without folding 1. The caller frees them. */
static size_t *count_alike(const Rows *rows, const Scope *outer)
{
    const size_t n = json_array_size(rows->list);
    size_t *alike = g_new0(size_t, n + 1);
    g_autoptr(GHashTable) first = text_table(NULL);
    for (size_t i = 0; i < n; i++) {
        if (!rows->folds) {
            alike[i] = 1;
            continue;
        }
        g_autofree char *tail = render_text_of(rows, i, rows->tail, outer);
        g_autofree char *apart = render_text_of(rows, i, rows->apart, outer);
        char *key = g_strconcat(tail, "\n", apart, NULL);
        const size_t known = GPOINTER_TO_SIZE(g_hash_table_lookup(first, key));
        alike[known ? known - 1 : i]++;
        if (known)
            g_free(key);
        else
            g_hash_table_insert(first, key, GSIZE_TO_POINTER(i + 1));
    }
    return alike;
}

static void put_rows(GString *out, const Rows *rows, const Scope *outer)
{
    const size_t n = json_array_size(rows->list);
    g_autofree size_t *alike = count_alike(rows, outer);
    size_t shown = 0;
    for (size_t i = 0; i < n && shown < rows->most; i++) {
        if (alike[i] == 0)
            continue;
        json_auto_t *facts = facts_of(shown, alike[i]);
        const Scope scope = {outer, json_array_get(rows->list, i), facts,
                             i > 0 ? json_array_get(rows->list, i - 1) : NULL,
                             outer->markup};
        const gsize before = out->len;
        g_string_append(out, shown ? rows->separator : "");
        const gsize start = out->len;
        put(out, rows->head, &scope);
        put(out, rows->tail, &scope);
        if (out->len > start)
            shown++;
        else
            g_string_truncate(out, before);
    }
}

/* The list itself, or a list of the object's members. */
static json_t *rows_of(const json_t *value)
{
    json_t *list = json_array();
    if (json_is_array(value))
        json_array_extend(list, (json_t *)value);
    members_each (key, member, value)
        json_array_append_new(list, json_pack("{s:s, s:O}", "key", key, "value", member));
    return list;
}

static void put_list(GString *out, Piece piece, const Scope *scope)
{
    const Piece name = cut(&piece, ':');
    g_autofree char *key = g_strndup(name.at, (size_t)(name.end - name.at));
    char *limit = strchr(key, '<'), *separator = strchr(key, '/');
    if (limit)
        *limit++ = '\0';
    if (separator)
        *separator++ = '\0';
    Rows rows = {
        .list = rows_of(find(scope, key)),
        .separator = separator ? separator : "",
        .most = limit ? (size_t)g_ascii_strtoull(limit, NULL, 10) : G_MAXSIZE,
        .head = cut(&piece, '&'),
    };
    rows.folds = piece.at <= piece.end;
    const Piece none = {piece.end, piece.end};
    rows.tail = rows.folds ? cut(&piece, '&') : none;
    rows.apart = piece.at <= piece.end ? piece : none;
    put_rows(out, &rows, scope);
    json_decref(rows.list);
}

static void put_group(GString *out, Piece piece, const Scope *scope)
{
    const Piece inner = {piece.at + 1, piece.end};
    if (*piece.at == '*')
        put_list(out, inner, scope);
    else if (*piece.at == '=')
        put_padded(out, inner, scope);
    else
        put_first_complete(out, piece, scope);
}

/* Appends the text; returns whether all of its members are there. */
static bool put(GString *out, Piece piece, const Scope *scope)
{
    bool complete = true;
    for (const char *at = piece.at; at < piece.end; at++) {
        if (*at == '{') {
            const char *end = memchr(at, '}', (size_t)(piece.end - at));
            g_assert(end);
            complete &= put_field(out, (Piece){at + 1, end}, scope);
            at = end;
        } else if (*at == '[') {
            const char *end = closing(at + 1, piece.end);
            put_group(out, (Piece){at + 1, end}, scope);
            at = end;
        } else {
            at += *at == '\\';
            g_string_append_c(out, *at);
        }
    }
    return complete;
}

static char *render_as(const char *text, const json_t *value, Markup markup)
{
    GString *out = g_string_new("");
    const Scope scope = {NULL, value, NULL, NULL, markup};
    put(out, (Piece){text, text + strlen(text)}, &scope);
    return g_string_free(out, FALSE);
}

char *render(const char *text, const json_t *value)
{
    return render_as(text, value, MARKUP_NONE);
}

char *render_html(const char *text, const json_t *value)
{
    return render_as(text, value, MARKUP_HTML);
}

char *render_roff(const char *text, const json_t *value)
{
    return render_as(text, value, MARKUP_ROFF);
}
