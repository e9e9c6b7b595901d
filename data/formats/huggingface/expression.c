/* Evaluates expressions as they are read: a branch that is not taken is read without effect. */
#include "data/formats/huggingface/expression.h"

#include "data/base/text.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

typedef struct {
    Scope *scope;
    const char *at;
    uint32_t depth;
    bool skip;          /* read without effect */
    const Value *found; /* of an earlier name of the same, or NULL */
    char *wrong;
} Reading;

static Value read_any(Reading *r);

static Value value_number(double number)
{
    return (Value){.kind = isfinite(number) ? VALUE_NUMBER : VALUE_NONE,
                   .number = number};
}

static Value value_flag(bool flag)
{
    return (Value){.kind = VALUE_FLAG, .number = flag};
}

static Value expression_value_text(const char *text, size_t length)
{
    return (Value){.kind = VALUE_TEXT, .text = text, .length = length};
}

static Value value_json(const json_t *json)
{
    if (json_is_number(json))
        return value_number(json_number_value(json));
    if (json_is_boolean(json))
        return value_flag(json_is_true(json));
    if (json_is_string(json))
        return expression_value_text(json_string_value(json), json_string_length(json));
    return !json || json_is_null(json) ? (Value){.kind = VALUE_NONE}
                                       : (Value){.kind = VALUE_JSON, .json = json};
}

static bool is_number(const Value *value)
{
    return value->kind == VALUE_NUMBER || value->kind == VALUE_FLAG;
}

static bool is_true(const Value *value)
{
    return is_number(value) ? value->number != 0 : value->kind != VALUE_NONE;
}

static Value expression_fail(Reading *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
static Value expression_fail(Reading *r, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    if (!r->wrong)
        r->wrong = g_steal_pointer(&text);
    r->at += strlen(r->at);
    return (Value){.kind = VALUE_NONE};
}

/* --- words --- */

static bool is_word_char(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

static size_t word_length(Reading *r)
{
    while (g_ascii_isspace(*r->at))
        r->at++;
    size_t n = 0;
    while (is_word_char(r->at[n]))
        n++;
    return n;
}

/* Takes `token`, a word or a sign, if it is next. */
static bool expression_take(Reading *r, const char *token)
{
    const size_t n = strlen(token), word = word_length(r);
    if (strncmp(r->at, token, n) != 0 || (is_word_char(*token) && word != n))
        return false;
    r->at += n;
    return true;
}

static void expect(Reading *r, const char *token)
{
    if (!r->wrong && !expression_take(r, token))
        expression_fail(r, "expected '%s' at '%.20s'", token, r->at);
}

static bool equal(const Value *a, const Value *b)
{
    return is_number(a) && is_number(b) ? a->number == b->number
           : a->kind == VALUE_TEXT && b->kind == VALUE_TEXT
               ? a->length == b->length && memcmp(a->text, b->text, a->length) == 0
               : a->kind == b->kind && a->kind == VALUE_NONE;
}

/* The value of a key, which counts as read even where its value is not used, unless it is another
 * number than that of an earlier name of the same. */
static Value expression_read_key(Reading *r, const char *word, size_t length)
{
    g_autofree char *name = g_strndup(word, length);
    const json_t *json = json_object_get(r->scope->root, name);
    const Value value = value_json(json);
    const size_t blank = strspn(r->at, " ");
    const bool bare = !r->at[blank] || !strchr(".[+-*/%", r->at[blank]);
    if (!bare || !r->found || !is_number(r->found) || !is_number(&value) ||
        equal(r->found, &value))
        g_hash_table_add(r->scope->read, g_strdup(name));
    if (r->skip)
        return (Value){.kind = VALUE_NONE};
    if (json && !json_is_null(json))
        r->scope->key =
            json_object_iter_key(json_object_iter_at((json_t *)r->scope->root, name));
    return value;
}

static Value expression_read_fact(Reading *r)
{
    const size_t n = word_length(r);
    g_autofree char *name = g_strndup(r->at, n);
    Value value = {.kind = VALUE_NONE};
    r->at += n;
    if (strcmp(name, "layer") == 0)
        return value_number(r->scope->layer);
    if (!r->scope->fact(r->scope->data, name, &value, &r->scope->key) && !r->skip)
        return expression_fail(r, "no fact '%s' is read before", name);
    return value;
}

static Value expression_read_text(Reading *r)
{
    const char *end = strchr(r->at, '\'');
    if (!end)
        return expression_fail(r, "expected ' after '%.20s'", r->at);
    const Value value = expression_value_text(r->at, (size_t)(end - r->at));
    r->at = end + 1;
    return value;
}

/* --- functions --- */

static Value call(Reading *r, const char *name)
{
    Value a = {.kind = VALUE_NONE}, b = {.kind = VALUE_NONE};
    if (strcmp(name, "given") == 0) {
        const size_t n = word_length(r);
        g_autofree char *key = g_strndup(r->at, n);
        g_hash_table_add(r->scope->read, g_strdup(key));
        r->at += n;
        expect(r, ")");
        return value_flag(json_object_get(r->scope->root, key) != NULL);
    }
    a = read_any(r);
    const bool two = expression_take(r, ",");
    if (two)
        b = read_any(r);
    expect(r, ")");
    if (strcmp(name, "length") == 0 && !two)
        return a.kind == VALUE_TEXT ? value_number((double)a.length)
               : a.kind == VALUE_JSON
                   ? value_number(
                         (double)MAX(json_array_size(a.json), json_object_size(a.json)))
                   : (Value){.kind = VALUE_NONE};
    if (!is_number(&a) || (two && !is_number(&b)))
        return (Value){.kind = VALUE_NONE};
    if (strcmp(name, "min") == 0 && two)
        return value_number(fmin(a.number, b.number));
    if (strcmp(name, "max") == 0 && two)
        return value_number(fmax(a.number, b.number));
    if (strcmp(name, "floor") == 0 && !two)
        return value_number(floor(a.number + 1e-9));
    if (strcmp(name, "ceil") == 0 && !two)
        return value_number(ceil(a.number - 1e-9));
    return expression_fail(r, "unknown function %s", name);
}

/* --- operators, the tightest first --- */

static Value read_primary(Reading *r)
{
    if (expression_take(r, "(")) {
        const Value value = read_any(r);
        expect(r, ")");
        return value;
    }
    if (expression_take(r, "'"))
        return expression_read_text(r);
    if (expression_take(r, "$"))
        return expression_read_fact(r);
    if (expression_take(r, "-")) {
        if (++r->depth > MOST_DEPTH)
            return expression_fail(r, "too deep");
        const Value value = read_primary(r);
        r->depth--;
        return is_number(&value) ? value_number(-value.number)
                                 : (Value){.kind = VALUE_NONE};
    }
    const size_t n = word_length(r);
    if (n == 0)
        return expression_fail(r, "expected a value at '%.20s'", r->at);
    if (g_ascii_isdigit(*r->at)) {
        char *end;
        const double number = g_ascii_strtod(r->at, &end);
        r->at = end;
        return value_number(number);
    }
    if (n == 2 && strncmp(r->at, "if", n) == 0)
        return read_any(r);
    const char *word = r->at;
    r->at += n;
    if (expression_take(r, "(")) {
        g_autofree char *name = g_strndup(word, n);
        return call(r, name);
    }
    if (n == 4 && strncmp(word, "true", n) == 0)
        return value_flag(true);
    if (n == 5 && strncmp(word, "false", n) == 0)
        return value_flag(false);
    return n == 4 && strncmp(word, "null", n) == 0 ? (Value){.kind = VALUE_NONE}
                                                   : expression_read_key(r, word, n);
}

static Value element(Reading *r, const Value *of, const Value *index)
{
    if (of->kind == VALUE_NONE || !is_number(index) || index->number < 0)
        return (Value){.kind = VALUE_NONE};
    if (of->kind == VALUE_TEXT)
        return index->number < (double)of->length
                   ? expression_value_text(of->text + (size_t)index->number, 1)
                   : (Value){.kind = VALUE_NONE};
    if (of->kind != VALUE_JSON || !json_is_array(of->json))
        return expression_fail(r, "expected a list");
    return value_json(json_array_get(of->json, (size_t)index->number));
}

static Value read_postfix(Reading *r)
{
    Value value = read_primary(r);
    while (!r->wrong) {
        if (expression_take(r, "[")) {
            const char *key = r->scope->key;
            const Value index = read_any(r);
            r->scope->key = key;
            expect(r, "]");
            value = element(r, &value, &index);
        } else if (*r->at == '.') {
            r->at++;
            const size_t n = word_length(r);
            g_autofree char *name = g_strndup(r->at, n);
            r->at += n;
            if (value.kind != VALUE_NONE &&
                (value.kind != VALUE_JSON || !json_is_object(value.json)))
                return expression_fail(r, "expected an object");
            value = value_json(value.kind ? json_object_get(value.json, name) : NULL);
        } else
            break;
    }
    return value;
}

static Value expression_read_product(Reading *r)
{
    Value a = read_postfix(r);
    while (!r->wrong) {
        const char sign = expression_take(r, "*")   ? '*'
                          : expression_take(r, "/") ? '/'
                          : expression_take(r, "%") ? '%'
                                                    : 0;
        if (!sign)
            break;
        const Value b = read_postfix(r);
        if (!is_number(&a) || !is_number(&b))
            a = (Value){.kind = VALUE_NONE};
        else
            a = value_number(sign == '*'   ? a.number * b.number
                             : sign == '/' ? a.number / b.number
                                           : fmod(a.number, b.number));
    }
    return a;
}

static Value read_sum(Reading *r)
{
    Value a = expression_read_product(r);
    while (!r->wrong) {
        const bool plus = expression_take(r, "+");
        if (!plus && !expression_take(r, "-"))
            break;
        const Value b = expression_read_product(r);
        a = is_number(&a) && is_number(&b)
                ? value_number(a.number + (plus ? b.number : -b.number))
                : (Value){.kind = VALUE_NONE};
    }
    return a;
}

static Value read_alternative(Reading *r)
{
    Value a = read_sum(r);
    while (!r->wrong && expression_take(r, "|")) {
        const bool skip = r->skip;
        const Value *found = r->found;
        r->skip |= a.kind != VALUE_NONE;
        r->found = a.kind != VALUE_NONE ? &a : found;
        const Value b = read_sum(r);
        r->skip = skip;
        r->found = found;
        a = a.kind == VALUE_NONE ? b : a;
    }
    return a;
}

/* Whether a is one of the integers between the commas of a text. */
static Value among(Reading *r, const Value *a, const Value *text)
{
    g_autofree char *copy = g_strndup(text->text, text->length);
    g_autofree char *one = g_strdup_printf("%.17g", a->number);
    g_auto(GStrv) item = g_strsplit(copy, ",", -1);
    return copy[strspn(copy, "0123456789,")]
               ? expression_fail(r, "expected a list")
               : value_flag(g_strv_contains((const char *const *)item, one));
}

static Value read_comparison(Reading *r)
{
    static const char *const sign[] = {"==", "!=", "<=", ">=", "<", ">", "in"};
    const Value a = read_alternative(r);
    uint32_t s = 0;
    while (s < G_N_ELEMENTS(sign) && !r->wrong && !expression_take(r, sign[s]))
        s++;
    if (r->wrong || s == G_N_ELEMENTS(sign))
        return a;
    const Value b = read_alternative(r);
    if (s < 2)
        return value_flag(equal(&a, &b) == (s == 0));
    if (s == G_N_ELEMENTS(sign) - 1) {
        if (b.kind == VALUE_TEXT)
            return among(r, &a, &b);
        if (b.kind != VALUE_NONE && (b.kind != VALUE_JSON || !json_is_array(b.json)))
            return expression_fail(r, "expected a list");
        for (size_t i = 0; b.kind && i < json_array_size(b.json); i++) {
            const Value item = value_json(json_array_get(b.json, i));
            if (item.kind != a.kind)
                return expression_fail(r, "expected a list of %s",
                                       a.kind == VALUE_TEXT ? "texts" : "integers");
            if (equal(&a, &item))
                return value_flag(true);
        }
        return value_flag(false);
    }
    if (!is_number(&a) || !is_number(&b))
        return (Value){.kind = VALUE_NONE};
    return value_flag(s == 2   ? a.number <= b.number
                      : s == 3 ? a.number >= b.number
                      : s == 4 ? a.number < b.number
                               : a.number > b.number);
}

static Value read_not(Reading *r)
{
    if (!expression_take(r, "not"))
        return read_comparison(r);
    if (++r->depth > MOST_DEPTH)
        return expression_fail(r, "too deep");
    const Value a = read_not(r);
    r->depth--;
    return value_flag(!is_true(&a));
}

/* Terms joined by a word: with `any` one that is true ends it, else one that is not. */
static Value read_joined(Reading *r, Value (*term)(Reading *), const char *word, bool any)
{
    Value a = term(r);
    while (!r->wrong && expression_take(r, word)) {
        const bool skip = r->skip, known = is_true(&a) == any;
        r->skip |= known;
        const Value b = term(r);
        r->skip = skip;
        a = value_flag(known ? any : is_true(&b));
    }
    return a;
}

static Value read_and(Reading *r)
{
    return read_joined(r, read_not, "and", false);
}

static Value read_or(Reading *r)
{
    return read_joined(r, read_and, "or", true);
}

static Value read_branch(Reading *r, bool taken)
{
    const bool skip = r->skip;
    r->skip |= !taken;
    const Value value = read_any(r);
    r->skip = skip;
    return value;
}

static Value read_any(Reading *r)
{
    if (++r->depth > MOST_DEPTH)
        return expression_fail(r, "too deep");
    Value value;
    if (expression_take(r, "if")) {
        const Value condition = read_any(r);
        expect(r, "then");
        const Value yes = read_branch(r, is_true(&condition));
        expect(r, "else");
        const Value no = read_branch(r, !is_true(&condition));
        value = is_true(&condition) ? yes : no;
    } else
        value = read_or(r);
    r->depth--;
    return value;
}

bool expression_value(Scope *scope, const char *text, Value *value, char **wrong)
{
    Reading r = {.scope = scope, .at = text};
    scope->key = NULL;
    *value = read_any(&r);
    word_length(&r);
    if (!r.wrong && *r.at)
        expression_fail(&r, "expected an operator at '%.20s'", r.at);
    *wrong = r.wrong;
    return !r.wrong;
}
