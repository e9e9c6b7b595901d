/* Loops over rows of numbers that kernels share (private to exec/kernels). */
#pragma once

#include <math.h>
#include <stdint.h>

static inline double dot(const double *a, const double *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static inline void add_scaled(double *to, double factor, const double *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* A function of one number, and its slope there. */
typedef struct {
    double value, slope;
} Activation;

static inline Activation sigmoid_of(double x)
{
    const double s = 1 / (1 + exp(-x));
    return (Activation){s, s * (1 - s)};
}

static inline Activation silu_of(double x)
{
    const Activation s = sigmoid_of(x);
    return (Activation){x * s.value, s.value * (1 + x * (1 - s.value))};
}

/* p = exp(x) / sum of exp(x); both may be the same row. */
static inline void softmax(const double *x, double *p, uint64_t n)
{
    double top = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (uint64_t i = 0; i < n; i++)
        sum += p[i] = exp(x[i] - top);
    for (uint64_t i = 0; i < n; i++)
        p[i] /= sum;
}
