/* The facts of a model from its file, by its family's row. */
#include "data/formats/huggingface/family.h"

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/text.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MOST_LIKE = 16 };

bool config_wrong(Config *config, const char *key, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    if (config->failed)
        return false;
    config->failed = true;
    const bool nested = config->nested && json_object_get(config->root, key);
    return refuse(config->error, "%s: %s%s%s: %s", config->file,
                  nested ? config->nested : "", nested ? "." : "", key, reason);
}
/* --- the table of facts --- */

typedef enum {
    FACT_SIZE,
    FACT_FLAG,
    FACT_NUMBER,
    FACT_NORM,
    FACT_ARRANGEMENT,
    FACT_ACTIVATION,
    FACT_QK_NORM,
    FACT_OUTPUT_GATE,
    FACT_MIXER,
    FACT_NETWORK,
} FactKind;

typedef struct {
    const char *name;
    FactKind kind;
    size_t at; /* in Architecture or LayerFacts */
    double least, most;
    bool of_layer;
} FactRow;

static const FactRow FACTS[] = {
#define X(kind, name, least, most) \
    {#name, FACT_##kind, offsetof(Architecture, name), least, most, false},
    MODEL_FACTS(X)
#undef X
#define X(kind, name, least, most) \
    {#name, FACT_##kind, offsetof(LayerFacts, name), least, most, true},
        LAYER_FACTS(X)
#undef X
};
G_STATIC_ASSERT(G_N_ELEMENTS(FACTS) <= FAMILY_MOST_FACTS);

/* The names of a choice, NULL at the end; NULL for other kinds. */
static const char *const *choices_of(FactKind kind)
{
#define X(id, name) name,
    static const char *const norm[] = {NORM_NAMES(X) NULL},
                             *const arrangement[] = {ARRANGEMENT_NAMES(X) NULL},
                             *const activation[] = {ACTIVATION_NAMES(X) NULL},
                             *const qk_norm[] = {QK_NORM_NAMES(X) NULL},
                             *const output_gate[] = {OUTPUT_GATE_NAMES(X) NULL},
                             *const mixer[] = {MIXER_NAMES(X) NULL},
                             *const network[] = {NETWORK_NAMES(X) NULL};
#undef X
    static const char *const *const of[] = {[FACT_NORM] = norm,
                                            [FACT_ARRANGEMENT] = arrangement,
                                            [FACT_ACTIVATION] = activation,
                                            [FACT_QK_NORM] = qk_norm,
                                            [FACT_OUTPUT_GATE] = output_gate,
                                            [FACT_MIXER] = mixer,
                                            [FACT_NETWORK] = network};
    return of[kind];
}

/* The index of a text among the choices, -1 if it is none. Activations have many names. */
static int choice_of(FactKind kind, const Value *value)
{
    static const struct {
        const char *name;
        Activation activation;
    } other[] = {{"swish", ACTIVATION_SILU},       {"swigluoai", ACTIVATION_SILU},
                 {"situ", ACTIVATION_SILU},        {"quick_gelu", ACTIVATION_GELU},
                 {"gelu_new", ACTIVATION_GELU},    {"gelu_fast", ACTIVATION_GELU},
                 {"gelu_python", ACTIVATION_GELU}, {"gelu_pytorch_tanh", ACTIVATION_GELU},
                 {"geglu", ACTIVATION_GELU},       {"gelu_10", ACTIVATION_GELU}};
    const char *const *name = choices_of(kind);
    for (int i = 0; name[i]; i++)
        if (strlen(name[i]) == value->length &&
            memcmp(name[i], value->text, value->length) == 0)
            return i;
    for (uint32_t i = 0; kind == FACT_ACTIVATION && i < G_N_ELEMENTS(other); i++)
        if (strlen(other[i].name) == value->length &&
            memcmp(other[i].name, value->text, value->length) == 0)
            return (int)other[i].activation;
    return -1;
}

/* --- rows --- */

/* The rows from `facts` (may be NULL) over `name` to the last one that is like no other. */
typedef struct {
    const json_t *row[MOST_LIKE + 1];
    uint32_t n;
} Rows;

static Rows rows_of(const Families *families, const json_t *facts, const char *name)
{
    Rows rows = {.n = 0};
    if (facts)
        rows.row[rows.n++] = facts;
    while (name && rows.n < G_N_ELEMENTS(rows.row)) {
        const json_t *row =
            families_has(families, name) ? families_row(families, name) : NULL;
        if (!row)
            break;
        rows.row[rows.n++] = row;
        name = json_string_value(json_object_get(row, "like"));
    }
    return rows;
}

static const json_t *row_value(const Rows *rows, const char *key)
{
    for (uint32_t r = 0; r < rows->n; r++) {
        const json_t *value = json_object_get(rows->row[r], key);
        if (value)
            return value;
    }
    return NULL;
}

bool family_is_fact(const char *name)
{
    return NAME_ROW(FACTS, G_N_ELEMENTS(FACTS), name, name);
}

/* --- reading --- */

typedef struct {
    Config *config;
    Rows rows;
    Scope scope;
    Architecture *a;
    uint32_t layer, n; /* facts before n are read */
    const char *key[G_N_ELEMENTS(FACTS)];
} Reader;

static void *fact_place(const Reader *r, const FactRow *row)
{
    return row->of_layer ? (char *)&r->a->layer[r->layer] + row->at
                         : (char *)r->a + row->at;
}

static Value fact_value(const Reader *r, const FactRow *row)
{
    const void *at = fact_place(r, row);
    const char *const *choices = choices_of(row->kind);
    if (choices) {
        const char *text = choices[*(const unsigned *)at];
        return (Value){.kind = VALUE_TEXT, .text = text, .length = strlen(text)};
    }
    return row->kind == FACT_FLAG
               ? (Value){.kind = VALUE_FLAG, .number = *(const bool *)at}
           : row->kind == FACT_SIZE
               ? (Value){.kind = VALUE_NUMBER, .number = *(const uint32_t *)at}
               : (Value){.kind = VALUE_NUMBER, .number = *(const double *)at};
}

static bool find_fact(void *data, const char *name, Value *value, const char **key)
{
    const Reader *r = data;
    const uint32_t i = NAME_PLACE(FACTS, r->n, name, name);
    if (i == r->n)
        return false;
    *value = fact_value(r, &FACTS[i]);
    *key = r->key[i] ? r->key[i] : *key;
    return true;
}

/* "4096", "\"wide\"": what a key or an expression has. Caller frees. */
static char *shown(const Reader *r, const Value *value)
{
    enum { SHOWN = 60 };
    const json_t *json =
        r->scope.key ? json_object_get(r->config->root, r->scope.key) : NULL;
    const bool plain = json && !json_is_array(json) && !json_is_object(json);
    if (!plain)
        return value->kind == VALUE_TEXT
                   ? g_strdup_printf("\"%.*s\"", (int)MIN(value->length, SHOWN),
                                     value->text)
               : value->kind == VALUE_JSON ? g_strdup("a list or an object")
               : value->kind == VALUE_NONE ? g_strdup("nothing")
                                           : g_strdup_printf("%.10g", value->number);
    return json_shown(json);
}

static bool unfit(Reader *r, const FactRow *row, const Value *value, const char *expected)
{
    g_autofree char *text = shown(r, value);
    const char *key = r->scope.key ? r->scope.key : row->name;
    return config_wrong(r->config, key, "expected %s%s%s, got %s", expected,
                        r->scope.key ? " for " : "", r->scope.key ? row->name : "", text);
}

/* Sets a fact of the current layer; nothing counts as 0, false, or the first choice. */
static bool set_fact(Reader *r, const FactRow *row, const Value *value)
{
    void *at = fact_place(r, row);
    const char *const *choices = choices_of(row->kind);
    if (choices) {
        const int choice = value->kind == VALUE_TEXT ? choice_of(row->kind, value) : -1;
        g_autofree char *names = g_strjoinv("|", (char **)choices);
        if (choice < 0 && value->kind != VALUE_NONE)
            return unfit(r, row, value, names);
        *(unsigned *)at = choice < 0 ? 0 : (unsigned)choice;
        return true;
    }
    if (row->kind == FACT_FLAG) {
        if (value->kind != VALUE_FLAG && value->kind != VALUE_NONE)
            return unfit(r, row, value, "true or false");
        *(bool *)at = value->kind == VALUE_FLAG && value->number != 0;
        return true;
    }
    const bool number = value->kind == VALUE_NUMBER;
    const double amount = number ? value->number : 0;
    const bool fits = (number || value->kind == VALUE_NONE) && amount >= row->least &&
                      amount <= row->most &&
                      (row->kind == FACT_NUMBER || amount == floor(amount));
    g_autofree char *expected = g_strdup_printf(
        "%s from %g to %.10g", row->kind == FACT_NUMBER ? "a number" : "an integer",
        row->least, row->most);
    if (!fits)
        return unfit(r, row, value, expected);
    if (row->kind == FACT_SIZE)
        *(uint32_t *)at = (uint32_t)amount;
    else
        *(double *)at = amount;
    return true;
}

/* The value of an expression of a row: a number or a text of the YAML. */
static bool evaluate(Reader *r, const char *what, const json_t *expression, FactKind kind,
                     Value *value)
{
    r->scope.key = NULL;
    const char *text = json_string_value(expression);
    *value = (Value){.kind = VALUE_NONE};
    if (!text) {
        value->kind = json_is_boolean(expression)  ? VALUE_FLAG
                      : json_is_number(expression) ? VALUE_NUMBER
                                                   : VALUE_NONE;
        value->number = json_is_boolean(expression) ? json_is_true(expression)
                                                    : json_number_value(expression);
        return true;
    }
    /* the name of a choice needs no quotes */
    *value = (Value){.kind = VALUE_TEXT, .text = text, .length = strlen(text)};
    if (choices_of(kind) && choice_of(kind, value) >= 0)
        return true;
    g_autofree char *wrong = NULL;
    if (expression_value(&r->scope, text, value, &wrong))
        return true;
    return config_wrong(r->config, r->scope.key ? r->scope.key : what, "%s", wrong);
}

static bool read_fact(Reader *r, uint32_t i)
{
    const FactRow *row = &FACTS[i];
    const json_t *expression = row_value(&r->rows, row->name);
    Value value = {.kind = VALUE_NONE};
    r->scope.key = NULL;
    if (expression && !evaluate(r, row->name, expression, row->kind, &value))
        return false;
    if (value.kind == VALUE_NONE && choices_of(row->kind) && expression) {
        g_autofree char *names = g_strjoinv("|", (char **)choices_of(row->kind));
        return unfit(r, row, &value, names);
    }
    if (!set_fact(r, row, &value))
        return false;
    r->key[i] = r->scope.key;
    r->n = i + 1;
    return true;
}

/* Tries the row's reasons to refuse a file. */
static bool check_refusals(Reader *r)
{
    const json_t *list = row_value(&r->rows, "refuse");
    Value value;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!evaluate(r, "refuse", json_array_get(list, i), FACT_SIZE, &value))
            return false;
        if (value.kind != VALUE_TEXT)
            continue;
        const char *colon = memchr(value.text, ':', value.length);
        const size_t key = colon ? (size_t)(colon - value.text) : value.length;
        g_autofree char *name = g_strndup(value.text, key),
                        *why = colon ? g_strndup(colon + 1, value.length - key - 1)
                                     : g_strdup("");
        return config_wrong(r->config, name, "no op for it%s%s", *why ? ":" : "", why);
    }
    return true;
}

static bool read_layers(Reader *r)
{
    uint32_t first = 0;
    while (!FACTS[first].of_layer)
        first++;
    for (r->layer = 0; r->layer < r->a->layers; r->layer++) {
        r->scope.layer = r->layer;
        for (uint32_t i = first; i < G_N_ELEMENTS(FACTS); i++)
            if (!read_fact(r, i))
                return false;
        if (!check_refusals(r))
            return false;
        r->n = first;
    }
    r->n = G_N_ELEMENTS(FACTS);
    return true;
}

/* Sets the error where a row is damaged, or rows do not end in decoder. Returns false. */
static bool config_without_rows(Config *config, const Families *families)
{
    json_auto_t *all = families_rows(families, config->failed ? NULL : config->error);
    config->failed |= !all;
    return config_wrong(config, "like",
                        "expected rows of data/families.yaml that end in decoder");
}

static bool check_rows(Reader *r, const Families *families)
{
    if (r->rows.n == 0 || r->rows.row[r->rows.n - 1] != families_row(families, "decoder"))
        return config_without_rows(r->config, families);
    for (uint32_t i = 0; i < r->rows.n; i++) {
        keys_each (key, r->rows.row[i]) {
            if (strcmp(key, "like") != 0 && strcmp(key, "refuse") != 0 &&
                strcmp(key, "encoder") != 0 && !family_is_fact(key))
                return config_wrong(r->config, key, "no fact of a model");
        }
    }
    return true;
}

/* The row of the encoder, an expression over the whole file, or NULL. That of a model whose text
 * has a row of its own is said by the whole's. Caller frees. */
static char *encoder_of(Reader *r, const Families *families)
{
    const char *whole =
        json_string_value(json_object_get(r->config->outer, "model_type"));
    const Rows outer = rows_of(families, NULL, whole);
    const json_t *text = row_value(&r->rows, "encoder");
    Value value = {.kind = VALUE_NONE};
    if (!text)
        text = r->config->nested ? row_value(&outer, "encoder") : NULL;
    if (!text || families_has(families, json_string_value(text)))
        return g_strdup(json_string_value(text));
    const json_t *root = r->scope.root;
    r->scope.root = r->config->outer;
    const bool good = evaluate(r, "encoder", text, FACT_SIZE, &value);
    r->scope.root = root;
    return good && value.kind == VALUE_TEXT ? g_strndup(value.text, value.length) : NULL;
}

/* Adds the keys that it reads to `read`. */
static bool read_rows(const Families *families, Config *config, const char *name,
                      const json_t *facts, Architecture *a, GHashTable *read)
{
    Reader r = {.config = config,
                .rows = rows_of(families, facts, name),
                .a = a,
                .scope = {.root = config->root, .read = read, .fact = find_fact}};
    const char *fact = NULL;
    r.scope.data = &r;
    bool good = check_rows(&r, families);
    for (uint32_t i = 0; good && !FACTS[i].of_layer; i++) {
        good = read_fact(&r, i);
        if (good && i == 0)
            architecture_layers(a, a->layers);
    }
    good = good && read_layers(&r);
    g_autofree char *encoder = good ? encoder_of(&r, families) : NULL;
    if (encoder && families_has(families, encoder)) {
        a->encoder = g_new0(Architecture, 1);
        Config whole = *config; /* a text part says nothing of what is beside it */
        whole.root = config->outer;
        whole.nested = NULL;
        good = read_rows(families, &whole, encoder, NULL, a->encoder, read);
        config->failed |= whole.failed;
    }
    const char *wrong = good ? architecture_check(a, 0, &fact) : NULL;
    for (uint32_t i = 0; wrong && i < G_N_ELEMENTS(FACTS); i++)
        if (strcmp(FACTS[i].name, fact) == 0)
            good = config_wrong(config, r.key[i] ? r.key[i] : fact, "%s", wrong);
    return good;
}

bool family_read(const Families *families, Config *config, const char *name,
                 const json_t *facts, Architecture *a)
{
    g_autoptr(GHashTable) read = text_table(NULL);
    const bool good = read_rows(families, config, name, facts, a, read);
    if (good) {
        GString *text = g_string_new("");
        families_unread(families, config->root, read, text);
        if (config->outer != config->root)
            families_unread(families, config->outer, read, text);
        a->unread = g_string_free(text, text->len == 0);
    }
    return good;
}

static json_t *json_of(const Value *value, FactKind kind)
{
    return value->kind == VALUE_TEXT   ? json_string(value->text)
           : value->kind == VALUE_FLAG ? json_boolean(value->number != 0)
           : kind == FACT_SIZE         ? json_integer((json_int_t)value->number)
                                       : json_real(value->number);
}

/* "attention x 12, delta x 36" in the order in which they come first. */
static char *counts_of(Reader *r, const FactRow *row)
{
    g_autoptr(GPtrArray) seen = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) count = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GString *text = g_string_new("");
    for (r->layer = 0; r->layer < r->a->layers; r->layer++) {
        const Value value = fact_value(r, row);
        g_autofree char *name = value.kind == VALUE_TEXT
                                    ? g_strdup(value.text)
                                    : g_strdup_printf("%.10g", value.number);
        const uint32_t one = 1, i = TEXT_PLACE(seen->pdata, seen->len, name);
        if (i < seen->len)
            g_array_index(count, uint32_t, i)++;
        else {
            g_ptr_array_add(seen, g_steal_pointer(&name));
            g_array_append_val(count, one);
        }
    }
    r->layer = 0;
    for (uint32_t i = 0; i < seen->len; i++)
        g_string_append_printf(text, "%s%s x %u", i ? ", " : "",
                               (const char *)seen->pdata[i],
                               g_array_index(count, uint32_t, i));
    const bool several = seen->len > 1;
    return g_string_free(text, !several);
}

json_t *family_facts(const Architecture *a)
{
    json_t *facts = json_object();
    Reader r = {.a = (Architecture *)a};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FACTS); i++) {
        const Value value = fact_value(&r, &FACTS[i]);
        g_autofree char *counts = FACTS[i].of_layer ? counts_of(&r, &FACTS[i]) : NULL;
        if (counts)
            json_object_set_new(facts, FACTS[i].name, json_string(counts));
        else if (value.kind == VALUE_TEXT || value.number != 0)
            json_object_set_new(facts, FACTS[i].name, json_of(&value, FACTS[i].kind));
    }
    return facts;
}
