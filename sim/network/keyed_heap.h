/* A heap of items by key that knows the place of every item, so that any item can be moved or
 * removed. Private to sim/network.
 *
 * A node has four children, so a change of key touches half as many levels as with two. The caller
 * keeps `place`, indexed by item; an item is in at most one heap that uses the same array. */
#pragma once

#include "data/base/heap.h"

typedef struct {
    double key;
    uint32_t item;
} KeyedItem;

typedef struct {
    KeyedItem *at;
    uint32_t n, capacity;
} KeyedHeap;

static inline bool keyed_heap_before(const uint32_t *place, const KeyedItem *a,
                                     const KeyedItem *b)
{
    (void)place;
    return a->key < b->key;
}

static inline void keyed_heap_moved(uint32_t *place, const KeyedItem *item, uint32_t at)
{
    place[item->item] = at;
}

HEAP_DEFINE(keyed, uint32_t, KeyedItem, 4, keyed_heap_before, keyed_heap_moved)

/* The invariant: no child is before its parent, and every item knows its place. */
static inline void keyed_heap_walk(const KeyedHeap *heap, uint32_t *place)
{
    keyed_walk(place, heap->at, heap->n);
    for (uint32_t i = 0; i < heap->n; i++)
        g_assert(place[heap->at[i].item] == i);
}

static inline void keyed_heap_push(KeyedHeap *heap, uint32_t *place, KeyedItem item)
{
    if (heap->n == heap->capacity) {
        heap->capacity = MAX(8, 2 * heap->capacity);
        heap->at = g_renew(KeyedItem, heap->at, heap->capacity);
    }
    keyed_rise(place, heap->at, heap->n++, item);
    if (kilter_walk_due(heap->n))
        KILTER_WALK(keyed_heap_walk(heap, place));
}

static inline void keyed_heap_change(KeyedHeap *heap, uint32_t *place, KeyedItem item)
{
    g_assert(place[item.item] < heap->n && heap->at[place[item.item]].item == item.item);
    keyed_settle(place, heap->at, heap->n, place[item.item], item);
}

static inline void keyed_heap_remove(KeyedHeap *heap, uint32_t *place, uint32_t item)
{
    const uint32_t at = place[item];
    g_assert(at < heap->n && heap->at[at].item == item);
    const KeyedItem last = heap->at[--heap->n];
    if (last.item != item)
        keyed_settle(place, heap->at, heap->n, at, last);
}
