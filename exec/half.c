/* Numbers of two bytes as float32, and back. */
#include "exec/half.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float exec_half_value(uint16_t bits, ExecNumbers numbers)
{
    g_assert(numbers != EXEC_PLAIN);
    if (numbers == EXEC_BF16)
        return float_of((uint32_t)bits << 16);
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u,
                   fraction = bits & 0x3ffu;
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | fraction << 13);
    if (exponent > 0)
        return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = (float)fraction * 0x1p-24f;
    return sign ? -small : small;
}

/* Drops the lowest `n` bits, rounding to nearest, ties to even. */
static uint32_t round_bits(uint32_t bits, uint32_t n)
{
    KILTER_ASSERT(n > 0 && n < 32);
    const uint32_t kept = bits >> n, rest = bits & ((1u << n) - 1), tie = 1u << (n - 1);
    return kept + (rest > tie || (rest == tie && (kept & 1u)));
}

uint16_t exec_half_bits(float value, ExecNumbers numbers)
{
    g_assert(numbers != EXEC_PLAIN);
    const uint32_t bits = bits_of(value), size = bits & 0x7fffffffu;
    if (numbers == EXEC_BF16)
        return (uint16_t)(isnan(value) ? bits >> 16 | 0x40u : round_bits(bits, 16));
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* 65520, and above */
        return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) /* below 2^-14: multiples of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(fabsf(value) * 0x1p24f));
    return (uint16_t)(sign | round_bits(size - 0x38000000u, 13));
}

const char *exec_half_name(ExecNumbers numbers)
{
    g_assert(numbers != EXEC_PLAIN);
    return numbers == EXEC_FP16 ? "fp16" : "bf16";
}

double exec_half_loss_scale(const Graph *graph, ExecNumbers numbers)
{
    enum { TOP_EXPONENT = 10, LEAST_EXPONENT = -14 };
    const TensorId loss = graph_loss(graph);
    if (numbers != EXEC_FP16 || loss == GRAPH_NONE)
        return 1;
    const Op *op = graph_get_op(graph, graph_tensor(graph, loss)->producer);
    const Tensor *of = graph_tensor(graph, op->in[0]);
    const uint64_t terms = dims_elements(of->dim, 0, MAX(of->rank, 1) - 1);
    const int exponent = TOP_EXPONENT - (int)ceil(log2((double)terms));
    return ldexp(1, MAX(exponent, LEAST_EXPONENT));
}
