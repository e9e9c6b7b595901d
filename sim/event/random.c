/* Random streams, each with a key of its own. */
#include "sim/event/random.h"

#include <string.h>

static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void set(void *state, unsigned long seed)
{
    *(uint64_t *)state = seed;
}

static unsigned long get(void *state)
{
    uint64_t *s = state;
    *s += 0x9e3779b97f4a7c15u;
    return scramble(*s) >> 32;
}

static double get_double(void *state)
{
    return (double)get(state) / 4294967296.0;
}

static const gsl_rng_type SPLITMIX64 = {
    "splitmix64", UINT32_MAX, 0, sizeof(uint64_t), set, get, get_double,
};

void sim_random_start(SimRandom *random, uint64_t key)
{
    random->state = key;
    random->rng = (gsl_rng){&SPLITMIX64, &random->state};
}

uint64_t sim_random_next(uint64_t x)
{
    return scramble(x + 0x9e3779b97f4a7c15u);
}

uint64_t sim_random_mix(uint64_t a, uint64_t b)
{
    return scramble(sim_random_next(a) ^ b);
}

uint64_t sim_random_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The FNV-1a hash. */
uint64_t sim_random_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}
