/* Writing Chakra's execution traces. */
#include <math.h>

#include "data/base/error.h"
#include "data/formats/trace/trace.h"

#ifdef KILTER_PROTOBUF_C
#include "data/base/assert.h"
#include "data/base/varint.h"
#include "data/formats/trace/chakra.pb-c.h"

static void put(GByteArray *to, const ProtobufCMessage *message)
{
    const size_t length = protobuf_c_message_get_packed_size(message);
    varint_put(to, length);
    const guint at = to->len;
    g_byte_array_set_size(to, at + (guint)length);
    protobuf_c_message_pack(message, to->data + at);
}

enum { MAX_ATTRIBUTES = 8 };

typedef struct {
    Chakra__Node message;
    Chakra__Attribute attribute[MAX_ATTRIBUTES], *list[MAX_ATTRIBUTES];
} Writer;

static Chakra__Attribute *next_attribute(Writer *writer, const char *name,
                                         Chakra__Attribute__ValueCase type)
{
    g_assert(writer->message.n_attr < MAX_ATTRIBUTES);
    Chakra__Attribute *attribute = &writer->attribute[writer->message.n_attr];
    writer->list[writer->message.n_attr++] = attribute;
    *attribute = (Chakra__Attribute)CHAKRA__ATTRIBUTE__INIT;
    attribute->name = (char *)name;
    attribute->value_case = type;
    return attribute;
}

static void put_int64(Writer *writer, const char *name, uint64_t value)
{
    next_attribute(writer, name, CHAKRA__ATTRIBUTE__VALUE_INT64_VAL)->int64_val =
        (int64_t)MIN(value, (uint64_t)G_MAXINT64);
}

static void put_int32(Writer *writer, const char *name, uint32_t value)
{
    next_attribute(writer, name, CHAKRA__ATTRIBUTE__VALUE_INT32_VAL)->int32_val =
        (int32_t)MIN(value, (uint32_t)G_MAXINT32);
}

/* Writes attributes in the types that the oldest reader expects. */
static void put_attributes(Writer *writer, const TraceNode *node)
{
    next_attribute(writer, "is_cpu_op", CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL)->bool_val =
        node->host;
    if (node->flops || node->touched_bytes) {
        put_int64(writer, "num_ops", node->flops);
        next_attribute(writer, "tensor_size", CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL)
            ->uint64_val = node->touched_bytes;
    }
    if (node->kind == TRACE_COMPUTE)
        return;
    if (node->collective != TRACE_COMM_NONE)
        put_int64(writer, "comm_type", node->collective);
    put_int64(writer, "comm_size", node->bytes);
    if (node->own_bytes)
        put_int64(writer, "kilter_bytes", node->own_bytes);
    if (node->kind == TRACE_SEND || node->kind == TRACE_RECEIVE) {
        put_int32(writer, "comm_src", node->from);
        put_int32(writer, "comm_dst", node->to);
        put_int32(writer, "comm_tag", node->tag);
    } else if (*node->group) {
        next_attribute(writer, "pg_name", CHAKRA__ATTRIBUTE__VALUE_STRING_VAL)
            ->string_val = (char *)node->group;
    }
}

/* Writes a node. *owed: seconds by which rounded durations so far fall short of the true ones. */
static void put_node(GByteArray *to, const Trace *trace, const TraceNode *node,
                     double *owed)
{
    KILTER_ASSERT(node->first_dep + node->n_deps <= trace->dep->len);
    Writer writer = {.message = CHAKRA__NODE__INIT};
    g_autofree uint64_t *deps = g_new(uint64_t, node->n_deps + 1);
    const double due = node->duration_s + *owed;
    const double us = node->duration_s > 0 ? MAX(round(1e6 * due), 0) : 0;
    if (node->duration_s > 0)
        *owed = due - 1e-6 * us;
    for (uint32_t d = 0; d < node->n_deps; d++)
        deps[d] = trace_node(trace, trace_deps(trace, node)[d])->id;
    writer.message.id = node->id;
    writer.message.name = (char *)node->name;
    writer.message.type = node->kind;
    writer.message.n_data_deps = node->n_deps;
    writer.message.data_deps = deps;
    writer.message.start_time_micros = (uint64_t)round(1e6 * node->start_s);
    writer.message.duration_micros = (uint64_t)us;
    writer.message.attr = writer.list;
    put_attributes(&writer, node);
    put(to, &writer.message.base);
}

GBytes *trace_write(const Trace *trace, GError **error)
{
    (void)error;
    GByteArray *to = g_byte_array_new();
    Chakra__Metadata metadata = CHAKRA__METADATA__INIT;
    metadata.version = trace->version;
    put(to, &metadata.base);
    double owed = 0;
    for (guint i = 0; i < trace->node->len; i++)
        put_node(to, trace, trace_node(trace, i), &owed);
    return g_byte_array_free_to_bytes(to);
}

#else

GBytes *trace_write(const Trace *trace, GError **error)
{
    (void)trace;
    kilter_fail(error, KILTER_ERROR_FAILED,
                "this build has no protobuf-c, which execution traces of Chakra need");
    return NULL;
}

#endif
