/* Asserts of two prices. g_assert is for occasional checks, in every build. KILTER_ASSERT and
 * KILTER_WALK are for inner loops and for walks over a whole structure that check its invariant
 * again: they are on in Debug builds (dev, asan, coverage) and cost nothing in others. */
#pragma once

#include <glib.h>
#include <stdint.h>

#ifdef NDEBUG
enum { KILTER_DEBUG = 0 };
#else
enum { KILTER_DEBUG = 1 };
#endif

#define KILTER_ASSERT(condition) \
    do {                         \
        if (KILTER_DEBUG)        \
            g_assert(condition); \
    } while (0)

/* Whether a walk over a whole structure is due: at powers of two, so that all walks together take
 * time in proportion to the structure's final size. */
static inline int kilter_walk_due(uint64_t n)
{
    return KILTER_DEBUG && (n & (n - 1)) == 0;
}

/* Calls a function that asserts an invariant. */
#define KILTER_WALK(call) \
    do {                  \
        if (KILTER_DEBUG) \
            call;         \
    } while (0)
