/* Freeing what an object owns: several blocks at once. */
#pragma once

#include <glib.h>
#include <string.h>

static inline void free_blocks(void *const *block, gsize n)
{
    for (gsize i = 0; i < n; i++)
        g_free(block[i]);
}

/* Frees each of the blocks, which are g_malloc's or NULL. */
#define free_each(...)                        \
    free_blocks((void *const[]){__VA_ARGS__}, \
                sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))

/* For g_array_set_clear_func: frees the block to which an element's first member points. */
static inline void free_first(gpointer element)
{
    gpointer block;
    memcpy(&block, element, sizeof block);
    g_free(block);
}
