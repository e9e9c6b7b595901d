/* A target under libFuzzer, which gets every other change from fuzz_damage(). */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned int seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_read(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    static GPtrArray *pieces;
    const char *dictionary = g_getenv("KILTER_FUZZ_DICT");
    if (seed % 2 == 0)
        return LLVMFuzzerMutate(data, size, most);
    if (!pieces && dictionary)
        pieces = fuzz_pieces(dictionary);
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GString) text = g_string_new_len((const char *)data, (gssize)size);
    for (gint32 n = g_rand_int_range(rand, 1, 4); n > 0; n--)
        fuzz_damage(text, pieces, rand);
    const size_t length = MIN(text->len, most);
    memcpy(data, text->str, length);
    return length;
}
