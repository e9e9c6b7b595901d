/* Dense numbers for 64-bit keys, in the order in which they are met (private to synth). */
#pragma once

#include <stdint.h>

typedef struct {
    uint32_t n, n_slots;
    uint64_t *key;  /* [n] */
    uint32_t *slot; /* [n_slots]: number + 1, or 0 */
} Index;

/* The key's number; a new key gets the next number, n. Start from a zeroed Index. */
uint32_t index_add(Index *index, uint64_t key);
/* Forgets all keys and keeps the memory. */
void index_empty(Index *index);
void index_clear(Index *index);
