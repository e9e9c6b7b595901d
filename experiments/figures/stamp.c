/* Stamps in PNG and SVG. */
#include "experiments/figures/stamp.h"

#include <string.h>

void stamp_clear(Stamp *stamp)
{
    g_clear_pointer(&stamp->command, g_free);
    g_clear_pointer(&stamp->commit, g_free);
    g_clear_pointer(&stamp->configuration, g_free);
}

/* --- PNG (ISO/IEC 15948) --- */

static const char SIGNATURE[] = "\x89PNG\r\n\x1a\n";

enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12, HEADER_BYTES = 13 };

/* CRC-32 of a chunk's type and data (Annex D), bit by bit: stamps are short. */
static guint32 checksum(const char *bytes, gsize length)
{
    static const guint32 polynomial = 0xedb88320;
    guint32 crc = 0xffffffff;
    for (gsize i = 0; i < length; i++) {
        crc ^= (guint8)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
    }
    return ~crc;
}

static void add_number(GByteArray *out, guint32 number)
{
    const guint32 big = GUINT32_TO_BE(number);
    g_byte_array_append(out, (const guint8 *)&big, sizeof big);
}

/* tEXt: keyword, zero, text. */
static void add_chunk(GByteArray *out, const char *keyword, const char *text)
{
    g_autoptr(GString) chunk = g_string_new("tEXt");
    g_string_append(chunk, keyword);
    g_string_append_c(chunk, '\0');
    g_string_append(chunk, text);
    add_number(out, (guint32)(chunk->len - strlen("tEXt")));
    g_byte_array_append(out, (const guint8 *)chunk->str, (guint)chunk->len);
    add_number(out, checksum(chunk->str, chunk->len));
}

static char *stamp_png(const Stamp *stamp, const char *bytes, gsize *length)
{
    const guint head = SIGNATURE_BYTES + CHUNK_BYTES + HEADER_BYTES;
    GByteArray *out = g_byte_array_new();
    g_byte_array_append(out, (const guint8 *)bytes, head);
    add_chunk(out, "Software", "kilter");
    add_chunk(out, "Command", stamp->command);
    add_chunk(out, "Commit", stamp->commit);
    add_chunk(out, "Configuration", stamp->configuration);
    g_byte_array_append(out, (const guint8 *)bytes + head, (guint)(*length - head));
    *length = out->len;
    return (char *)g_byte_array_free(out, FALSE);
}

/* --- SVG --- */

static char *stamp_svg(const Stamp *stamp, const char *bytes, const char *end,
                       gsize *length)
{
    g_autofree char *metadata = g_markup_printf_escaped(
        "\n<metadata>\n<kilter xmlns=\"urn:kilter\" command=\"%s\" commit=\"%s\" "
        "configuration=\"%s\"/>\n</metadata>",
        stamp->command, stamp->commit, stamp->configuration);
    GString *out = g_string_new_len(bytes, end - bytes);
    g_string_append(out, metadata);
    g_string_append_len(out, end, (gssize)(*length - (gsize)(end - bytes)));
    *length = out->len;
    return g_string_free(out, FALSE);
}

char *stamp_picture(const Stamp *stamp, const char *bytes, gsize *length)
{
    if (*length > SIGNATURE_BYTES + CHUNK_BYTES + HEADER_BYTES &&
        memcmp(bytes, SIGNATURE, SIGNATURE_BYTES) == 0)
        return stamp_png(stamp, bytes, length);
    const char *svg = g_strstr_len(bytes, (gssize)*length, "<svg");
    const char *end = svg ? memchr(svg, '>', *length - (gsize)(svg - bytes)) : NULL;
    return end ? stamp_svg(stamp, bytes, end + 1, length) : g_memdup2(bytes, *length);
}
