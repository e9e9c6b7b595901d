/* Random streams, one per entity. A stream is a function of the seed and of the entity's name only,
 * so adding an entity leaves the numbers of all others unchanged. Private to sim. */
#pragma once

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* A generator for GSL's distributions with 64 bits of state: splitmix64 (Steele, Lea, Flood 2014),
 * cheap to start. Its owner provides the memory. */
typedef struct {
    uint64_t state;
    gsl_rng rng;
} SimRandom;

/* After this, &random->rng draws from the stream of `key`; `random` must not move. */
void sim_random_start(SimRandom *random, uint64_t key);

uint64_t sim_random_mix(uint64_t a, uint64_t b);
/* The number after x in splitmix64, and the bits of a double. */
uint64_t sim_random_next(uint64_t x);
uint64_t sim_random_bits(double value);
uint64_t sim_random_name(const char *name);
