/* Reading Kineto's traces. */
#include "data/measured/kineto.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/stream.h"

void kineto_facts_clear(KinetoFacts *facts)
{
    g_clear_pointer(&facts->device, g_free);
}

/* The length of a byte-order mark at the beginning. */
static size_t mark_bytes(const void *text, size_t length)
{
    return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool kineto_is_trace(const char *file)
{
    static const char *const KEYS[] = {"\"schemaVersion\"",    "\"traceEvents\"",
                                       "\"deviceProperties\"", "\"distributedInfo\"",
                                       "\"schema\"",           NULL};
    enum { HEAD = 1 << 18 };
    g_autofree char *head = g_malloc0(HEAD);
    gsize length = 0;
    if (!stream_head(file, head, HEAD - 1, &length))
        return false;
    bool found = false;
    for (const char *const *key = KEYS; *key; key++)
        found = found || strstr(head, *key);
    const char *start = head + mark_bytes(head, length);
    return found && start[strspn(start, " \t\r\n")] == '{' && !strstr(head, "\"config\"");
}

#ifdef KILTER_YAJL
#include "data/measured/kineto_reader.h"

static bool parse(Reader *reader, GInputStream *stream, GError **error)
{
    enum { CHUNK = 1 << 16 };
    g_autofree unsigned char *chunk = g_malloc(CHUNK);
    g_autoptr(GError) failure = NULL;
    yajl_handle json = yajl_alloc(&KINETO_CALLBACKS, NULL, reader);
    yajl_config(json, yajl_dont_validate_strings, 1);
    yajl_status status = yajl_status_ok;
    gssize n = 0;
    bool first = true;
    while (status == yajl_status_ok &&
           (n = g_input_stream_read(stream, chunk, CHUNK, NULL, &failure)) > 0) {
        const size_t mark = first ? mark_bytes(chunk, (size_t)n) : 0;
        status = yajl_parse(json, chunk + mark, (size_t)n - mark);
        first = false;
    }
    if (status == yajl_status_ok && n == 0)
        status = yajl_complete_parse(json);
    yajl_free(json);
    if (reader->failure)
        g_propagate_error(error, g_steal_pointer(&reader->failure));
    else if (n < 0)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: cut off or damaged after %lu events: %s", reader->file,
                    (unsigned long)reader->facts->events, failure->message);
    else if (status != yajl_status_ok)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: not JSON, or cut off after %lu events", reader->file,
                    (unsigned long)reader->facts->events);
    else if (!reader->has_events)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    reader->has_nodes
                        ? "%s: this is an execution trace of PyTorch (schema, nodes), "
                          "which has no "
                          "timeline; expected a trace of its profiler (traceEvents)"
                        : "%s: expected a trace of PyTorch's profiler (traceEvents)",
                    reader->file);
    else
        return true;
    return false;
}

/* --- measurements --- */

static void join_kernels(Reader *reader)
{
    GHashTableIter at;
    void *id, *sum;
    g_hash_table_iter_init(&at, reader->kernel);
    while (g_hash_table_iter_next(&at, &id, &sum)) {
        ProfileBin *bin = g_hash_table_lookup(reader->op, id);
        if (bin)
            profile_add(bin, *(double *)sum * 1e-6);
    }
}

static void add_rows(Reader *reader, GArray *list, GArray *tables)
{
    const KinetoFacts *facts = reader->facts;
    const uint32_t first = list->len;
    const char *device = *facts->device ? facts->device : "gpu";
    double smallest, largest;
    join_kernels(reader);
    profile_rows(reader->profile, device, list, &smallest, &largest);
    const char *reason =
        facts->kernels == 0 ? "the trace has no GPU kernels"
        : facts->matmul_ops + reader->n_shaped == 0
            ? "no shapes of matrix products: record with record_shapes=True"
            : NULL;
    const MeasuredTable table = {.file = g_strdup(reader->file),
                                 .device = g_strdup(device),
                                 .test = g_strdup("profile"),
                                 .ranks = MAX(facts->world_size, 1),
                                 .rows = list->len - first,
                                 .smallest = smallest,
                                 .largest = largest,
                                 .reason = g_strdup(reason),
                                 .first = first};
    g_array_append_val(tables, table);
}

bool kineto_read(const char *file, GArray *list, GArray *tables, KinetoFacts *facts,
                 GError **error)
{
    *facts = (KinetoFacts){.rank = -1, .device = g_strdup("")};
    g_autoptr(GInputStream) stream = stream_open(file, error);
    if (!stream)
        return false;
    Reader *reader = g_new0(Reader, 1);
    reader->file = file;
    reader->facts = facts;
    reader->stream = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    reader->op = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    reader->kernel = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    reader->profile = profile_new();
    const bool good = parse(reader, stream, error);
    if (good) {
        facts->streams = g_hash_table_size(reader->stream);
        add_rows(reader, list, tables);
    }
    g_hash_table_unref(reader->op);
    g_hash_table_unref(reader->kernel);
    g_hash_table_unref(reader->stream);
    profile_free(reader->profile);
    g_clear_error(&reader->failure);
    g_free(reader);
    return good;
}

#else

bool kineto_read(const char *file, GArray *list, GArray *tables, KinetoFacts *facts,
                 GError **error)
{
    (void)list, (void)tables;
    *facts = (KinetoFacts){.rank = -1, .device = g_strdup("")};
    return kilter_fail(
        error, KILTER_ERROR_FAILED,
        "%s: this kilter was built without yajl (Debian: libyajl-dev) and reads no "
        "traces",
        file);
}

#endif
