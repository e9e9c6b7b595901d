/* An open hash table of 64-bit keys. */
#include "synth/hap/exact/index.h"

#include <string.h>

#include "data/base/assert.h"
#include "data/base/free.h"

static uint32_t index_slot_of(const Index *index, uint64_t key)
{
    KILTER_ASSERT(index->n < index->n_slots &&
                  (index->n_slots & (index->n_slots - 1)) == 0);
    uint64_t hash = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(hash >> 32) & (index->n_slots - 1);
    while (index->slot[slot] && index->key[index->slot[slot] - 1] != key)
        slot = (slot + 1) & (index->n_slots - 1);
    return slot;
}

static void grow(Index *index)
{
    index->n_slots = index->n_slots ? 2 * index->n_slots : 32;
    index->key = g_renew(uint64_t, index->key, index->n_slots);
    put_block(index->slot, g_new0(uint32_t, index->n_slots));
    for (uint32_t i = 0; i < index->n; i++)
        index->slot[index_slot_of(index, index->key[i])] = i + 1;
}

/* The invariant: every key is found at its number. */
static void walk_index(const Index *index)
{
    for (uint32_t i = 0; i < index->n; i++)
        g_assert(index->slot[index_slot_of(index, index->key[i])] == i + 1);
}

uint32_t index_add(Index *index, uint64_t key)
{
    if (2 * (index->n + 1) > index->n_slots)
        grow(index);
    uint32_t slot = index_slot_of(index, key);
    if (!index->slot[slot]) {
        index->key[index->n++] = key;
        index->slot[slot] = index->n;
        if (kilter_walk_due(index->n))
            KILTER_WALK(walk_index(index));
    }
    return index->slot[slot] - 1;
}

void index_empty(Index *index)
{
    if (index->n > 0)
        memset(index->slot, 0, index->n_slots * sizeof *index->slot);
    index->n = 0;
}

CLEAR_DEFINE(index_clear, Index, index, free_each(index->key, index->slot),
             *index = (Index){0});
