/* The bytes of an ONNX file without its weights. What an importer does not ask for is cut out
 * before protobuf-c unpacks the rest, so that a file of gigabytes takes the memory of its graph. */
#include "data/formats/onnx/onnx.h"

enum { MOST_KEPT = 1 << 28, MOST_PAYLOAD = 1 << 16 };

typedef enum {
    MESSAGE_LEAF,
    MESSAGE_MODEL,
    MESSAGE_OPSET,
    MESSAGE_GRAPH,
    MESSAGE_NODE,
    MESSAGE_ATTRIBUTE,
    MESSAGE_TENSOR,
    MESSAGE_VALUE,
    MESSAGE_TYPE,
    MESSAGE_TENSOR_TYPE,
    MESSAGE_SHAPE,
    MESSAGE_DIM,
    MESSAGE_FUNCTION,
} Message;

/* Fields that are kept, and of which message they are. */
static const struct {
    uint8_t of, field, is;
} KEPT[] = {
    {MESSAGE_MODEL, 1, MESSAGE_LEAF},       {MESSAGE_MODEL, 2, MESSAGE_LEAF},
    {MESSAGE_MODEL, 7, MESSAGE_GRAPH},      {MESSAGE_MODEL, 8, MESSAGE_OPSET},
    {MESSAGE_OPSET, 1, MESSAGE_LEAF},       {MESSAGE_OPSET, 2, MESSAGE_LEAF},
    {MESSAGE_GRAPH, 1, MESSAGE_NODE},       {MESSAGE_GRAPH, 2, MESSAGE_LEAF},
    {MESSAGE_GRAPH, 5, MESSAGE_TENSOR},     {MESSAGE_GRAPH, 11, MESSAGE_VALUE},
    {MESSAGE_GRAPH, 12, MESSAGE_VALUE},     {MESSAGE_GRAPH, 13, MESSAGE_VALUE},
    {MESSAGE_NODE, 1, MESSAGE_LEAF},        {MESSAGE_NODE, 2, MESSAGE_LEAF},
    {MESSAGE_NODE, 3, MESSAGE_LEAF},        {MESSAGE_NODE, 4, MESSAGE_LEAF},
    {MESSAGE_NODE, 5, MESSAGE_ATTRIBUTE},   {MESSAGE_NODE, 7, MESSAGE_LEAF},
    {MESSAGE_ATTRIBUTE, 1, MESSAGE_LEAF},   {MESSAGE_ATTRIBUTE, 2, MESSAGE_LEAF},
    {MESSAGE_ATTRIBUTE, 3, MESSAGE_LEAF},   {MESSAGE_ATTRIBUTE, 4, MESSAGE_LEAF},
    {MESSAGE_ATTRIBUTE, 5, MESSAGE_TENSOR}, {MESSAGE_ATTRIBUTE, 7, MESSAGE_LEAF},
    {MESSAGE_ATTRIBUTE, 8, MESSAGE_LEAF},   {MESSAGE_ATTRIBUTE, 20, MESSAGE_LEAF},
    {MESSAGE_TENSOR, 1, MESSAGE_LEAF},      {MESSAGE_TENSOR, 2, MESSAGE_LEAF},
    {MESSAGE_TENSOR, 4, MESSAGE_LEAF},      {MESSAGE_TENSOR, 5, MESSAGE_LEAF},
    {MESSAGE_TENSOR, 7, MESSAGE_LEAF},      {MESSAGE_TENSOR, 8, MESSAGE_LEAF},
    {MESSAGE_TENSOR, 9, MESSAGE_LEAF},      {MESSAGE_TENSOR, 10, MESSAGE_LEAF},
    {MESSAGE_TENSOR, 14, MESSAGE_LEAF},     {MESSAGE_VALUE, 1, MESSAGE_LEAF},
    {MESSAGE_VALUE, 2, MESSAGE_TYPE},       {MESSAGE_TYPE, 1, MESSAGE_TENSOR_TYPE},
    {MESSAGE_TENSOR_TYPE, 1, MESSAGE_LEAF}, {MESSAGE_TENSOR_TYPE, 2, MESSAGE_SHAPE},
    {MESSAGE_SHAPE, 1, MESSAGE_DIM},        {MESSAGE_DIM, 1, MESSAGE_LEAF},
    {MESSAGE_DIM, 2, MESSAGE_LEAF},         {MESSAGE_MODEL, 25, MESSAGE_FUNCTION},
    {MESSAGE_NODE, 8, MESSAGE_LEAF},        {MESSAGE_ATTRIBUTE, 21, MESSAGE_LEAF},
    {MESSAGE_FUNCTION, 1, MESSAGE_LEAF},    {MESSAGE_FUNCTION, 4, MESSAGE_LEAF},
    {MESSAGE_FUNCTION, 5, MESSAGE_LEAF},    {MESSAGE_FUNCTION, 7, MESSAGE_NODE},
    {MESSAGE_FUNCTION, 10, MESSAGE_LEAF},   {MESSAGE_FUNCTION, 11, MESSAGE_ATTRIBUTE},
    {MESSAGE_FUNCTION, 13, MESSAGE_LEAF},
};

static bool find_kept(Message of, uint64_t field, Message *is)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(KEPT); i++)
        if (KEPT[i].of == of && KEPT[i].field == field) {
            *is = KEPT[i].is;
            return true;
        }
    return false;
}

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

static void put_varint(GByteArray *to, uint64_t value)
{
    uint8_t byte[10];
    guint n = 0;
    do
        byte[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    while (value >>= 7);
    g_byte_array_append(to, byte, n);
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

/* Whether so many bytes of a tensor's field are worth reading: those of small tensors and of
 * masks. */
static bool is_payload(uint64_t field)
{
    return field == 4 || field == 5 || field == 7 || field == 9 || field == 10;
}

static bool worth(Message of, uint64_t field, size_t length, uint64_t dtype)
{
    if (of != MESSAGE_TENSOR || !is_payload(field) || length <= MOST_PAYLOAD)
        return true;
    return field == 9 && length <= ONNX_MOST_MASK && dtype == ONNX_BOOL;
}

/* Copies what is kept of a message. */
static bool strip(Span span, Message of, GByteArray *to)
{
    uint64_t key, dtype = 0;
    while (span.at < span.end) {
        Span content;
        Message is;
        if (!take_varint(&span, &key) || !take_field(&span, key & 7, &content) ||
            to->len > MOST_KEPT)
            return false;
        const size_t length = (size_t)(content.end - content.at);
        if (of == MESSAGE_TENSOR && key == (2 << 3)) {
            Span number = content;
            take_varint(&number, &dtype);
        }
        if (!find_kept(of, key >> 3, &is) || !worth(of, key >> 3, length, dtype))
            continue;
        put_varint(to, key);
        if (is == MESSAGE_LEAF) {
            if ((key & 7) == 2)
                put_varint(to, length);
            g_byte_array_append(to, content.at, (guint)length);
            continue;
        }
        g_autoptr(GByteArray) inner = g_byte_array_new();
        if ((key & 7) != 2 || !strip(content, is, inner))
            return false;
        put_varint(to, inner->len);
        g_byte_array_append(to, inner->data, inner->len);
    }
    return true;
}

GByteArray *onnx_strip(const void *bytes, gsize length)
{
    g_autoptr(GByteArray) kept = g_byte_array_new();
    const uint8_t *at = bytes;
    return at && strip((Span){at, at + length}, MESSAGE_MODEL, kept)
               ? g_steal_pointer(&kept)
               : NULL;
}
