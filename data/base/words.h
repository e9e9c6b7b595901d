/* A hash of words of 8 bytes. */
#pragma once

#include <stdint.h>
#include <string.h>

/* Goes on from `hash`; bytes beyond the last whole word do not count. */
static inline uint64_t words_hash(uint64_t hash, const void *of, size_t bytes)
{
    uint64_t word;
    for (const char *at = of; bytes >= sizeof word;
         at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return hash;
}
