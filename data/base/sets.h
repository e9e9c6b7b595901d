/* Disjoint sets of numbers: above[i] is a member of i's set, the set's own for one of them, which
 * stands for the set. Setting above[] of that one to a member of another set joins the two. */
#pragma once

#include <stdint.h>

/* The member that stands for the set of `i`. */
static inline uint32_t set_find(uint32_t *above, uint32_t i)
{
    while (above[i] != i)
        i = above[i] = above[above[i]];
    return i;
}
