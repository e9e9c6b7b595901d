/* Reading Kineto's traces. */
#include "data/measured/kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/stream.h"

void kineto_facts_clear(KinetoFacts *facts)
{
    g_clear_pointer(&facts->device, g_free);
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
    return found && head[strspn(head, " \t\r\n")] == '{' && !strstr(head, "\"config\"");
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
    while (status == yajl_status_ok &&
           (n = g_input_stream_read(stream, chunk, CHUNK, NULL, &failure)) > 0)
        status = yajl_parse(json, chunk, (size_t)n);
    if (status == yajl_status_ok && n == 0)
        status = yajl_complete_parse(json);
    yajl_free(json);
    if (reader->failure)
        g_propagate_error(error, g_steal_pointer(&reader->failure));
    else if (n < 0)
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: %s", reader->file, failure->message);
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

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void join_kernels(Reader *reader)
{
    GHashTableIter at;
    void *id, *sum;
    g_hash_table_iter_init(&at, reader->kernel);
    while (g_hash_table_iter_next(&at, &id, &sum)) {
        Bin *bin = g_hash_table_lookup(reader->matmul, id);
        const double seconds = *(double *)sum * 1e-6;
        if (bin && seconds > 0)
            g_array_append_val(bin->seconds, seconds);
    }
}

static void add_bin(const Reader *reader, const Bin *bin, GArray *list)
{
    const uint32_t n = bin->seconds->len;
    const double *s = (const double *)(const void *)bin->seconds->data;
    const bool waits = bin->what.op == OP_KINDS;
    Measurement m = bin->what;
    qsort(bin->seconds->data, n, sizeof *s, by_value);
    m.device = g_strdup(*reader->facts->device ? reader->facts->device : "gpu");
    m.shape = g_strdup(bin->what.shape);
    m.repeats = n;
    m.low_s = waits ? s[0] : s[n / 4];
    m.median_s = waits ? s[n / 4] : s[n / 2];
    m.high_s = waits ? s[n / 2] : s[3 * n / 4];
    g_array_append_val(list, m);
}

static void add_rows(Reader *reader, GArray *list, GArray *tables)
{
    const KinetoFacts *facts = reader->facts;
    const uint32_t first = list->len;
    double smallest = INFINITY, largest = 0;
    join_kernels(reader);
    for (guint i = 0; i < reader->order->len; i++) {
        const Bin *bin = reader->order->pdata[i];
        if (bin->seconds->len == 0)
            continue;
        smallest = fmin(smallest, bin->what.bytes);
        largest = fmax(largest, bin->what.bytes);
        add_bin(reader, bin, list);
    }
    const char *reason =
        facts->kernels == 0 ? "the trace has no GPU kernels"
        : facts->matmul_ops == 0
            ? "no shapes of matrix products: record with record_shapes=True"
            : NULL;
    const MeasuredTable table = {.file = g_strdup(reader->file),
                                 .device =
                                     g_strdup(*facts->device ? facts->device : "gpu"),
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
    reader->matmul = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    reader->kernel = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    reader->bin = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kineto_bin_free);
    reader->order = g_ptr_array_new();
    const bool good = parse(reader, stream, error);
    if (good) {
        facts->streams = g_hash_table_size(reader->stream);
        add_rows(reader, list, tables);
    }
    g_ptr_array_unref(reader->order);
    g_hash_table_unref(reader->matmul);
    g_hash_table_unref(reader->kernel);
    g_hash_table_unref(reader->stream);
    g_hash_table_unref(reader->bin);
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
