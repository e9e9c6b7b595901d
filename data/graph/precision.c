/* The precisions that a model can be trained in. */
#include "data/base/names.h"
#include "data/graph/graph.h"

#include <string.h>

#define PRECISION_ENTRY(id, name, numbers, least, compute, weights, gradients, master, \
                        moments)                                                       \
    {name,                                                                             \
     NUMBERS_##numbers,                                                                \
     NUMBERS_##least,                                                                  \
     DTYPE_##compute,                                                                  \
     {{DTYPE_##weights, DTYPE_##gradients, DTYPE_##master, DTYPE_##moments,            \
       DTYPE_##moments}}},
static const struct {
    const char *name;
    Numbers numbers, least;
    DType compute;
    StateFormats states;
} precision_row[PRECISIONS] = {PRECISION_TABLE(PRECISION_ENTRY)};

NAMES_FUNCTION(precision_name, Precision, PRECISIONS, precision_row[of].name)

Precision precision_from_name(const char *name)
{
    static const struct {
        const char *word;
        Precision precision;
    } word[] = {{"fp32", PRECISION_SINGLE},   {"float32", PRECISION_SINGLE},
                {"fp16", PRECISION_MIXED},    {"float16", PRECISION_MIXED},
                {"bfloat16", PRECISION_BF16}, {"float8", PRECISION_FP8}};
    const uint32_t other = NAME_PLACE(word, G_N_ELEMENTS(word), word, name);
    return other < G_N_ELEMENTS(word) ? word[other].precision
                                      : NAME_PLACE(precision_row, PRECISIONS, name, name);
}

ROW_FUNCTION(DType, precision_compute, Precision, PRECISIONS, precision_row[of].compute)
ROW_FUNCTION(StateFormats, precision_states, Precision, PRECISIONS,
             precision_row[of].states)

#define NUMBERS_TEXT(id, text) text,
NAMES_LIST(numbers_name, Numbers, NUMBERS, NUMBERS_TABLE(NUMBERS_TEXT))

ROW_FUNCTION(Numbers, precision_numbers, Precision, PRECISIONS, precision_row[of].numbers)
ROW_FUNCTION(Numbers, precision_least_numbers, Precision, PRECISIONS,
             precision_row[of].least)

/* --- formats of states --- */

const char *const STATE_KEYS[] = {"weights", "gradients", "master", "moments", NULL};

/* Words of formats, and the states that may have them, by bit. */
#define ALL     (1u << STATE_WEIGHTS | 1u << STATE_GRADIENTS | 1u << STATE_MASTER | MOMENTS)
#define MOMENTS (1u << STATE_MOMENT | 1u << STATE_SECOND)
static const struct {
    const char *word;
    DType format;
    uint32_t of;
} FORMAT[] = {
    {"fp16", DTYPE_F16, ALL},
    {"bf16", DTYPE_F16, ALL},
    {"fp32", DTYPE_F32, ALL},
    {"int8", DTYPE_Q8, 1u << STATE_WEIGHTS | MOMENTS},
    {"mxfp8", DTYPE_MX8, 1u << STATE_WEIGHTS},
    {"nf4", DTYPE_NF4, 1u << STATE_WEIGHTS},
    {"none", DTYPE_NONE, 1u << STATE_WEIGHTS | 1u << STATE_MASTER},
};

static bool precision_set_format(StateFormats *states, StateKind state, const char *word)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(FORMAT); i++)
        if (strcmp(FORMAT[i].word, word) == 0 && FORMAT[i].of & 1u << state) {
            states->of[state] = FORMAT[i].format;
            return true;
        }
    return false;
}

bool state_formats_set(StateFormats *states, const char *key, const char *value)
{
    const StateKind state = TEXT_PLACE(STATE_KEYS, STATE_MOMENT + 1, key);
    if (state < STATE_MOMENT)
        return precision_set_format(states, state, value);
    g_auto(GStrv) word = g_strsplit(value, "/", 0);
    const uint32_t n = g_strv_length(word);
    return state == STATE_MOMENT && n >= 1 && n <= 2 &&
           precision_set_format(states, STATE_MOMENT, word[0]) &&
           precision_set_format(states, STATE_SECOND, word[n - 1]);
}

static const char *word_of(DType format, Precision precision)
{
    uint32_t i = format == DTYPE_F16 && precision_numbers(precision) == NUMBERS_BF16;
    while (FORMAT[i].format != format)
        i++;
    return FORMAT[i].word;
}

char *state_formats_get(const StateFormats *states, const char *key, Precision precision)
{
    const StateKind state = TEXT_PLACE(STATE_KEYS, STATE_MOMENT + 1, key);
    if (state > STATE_MOMENT)
        return NULL;
    const char *word = word_of(states->of[state], precision);
    return state < STATE_MOMENT || states->of[STATE_SECOND] == states->of[state]
               ? g_strdup(word)
               : g_strconcat(word, "/", word_of(states->of[STATE_SECOND], precision),
                             NULL);
}
