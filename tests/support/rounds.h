/* How often a test repeats what is random, or how many cases of a list it takes. */
#ifndef KILTER_TESTS_SUPPORT_ROUNDS_H
#define KILTER_TESTS_SUPPORT_ROUNDS_H

#include <glib.h>
#include <stdint.h>

/* `some`; with KILTER_ALL, as in the test NAME_long, `all`. */
static inline uint32_t test_rounds(uint32_t some, uint32_t all)
{
    return g_getenv("KILTER_ALL") ? all : some;
}

#endif
