/* Loops over neighbouring numbers that are worth wide registers (private to synth). */
#pragma once

#include <features.h>
#include <stdint.h>

/* Numbers that a register holds, and registers that a loop keeps. */
enum { LANES = 4, TILE = 8 };
typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));
/* the same anywhere among numbers */
typedef Lanes LanesAnywhere __attribute__((aligned(sizeof(double)), may_alias));

/* Before a function: it is compiled twice, and the program takes the one that the processor can
 * run. Both give the same bits, since sums and minima do not depend on the width; there is nothing
 * to fuse in them. Not with ThreadSanitizer, which is not there yet when the program makes its
 * choice. */
#ifdef __SANITIZE_THREAD__
#define KILTER_WIDE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KILTER_WIDE
#endif
#endif
#if !defined(KILTER_WIDE) && defined(NDEBUG) && defined(__x86_64__) && \
    defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define KILTER_WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef KILTER_WIDE
#define KILTER_WIDE
#endif

/* Before a function that is part of each such function. */
#define KILTER_INLINE static inline __attribute__((always_inline))

/* Takes minima with `n` sums for `lanes` classes, of which `s` is the same for all. In this
 * function and in those that call it, `lanes` is known when they are compiled. */
KILTER_INLINE void least_of(double *restrict to, const double *restrict from,
                            const double *restrict s, uint32_t n, uint32_t lanes)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = 0; l < lanes; l++) {
            const double sum = from[i * lanes + l] + s[l];
            to[i * lanes + l] = sum < to[i * lanes + l] ? sum : to[i * lanes + l];
        }
}
