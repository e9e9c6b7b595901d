/* The machine of pickles, with those of its operations that make plain values. */
#include "data/formats/measured/pickle.h"

#include <stdint.h>

#include "data/base/error.h"
#include "data/base/free.h"

/* On the stack; value NULL: a mark. */
typedef struct {
    json_t *value;
    uint32_t depth; /* of lists and dicts in one another */
} PickleItem;

typedef struct {
    const char *at, *end;
    const char *const *key;
    GArray *stack; /* of PickleItem */
    json_t *memo, *answer;
} Pickle;

/* Arguments of operations: so many bytes or values, or those above the last mark. */
enum { MARKED = 4, TUPLE = 8 };

static bool pickle_push(Pickle *p, json_t *value)
{
    const PickleItem item = {value, json_is_array(value) || json_is_object(value)};
    g_array_append_val(p->stack, item);
    return true;
}

static bool pickle_begin(Pickle *p, int type)
{
    return pickle_push(p, type == '['   ? json_array()
                          : type == '{' ? json_object()
                                        : NULL);
}

/* The next `n` bytes, at most 8, the lowest first. */
static bool pickle_bytes(Pickle *p, int n, uint64_t *number)
{
    *number = 0;
    for (int i = 0; i < n && p->at < p->end; i++)
        *number |= (uint64_t)(uint8_t)*p->at++ << 8 * i;
    return p->at < p->end; /* more follows, if only the stop */
}

static bool pickle_skip(Pickle *p, int n)
{
    return pickle_bytes(p, n, &(uint64_t){0});
}

static bool pickle_null(Pickle *p, int n)
{
    return pickle_skip(p, n) && pickle_push(p, json_null());
}

/* Of as many bytes as the next says, or so many, which below 4 have no sign. */
static bool pickle_integer(Pickle *p, int bytes)
{
    uint64_t n = (uint64_t)bytes, number;
    if ((n == 0 && !pickle_bytes(p, 1, &n)) || n > 8 || !pickle_bytes(p, (int)n, &number))
        return false;
    if (bytes % 4 == 0 && n > 0 && number >> (8 * n - 1))
        number |= ~(UINT64_MAX >> (64 - 8 * n));
    return pickle_push(p, json_integer((json_int_t)number));
}

static bool pickle_text(Pickle *p, int n)
{
    uint64_t length;
    if (!pickle_bytes(p, n, &length) || length > (uint64_t)(p->end - p->at))
        return false;
    json_t *text = json_stringn(p->at, (size_t)length);
    p->at += length;
    return text && pickle_push(p, text);
}

static bool pickle_get(Pickle *p, int n)
{
    uint64_t place;
    json_t *value = pickle_bytes(p, n, &place) ? json_array_get(p->memo, place) : NULL;
    return value && pickle_push(p, json_incref(value));
}

/* Places are in order in what Python writes. */
static bool pickle_put(Pickle *p, int n)
{
    uint64_t place;
    const PickleItem *top = &g_array_index(p->stack, PickleItem, p->stack->len - 1);
    return pickle_bytes(p, n, &place) && p->stack->len > 0 && top->value &&
           (n == 0 || place == json_array_size(p->memo)) &&
           json_array_append_new(p->memo, top->depth > 0 ? json_null()
                                                         : json_incref(top->value)) == 0;
}

/* Moves the values from `first` on into the list or dict `into`. */
static bool pickle_move(Pickle *p, PickleItem *into, guint first)
{
    enum { DEPTH = 64 };
    const guint each = json_is_object(into->value) ? 2 : 1;
    for (guint i = first + each - 1; i < p->stack->len; i += each) {
        const PickleItem *item = &g_array_index(p->stack, PickleItem, i);
        const char *key = json_string_value(item[1 - (int)each].value);
        if (each == 1)
            json_array_append(into->value, item->value);
        else if (key && g_strv_contains(p->key, key))
            json_object_set(into->value, key, item->value);
        into->depth = MAX(into->depth, item->depth + 1);
    }
    return into->depth <= DEPTH;
}

/* Values become a tuple, or go into the list or dict below. */
static bool pickle_gather(Pickle *p, int how)
{
    const guint n = p->stack->len, marks = how & MARKED ? 1 : 0,
                wanted = marks ? n : (guint)how & 3;
    PickleItem *item = (PickleItem *)(void *)p->stack->data;
    guint first = n;
    while (first > 0 && n - first < wanted && item[first - 1].value)
        first--;
    if (marks ? first == 0 : n - first < wanted)
        return false;
    if (!(how & TUPLE) && (first <= marks || item[first - marks - 1].depth == 0 ||
                           !pickle_move(p, &item[first - marks - 1], first)))
        return false;
    g_array_set_size(p->stack, first - marks);
    return !(how & TUPLE) || pickle_push(p, json_null());
}

static bool pickle_stop(Pickle *p, int n)
{
    p->answer = p->stack->len == 1 ? g_array_index(p->stack, PickleItem, n).value : NULL;
    return !json_incref(p->answer);
}

/* Bytes of operations, each with its argument; 0 ends them. */
static const struct {
    bool (*does)(Pickle *p, int argument);
    uint8_t operation[20];
} OPERATION[] = {{pickle_stop, {'.', 0}},
                 {pickle_skip, {0x80, 1, 0x95, 8}},
                 {pickle_begin, {'(', '(', ']', '[', '}', '{'}},
                 {pickle_null, {'N', 0, 0x88, 0, 0x89, 0, ')', 0, 'G', 8}},
                 {pickle_integer, {'J', 4, 'K', 1, 'M', 2, 0x8a, 0}},
                 {pickle_text, {'X', 4, 0x8c, 1, 0x8d, 8}},
                 {pickle_get, {'h', 1, 'j', 4}},
                 {pickle_put, {'q', 1, 'r', 4, 0x94, 0}},
                 {pickle_gather,
                  {'a', 1, 's', 2, 'e', MARKED, 'u', MARKED, 't', MARKED | TUPLE, 0x85,
                   1 | TUPLE, 0x86, 2 | TUPLE, 0x87, 3 | TUPLE}}};

static bool pickle_step(Pickle *p)
{
    const uint8_t operation = p->at < p->end ? (uint8_t)*p->at++ : 0;
    for (uint32_t i = 0; operation && i < G_N_ELEMENTS(OPERATION); i++)
        for (const uint8_t *of = OPERATION[i].operation; *of; of += 2)
            if (*of == operation)
                return OPERATION[i].does(p, of[1]);
    return false;
}

static void pickle_clear(void *item)
{
    json_decref(((PickleItem *)item)->value);
}

json_t *pickle_parse(const char *file, const char *bytes, gsize length,
                     const char *const *key, GError **error)
{
    g_autoptr(GArray) stack = array_owning(PickleItem, pickle_clear);
    Pickle p = {bytes, bytes + length, key, stack, json_array(), NULL};
    const char *from = bytes;
    do
        from = p.at;
    while (pickle_step(&p));
    json_decref(p.memo);
    if (!p.answer)
        refuse(error,
               "%s: byte %zu: expected a pickle of lists, dicts, texts and integers, "
               "without objects, to its end",
               file, (size_t)(from - bytes));
    return p.answer;
}
