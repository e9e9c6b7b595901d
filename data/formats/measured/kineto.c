/* Reading Kineto's traces. */
#include "data/formats/measured/kineto.h"

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/stream.h"
#include "data/formats/measured/kineto_reader.h"

CLEAR_DEFINE(kineto_facts_clear, KinetoFacts, facts, let_go(facts->device, g_free),
             let_go(facts->note, g_ptr_array_unref));

static bool kineto_parse(Reader *reader, Stream *stream, GError **error)
{
    JsonFaults faults;
    const bool good = json_stream(stream, &KINETO_EVENTS, reader, &faults);
    json_faults_say(&faults, "event", reader->facts->note);
    if (!good) {
        g_propagate_error(error, g_steal_pointer(&reader->failure));
        return false;
    }
    if (reader->has_events && (reader->facts->events > 0 || faults.cut.n == 0))
        return true;
    if (faults.cut.n > 0)
        return refuse(error,
                      "%s:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT
                      ": not JSON, or cut off before a whole event%s%s",
                      reader->file, (guint64)faults.cut.line, (guint64)faults.cut.column,
                      *faults.cut.what ? ": " : "", faults.cut.what);
    return refuse(
        error,
        reader->has_nodes
            ? "%s: this is an execution trace of PyTorch (schema, nodes), which has no "
              "timeline; expected a trace of its profiler (traceEvents)"
            : "%s: expected a trace of PyTorch's profiler (traceEvents)",
        reader->file);
}

/* --- measurements --- */

static void join_kernels(Reader *reader)
{
    table_each (id, sum, reader->kernel) {
        ProfileBin *bin = g_hash_table_lookup(reader->op, id);
        if (!bin)
            continue;
        profile_add(bin, ((KernelSum *)sum)->us * 1e-6);
        reader->facts->used_kernels += ((KernelSum *)sum)->n;
    }
}

static void add_note(KinetoFacts *facts, uint64_t n, const char *what)
{
    if (n > 0)
        g_ptr_array_add(facts->note,
                        g_strdup_printf("%" G_GUINT64_FORMAT " kernel%s left out: %s", n,
                                        n > 1 ? "s" : "", what));
}

static const char UNSIZED[] =
    "of collectives without name, size or group (record with PyTorch 2.2 or later)";
static const char OTHERS[] =
    "of collectives that no cost is fitted to, or that took no time";

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
        : facts->unsized_kernels > 0   ? UNSIZED
        : facts->other_collectives > 0 ? OTHERS
                                       : NULL;
    const uint64_t left = facts->unsized_kernels + facts->other_collectives;
    add_note(reader->facts, facts->unsized_kernels, UNSIZED);
    add_note(reader->facts, facts->other_collectives, OTHERS);
    add_note(reader->facts, facts->kernels - facts->used_kernels - left,
             "of ops without a recorded shape, or that no cost is fitted to");
    const MeasuredTable table = {.file = g_strdup(reader->file),
                                 .device = g_strdup(device),
                                 .test = g_strdup("profile"),
                                 .ranks = MAX(facts->world_size, 1),
                                 .rows = list->len - first,
                                 .passed = (uint32_t)MIN(left, INT32_MAX),
                                 .smallest = smallest,
                                 .largest = largest,
                                 .reason = g_strdup(reason),
                                 .first = first};
    g_array_append_val(tables, table);
}

bool kineto_read(const char *file, GArray *list, GArray *tables, KinetoFacts *facts,
                 GError **error)
{
    *facts = (KinetoFacts){.rank = -1,
                           .device = g_strdup(""),
                           .note = g_ptr_array_new_with_free_func(g_free)};
    g_autoptr(Stream) stream = stream_open(file, error);
    if (!stream)
        return false;
    g_autofree Reader *reader = g_new0(Reader, 1);
    reader->file = file;
    reader->facts = facts;
    reader->stream = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    reader->op = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    reader->kernel = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    reader->profile = profile_new();
    const bool good = kineto_parse(reader, stream, error);
    if (good) {
        facts->streams = g_hash_table_size(reader->stream);
        add_rows(reader, list, tables);
    }
    g_hash_table_unref(reader->op);
    g_hash_table_unref(reader->kernel);
    g_hash_table_unref(reader->stream);
    profile_free(reader->profile);
    g_clear_error(&reader->failure);
    return good;
}
