/* Numbers as protocol buffers write them: seven bits a byte, the least first. */
#pragma once

#include <glib.h>

static inline void varint_put(GByteArray *to, uint64_t value)
{
    do {
        const guint8 byte = (guint8)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        g_byte_array_append(to, &byte, 1);
        value >>= 7;
    } while (value > 0);
}
