/* Random damage to texts, for tests of readers. */
#ifndef KILTER_TESTS_SUPPORT_DAMAGE_H
#define KILTER_TESTS_SUPPORT_DAMAGE_H

#include <glib.h>

/* Erases up to 30 bytes at a random place, or puts a byte or one of the pieces there. */
static inline void damage_text(GString *text, GRand *rand, const char *const *piece,
                               gsize n_pieces)
{
    const gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len + 1);
    const gsize most = MIN(text->len - at, 30);
    const gint32 how = g_rand_int_range(rand, 0, 3);
    g_string_erase(text, (gssize)at,
                   most ? g_rand_int_range(rand, 0, how == 0 ? (gint32)most + 1 : 2) : 0);
    if (how == 1)
        g_string_insert_c(text, (gssize)at, (char)g_rand_int_range(rand, 0, 256));
    else if (how == 2)
        g_string_insert(text, (gssize)at,
                        piece[g_rand_int_range(rand, 0, (gint32)n_pieces)]);
}

#endif
