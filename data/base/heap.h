/* A heap as inline functions, made for a type of items:
 *
 *     static inline bool before(Search *s, const uint32_t *a, const uint32_t *b) ...
 *     static inline void moved(Search *s, const uint32_t *item, uint32_t at) ...
 *     HEAP_DEFINE(open, Search, uint32_t, 2, before, moved)
 *
 * defines open_rise, open_sink, open_settle and open_walk over an array of items, of which the
 * first comes before all others. `before` is a strict order; `moved` is told every place that an
 * item takes (heap_unplaced: it is not needed). A node has as many children as the number says:
 * with four, an item that rises passes half as many levels as with two. */
#pragma once

#include <stdbool.h>

#include "data/base/assert.h"

#define heap_unplaced(context, item, at) ((void)(at))

/* rise: puts `item` at place i or nearer to the first, i being free. sink: puts it at i or further
 * from the first. settle: rises or sinks it as needed. walk: asserts that no item comes before its
 * parent. */
#define HEAP_DEFINE(name, Context, Item, CHILDREN, before, moved)                        \
    static inline void name##_rise(Context *context, Item *heap, uint32_t i, Item item)  \
    {                                                                                    \
        for (; i > 0 && before(context, &item, &heap[(i - 1) / (CHILDREN)]);             \
             i = (i - 1) / (CHILDREN)) {                                                 \
            heap[i] = heap[(i - 1) / (CHILDREN)];                                        \
            moved(context, &heap[i], i);                                                 \
        }                                                                                \
        heap[i] = item;                                                                  \
        moved(context, &heap[i], i);                                                     \
    }                                                                                    \
    static inline void name##_sink(Context *context, Item *heap, uint32_t n, uint32_t i, \
                                   Item item)                                            \
    {                                                                                    \
        for (uint32_t child; (child = (CHILDREN)*i + 1) < n;) {                          \
            uint32_t first = child;                                                      \
            for (uint32_t k = 1; k < (CHILDREN) && child + k < n; k++)                   \
                if (before(context, &heap[child + k], &heap[first]))                     \
                    first = child + k;                                                   \
            if (!before(context, &heap[first], &item))                                   \
                break;                                                                   \
            heap[i] = heap[first];                                                       \
            moved(context, &heap[i], i);                                                 \
            i = first;                                                                   \
        }                                                                                \
        heap[i] = item;                                                                  \
        moved(context, &heap[i], i);                                                     \
    }                                                                                    \
    G_GNUC_UNUSED static inline void name##_settle(Context *context, Item *heap,         \
                                                   uint32_t n, uint32_t i, Item item)    \
    {                                                                                    \
        KILTER_ASSERT(i < n);                                                            \
        if (i > 0 && before(context, &item, &heap[(i - 1) / (CHILDREN)]))                \
            name##_rise(context, heap, i, item);                                         \
        else                                                                             \
            name##_sink(context, heap, n, i, item);                                      \
    }                                                                                    \
    G_GNUC_UNUSED static inline void name##_walk(Context *context, const Item *heap,     \
                                                 uint32_t n)                             \
    {                                                                                    \
        for (uint32_t i = 1; i < n; i++)                                                 \
            g_assert(!before(context, &heap[i], &heap[(i - 1) / (CHILDREN)]));           \
    }
