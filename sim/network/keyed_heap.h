/* A heap of items by key whose places are known, so that any item can be moved or taken out.
 * Private to sim/network.
 *
 * Four children a node: a change of key touches half as many levels as with two. The caller
 * keeps `place`, indexed by item; an item is in at most one heap that uses the same array. */
#ifndef KILTER_SIM_NETWORK_KEYED_HEAP_H
#define KILTER_SIM_NETWORK_KEYED_HEAP_H

#include "data/data.h"

typedef struct {
    double key;
    uint32_t item;
} KeyedItem;

typedef struct {
    KeyedItem *at;
    uint32_t n, capacity;
} KeyedHeap;

static inline void keyed_heap_set(KeyedHeap *heap, uint32_t *place, uint32_t at,
                                  KeyedItem item)
{
    heap->at[at] = item;
    place[item.item] = at;
}

static inline void keyed_heap_up(KeyedHeap *heap, uint32_t *place, uint32_t at,
                                 KeyedItem item)
{
    for (; at > 0 && item.key < heap->at[(at - 1) / 4].key; at = (at - 1) / 4)
        keyed_heap_set(heap, place, at, heap->at[(at - 1) / 4]);
    keyed_heap_set(heap, place, at, item);
}

static inline void keyed_heap_down(KeyedHeap *heap, uint32_t *place, uint32_t at,
                                   KeyedItem item)
{
    for (;;) {
        uint32_t child = 4 * at + 1, least = child;
        if (child >= heap->n)
            break;
        for (uint32_t k = 1; k < 4 && child + k < heap->n; k++)
            if (heap->at[child + k].key < heap->at[least].key)
                least = child + k;
        if (heap->at[least].key >= item.key)
            break;
        keyed_heap_set(heap, place, at, heap->at[least]);
        at = least;
    }
    keyed_heap_set(heap, place, at, item);
}

/* The invariant: no child is before its parent, and every item knows its place. */
static inline void keyed_heap_walk(const KeyedHeap *heap, const uint32_t *place)
{
    for (uint32_t i = 0; i < heap->n; i++)
        g_assert(place[heap->at[i].item] == i &&
                 (i == 0 || heap->at[(i - 1) / 4].key <= heap->at[i].key));
}

static inline void keyed_heap_push(KeyedHeap *heap, uint32_t *place, KeyedItem item)
{
    if (heap->n == heap->capacity) {
        heap->capacity = MAX(8, 2 * heap->capacity);
        heap->at = g_renew(KeyedItem, heap->at, heap->capacity);
    }
    keyed_heap_up(heap, place, heap->n++, item);
    if (kilter_walk_due(heap->n))
        KILTER_WALK(keyed_heap_walk(heap, place));
}

/* Puts `item` where another one was: up or down, as its key wants. */
static inline void keyed_heap_settle(KeyedHeap *heap, uint32_t *place, uint32_t at,
                                     KeyedItem item)
{
    if (at > 0 && item.key < heap->at[(at - 1) / 4].key)
        keyed_heap_up(heap, place, at, item);
    else
        keyed_heap_down(heap, place, at, item);
}

static inline void keyed_heap_change(KeyedHeap *heap, uint32_t *place, KeyedItem item)
{
    g_assert(place[item.item] < heap->n && heap->at[place[item.item]].item == item.item);
    keyed_heap_settle(heap, place, place[item.item], item);
}

static inline void keyed_heap_remove(KeyedHeap *heap, uint32_t *place, uint32_t item)
{
    const uint32_t at = place[item];
    g_assert(at < heap->n && heap->at[at].item == item);
    const KeyedItem last = heap->at[--heap->n];
    if (last.item != item)
        keyed_heap_settle(heap, place, at, last);
}

#endif
