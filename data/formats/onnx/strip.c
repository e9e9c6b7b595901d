/* The bytes of an ONNX file without its weights. Fields that onnx.proto lacks, which no importer
 * asks for, are cut out before protobuf-c unpacks the rest, so that a file of gigabytes takes the
 * memory of its graph. */
#include "data/formats/onnx/onnx.h"

#ifdef KILTER_PROTOBUF_C
#include "data/base/varint.h"
#include "data/formats/onnx/onnx.pb-c.h"

enum { MOST_KEPT = 1 << 28, MOST_PAYLOAD = 1 << 16 };

typedef struct {
    const uint8_t *at, *end;
} Span;

static bool take_varint(Span *span, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && span->at < span->end; shift += 7) {
        const uint8_t byte = *span->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Takes the content that follows a field's key, with its length where it has one. */
static bool take_field(Span *span, unsigned wire, Span *content)
{
    uint64_t length = wire == 1 ? 8 : 4;
    content->at = span->at;
    if (wire == 0) {
        if (!take_varint(span, &length))
            return false;
        content->end = span->at;
        return true;
    }
    if ((wire == 2 && !take_varint(span, &length)) ||
        (wire != 1 && wire != 2 && wire != 5))
        return false;
    if (length > (uint64_t)(span->end - span->at))
        return false;
    content->at = span->at;
    content->end = span->at += length;
    return true;
}

/* Whether a field is worth reading: of the values of tensors (fields 4, 5, 7, 9 and 10) those of
 * small ones and of masks. */
static bool worth(const ProtobufCMessageDescriptor *of, uint64_t field, size_t length,
                  uint64_t dtype)
{
    if (of != &onnx_file__tensor__descriptor ||
        !(field == 4 || field == 5 || field == 7 || field == 9 || field == 10) ||
        length <= MOST_PAYLOAD)
        return true;
    return field == 9 && length <= ONNX_MOST_MASK && dtype == ONNX_BOOL;
}

/* Copies what is kept of a message. */
static bool strip(Span span, const ProtobufCMessageDescriptor *of, GByteArray *to)
{
    uint64_t key, dtype = 0;
    while (span.at < span.end) {
        Span content;
        if (!take_varint(&span, &key) || !take_field(&span, key & 7, &content) ||
            to->len > MOST_KEPT)
            return false;
        const size_t length = (size_t)(content.end - content.at);
        if (of == &onnx_file__tensor__descriptor && key == (2 << 3)) {
            Span number = content;
            take_varint(&number, &dtype);
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(of, (unsigned)(key >> 3));
        if (!field || !worth(of, key >> 3, length, dtype))
            continue;
        varint_put(to, key);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            if ((key & 7) == 2)
                varint_put(to, length);
            g_byte_array_append(to, content.at, (guint)length);
            continue;
        }
        g_autoptr(GByteArray) inner = g_byte_array_new();
        if ((key & 7) != 2 || !strip(content, field->descriptor, inner))
            return false;
        varint_put(to, inner->len);
        g_byte_array_append(to, inner->data, inner->len);
    }
    return true;
}

GByteArray *onnx_strip(const void *bytes, gsize length)
{
    g_autoptr(GByteArray) kept = g_byte_array_new();
    const uint8_t *at = bytes;
    return at && strip((Span){at, at + length}, &onnx_file__model__descriptor, kept)
               ? g_steal_pointer(&kept)
               : NULL;
}

#endif
