/* Reading Chakra's execution traces: protocol-buffer messages, each preceded by its length. */
#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/stream.h"
#include "data/formats/trace/trace.h"

#ifdef KILTER_PROTOBUF_C
#include "data/formats/trace/chakra.pb-c.h"

typedef struct {
    const char *file;
    Trace *trace;
    GArray *wanted;    /* uint64_t: ids that nodes wait for, in the order of Trace.dep */
    GHashTable *index; /* id -> index + 1 */
} Reader;

static uint64_t chakra_whole(double value)
{
    return value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;
}

/* An attribute as a number; writers differ in the types of attributes. */
static uint64_t chakra_number(const Chakra__Attribute *attribute)
{
    switch (attribute->value_case) {
    case CHAKRA__ATTRIBUTE__VALUE_DOUBLE_VAL:
        return chakra_whole(attribute->double_val);
    case CHAKRA__ATTRIBUTE__VALUE_FLOAT_VAL:
        return chakra_whole((double)attribute->float_val);
    case CHAKRA__ATTRIBUTE__VALUE_INT32_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_SINT32_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VAL:
        return (uint64_t)MAX(attribute->int32_val, 0);
    case CHAKRA__ATTRIBUTE__VALUE_INT64_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_SINT64_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VAL:
        return (uint64_t)MAX(attribute->int64_val, 0);
    case CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_FIXED32_VAL:
        return attribute->uint32_val;
    case CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL:
    case CHAKRA__ATTRIBUTE__VALUE_FIXED64_VAL:
        return attribute->uint64_val;
    case CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL:
        return attribute->bool_val;
    case CHAKRA__ATTRIBUTE__VALUE_STRING_VAL:
        return g_ascii_strtoull(attribute->string_val, NULL, 10);
    default:
        return 0;
    }
}

static void take_attribute(Trace *trace, TraceNode *node,
                           const Chakra__Attribute *attribute)
{
    const uint64_t value = chakra_number(attribute);
    const char *name = attribute->name;
    if (strcmp(name, "is_cpu_op") == 0)
        node->host = value != 0;
    else if (strcmp(name, "num_ops") == 0)
        node->flops = value;
    else if (strcmp(name, "tensor_size") == 0)
        node->touched_bytes = value;
    else if (strcmp(name, "comm_type") == 0)
        node->collective = (TraceCollective)MIN(value, TRACE_COMM_NONE);
    else if (strcmp(name, "comm_size") == 0)
        node->bytes = value;
    else if (strcmp(name, "kilter_bytes") == 0)
        node->own_bytes = value;
    else if (strcmp(name, "comm_src") == 0)
        node->from = (uint32_t)MIN(value, UINT32_MAX);
    else if (strcmp(name, "comm_dst") == 0)
        node->to = (uint32_t)MIN(value, UINT32_MAX);
    else if (strcmp(name, "comm_tag") == 0)
        node->tag = (uint32_t)MIN(value, UINT32_MAX);
    else if (strcmp(name, "pg_name") == 0) {
        g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);
        node->group = g_string_chunk_insert_const(
            trace->text, attribute->value_case == CHAKRA__ATTRIBUTE__VALUE_STRING_VAL
                             ? attribute->string_val
                             : text);
    }
}

static bool take_node(Reader *reader, const Chakra__Node *message, GError **error)
{
    Trace *trace = reader->trace;
    if (message->type == TRACE_NOTHING || message->type >= TRACE_KINDS)
        return refuse(error, "%s: node %" G_GUINT64_FORMAT ": type %u, expected 1 to %d",
                      reader->file, message->id, message->type, TRACE_KINDS - 1);
    if (trace->node->len == TRACE_MAX_NODES)
        return refuse(error, "%s: more than %d nodes", reader->file, TRACE_MAX_NODES);
    TraceNode node = {
        .id = message->id,
        .name = g_string_chunk_insert_const(trace->text, message->name),
        .group = "",
        .kind = (TraceKind)message->type,
        .collective = TRACE_COMM_NONE,
        .start_s = 1e-6 * (double)message->start_time_micros,
        .duration_s = 1e-6 * (double)message->duration_micros,
        .first_dep = reader->wanted->len,
        .n_deps = (uint32_t)(message->n_ctrl_deps + message->n_data_deps),
    };
    for (size_t i = 0; i < message->n_attr; i++)
        take_attribute(trace, &node, message->attr[i]);
    g_array_append_vals(reader->wanted, message->ctrl_deps, (guint)message->n_ctrl_deps);
    g_array_append_vals(reader->wanted, message->data_deps, (guint)message->n_data_deps);
    g_array_append_val(trace->node, node);
    return true;
}

/* --- framing --- */

/* Reads the length before a message; sets *ended at the end of the file. */
static bool read_length(Stream *stream, const char *file, uint64_t *length, bool *ended,
                        GError **error)
{
    const char *trouble;
    *length = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        unsigned char byte;
        const gsize n = stream_read(stream, &byte, 1, &trouble);
        if (trouble)
            return refuse(error, "%s: %s", file, trouble);
        *ended = n == 0 && shift == 0;
        if (n == 0)
            return *ended ||
                   refuse(error, "%s: cut off in the length of a message", file);
        *length |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return *length <= TRACE_MAX_MESSAGE ||
                   refuse(error,
                          "%s: a message of %" G_GUINT64_FORMAT
                          " bytes, expected at most %d",
                          file, *length, TRACE_MAX_MESSAGE);
    }
    return refuse(error, "%s: no length of a message, expected a Chakra execution trace",
                  file);
}

/* Reads the next message into `buffer`. */
static bool read_message(Stream *stream, const char *file, GByteArray *buffer,
                         bool *ended, GError **error)
{
    uint64_t length;
    if (!read_length(stream, file, &length, ended, error) || *ended)
        return *ended;
    g_byte_array_set_size(buffer, (guint)length);
    const char *trouble;
    const gsize got = stream_read(stream, buffer->data, length, &trouble);
    if (trouble)
        return refuse(error, "%s: %s", file, trouble);
    return got == length ||
           refuse(error, "%s: cut off in a message of %" G_GUINT64_FORMAT " bytes", file,
                  length);
}

static bool read_metadata(Reader *reader, const GByteArray *buffer, GError **error)
{
    Chakra__Metadata *metadata =
        chakra__metadata__unpack(NULL, buffer->len, buffer->data);
    if (!metadata)
        return refuse(
            error,
            "%s: its first message is not the metadata of a Chakra execution trace",
            reader->file);
    put_block(reader->trace->version, g_strdup(metadata->version));
    chakra__metadata__free_unpacked(metadata, NULL);
    return true;
}

static bool chakra_read_node(Reader *reader, const GByteArray *buffer, GError **error)
{
    Chakra__Node *message = chakra__node__unpack(NULL, buffer->len, buffer->data);
    if (!message)
        return refuse(error, "%s: message %u is not a node of a Chakra execution trace",
                      reader->file, reader->trace->node->len + 1);
    const bool good = take_node(reader, message, error);
    chakra__node__free_unpacked(message, NULL);
    return good;
}

/* --- dependencies --- */

/* Turns ids into indices; ids of missing nodes are left out and counted. */
static bool chakra_resolve(Reader *reader, GError **error)
{
    Trace *trace = reader->trace;
    array_at (TraceNode, node, i, trace->node) {
        if (!g_hash_table_insert(reader->index, &node->id, GUINT_TO_POINTER(i + 1)))
            return refuse(error, "%s: node %" G_GUINT64_FORMAT " is there twice",
                          reader->file, node->id);
    }
    array_each (TraceNode, node, trace->node) {
        const uint32_t first = node->first_dep, n = node->n_deps;
        node->first_dep = trace->dep->len;
        for (uint32_t d = first; d < first + n; d++) {
            const uint64_t *id = &g_array_index(reader->wanted, uint64_t, d);
            const uint32_t index =
                GPOINTER_TO_UINT(g_hash_table_lookup(reader->index, id));
            const uint32_t other = index - 1;
            if (index)
                g_array_append_val(trace->dep, other);
            /* A node without an id has id 0, so a missing id 0 is not counted. */
            if (index > 0 && trace_node(trace, other)->id != 0)
                continue;
            if (trace->n_dangling++ == 0) {
                trace->dangling_node = node->id;
                trace->dangling_id = *id;
            }
        }
        node->n_deps = trace->dep->len - node->first_dep;
    }
    trace->n_dependencies = reader->wanted->len;
    return true;
}

/* Checks that every node can run: there is no cycle. */
static bool check_order(const Reader *reader, GError **error)
{
    const Trace *trace = reader->trace;
    const guint n = trace->node->len;
    g_autofree uint32_t *waiting = g_new(uint32_t, n + 1);
    g_autofree uint32_t *first = g_new0(uint32_t, n + 2);
    g_autofree uint32_t *next = g_new(uint32_t, trace->dep->len + 1);
    g_autofree uint32_t *ready = g_new(uint32_t, n + 1);
    guint n_ready = 0;
    for (guint d = 0; d < trace->dep->len; d++)
        first[g_array_index(trace->dep, uint32_t, d) + 2]++;
    for (guint i = 0; i < n; i++)
        first[i + 2] += first[i + 1];
    for (guint i = 0; i < n; i++) {
        const TraceNode *node = trace_node(trace, i);
        waiting[i] = node->n_deps;
        for (uint32_t d = 0; d < node->n_deps; d++)
            next[first[trace_deps(trace, node)[d] + 1]++] = i;
        if (waiting[i] == 0)
            ready[n_ready++] = i;
    }
    for (guint at = 0; at < n_ready; at++)
        for (uint32_t k = first[ready[at]]; k < first[ready[at] + 1]; k++)
            if (--waiting[next[k]] == 0)
                ready[n_ready++] = next[k];
    if (n_ready == n)
        return true;
    guint stuck = 0;
    while (waiting[stuck] == 0)
        stuck++;
    /* Following from a stuck node to a stuck node that it waits for leads into the cycle. */
    for (guint step = 0; step < n; step++) {
        const TraceNode *node = trace_node(trace, stuck);
        uint32_t d = 0;
        while (waiting[trace_deps(trace, node)[d]] == 0)
            d++;
        stuck = trace_deps(trace, node)[d];
    }
    return refuse(error, "%s: node %" G_GUINT64_FORMAT " (%s) waits for itself",
                  reader->file, trace_node(trace, stuck)->id,
                  trace_node(trace, stuck)->name);
}

static bool read_stream(Reader *reader, Stream *stream, GError **error)
{
    g_autoptr(GByteArray) buffer = g_byte_array_sized_new(1 << 12); /* never NULL */
    bool ended = false;
    if (!read_message(stream, reader->file, buffer, &ended, error))
        return false;
    if (ended)
        return refuse(error, "%s: empty, expected a Chakra execution trace",
                      reader->file);
    if (!read_metadata(reader, buffer, error))
        return false;
    while (read_message(stream, reader->file, buffer, &ended, error)) {
        if (ended)
            return chakra_resolve(reader, error) && check_order(reader, error);
        if (!chakra_read_node(reader, buffer, error))
            return false;
    }
    return false;
}

Trace *trace_read(const char *file, GError **error)
{
    g_autoptr(Stream) stream = stream_open(file, error);
    g_autoptr(Trace) trace = trace_new();
    Reader reader = {
        .file = file,
        .trace = trace,
        .wanted = g_array_new(false, false, sizeof(uint64_t)),
        .index = g_hash_table_new(g_int64_hash, g_int64_equal),
    };
    const bool good = stream && read_stream(&reader, stream, error);
    g_array_unref(reader.wanted);
    g_hash_table_unref(reader.index);
    return good ? g_steal_pointer(&trace) : NULL;
}

/* A trace begins with metadata, followed by a node or the end. */
bool trace_is(const char *file)
{
    if (!g_file_test(file, G_FILE_TEST_IS_REGULAR))
        return false;
    g_autoptr(Stream) stream = stream_open(file, NULL);
    g_autoptr(GByteArray) buffer = g_byte_array_sized_new(1 << 12); /* never NULL */
    bool ended = false;
    if (!stream || !read_message(stream, file, buffer, &ended, NULL) || ended)
        return false;
    Chakra__Metadata *metadata =
        chakra__metadata__unpack(NULL, buffer->len, buffer->data);
    if (!metadata)
        return false;
    chakra__metadata__free_unpacked(metadata, NULL);
    if (!read_message(stream, file, buffer, &ended, NULL) || ended)
        return ended;
    Chakra__Node *node = chakra__node__unpack(NULL, buffer->len, buffer->data);
    const bool good = node && node->type > TRACE_NOTHING && node->type < TRACE_KINDS;
    if (node)
        chakra__node__free_unpacked(node, NULL);
    return good;
}

#else /* KILTER_PROTOBUF_C */

static bool lacks(const char *file, GError **error)
{
    return kilter_fail(error, KILTER_ERROR_FAILED,
                       "%s: this build has no protobuf-c, which execution traces of "
                       "Chakra need",
                       file);
}

bool trace_is(const char *file)
{
    return g_str_has_suffix(file, ".et") || g_str_has_suffix(file, ".et.gz");
}

Trace *trace_read(const char *file, GError **error)
{
    return lacks(file, error) ? NULL : NULL;
}

#endif
