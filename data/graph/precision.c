/* The precisions that a model can be trained in. */
#include "data/graph/graph.h"

#include <string.h>

static const struct {
    const char *name;
    DType compute, gradient;
} precision_row[PRECISIONS] = {
#define X(id, name, compute, gradient) {name, DTYPE_##compute, DTYPE_##gradient},
    PRECISION_TABLE(X)
#undef X
};

const char *precision_name(Precision precision)
{
    g_assert(precision < PRECISIONS);
    return precision_row[precision].name;
}

Precision precision_from_name(const char *name)
{
    static const struct {
        const char *word;
        Precision precision;
    } word[] = {{"fp32", PRECISION_SINGLE},   {"float32", PRECISION_SINGLE},
                {"fp16", PRECISION_MIXED},    {"float16", PRECISION_MIXED},
                {"bfloat16", PRECISION_BF16}, {"float8", PRECISION_FP8}};
    Precision precision = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(word); i++)
        if (strcmp(word[i].word, name) == 0)
            return word[i].precision;
    while (precision < PRECISIONS && strcmp(precision_row[precision].name, name) != 0)
        precision++;
    return precision;
}

DType precision_compute(Precision precision)
{
    KILTER_ASSERT(precision < PRECISIONS);
    return precision_row[precision].compute;
}

DType precision_gradient(Precision precision)
{
    KILTER_ASSERT(precision < PRECISIONS);
    return precision_row[precision].gradient;
}

const char *numbers_name(Numbers numbers)
{
    g_assert(numbers < NUMBERS);
    static const char *const name[NUMBERS] = {
#define X(id, text) text,
        NUMBERS_TABLE(X)
#undef X
    };
    return name[numbers];
}

Numbers precision_numbers(Precision precision)
{
    if (precision == PRECISION_BF16 || precision == PRECISION_FP8)
        return NUMBERS_BF16;
    return precision == PRECISION_SINGLE ? NUMBERS_F32 : NUMBERS_F16;
}

Numbers precision_least_numbers(Precision precision)
{
    return precision == PRECISION_FP8 ? NUMBERS_F8 : precision_numbers(precision);
}
