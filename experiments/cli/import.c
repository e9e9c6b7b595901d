/* kilter import: measurements from other formats. */
#include <math.h>

#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/version.h"
#include "data/formats/format.h"
#include "data/formats/measured/kineto.h"
#include "data/formats/trace/trace.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/measured_report.h"

static bool write_rows(const char *file, const GArray *list, const char *names,
                       GError **error)
{
    g_autofree char *comment =
        g_strdup_printf("kilter " KILTER_VERSION " import of %.1000s", names);
    g_strdelimit(comment, "\r\n", ' ');
    return output_take(file, measurements_write(list, comment), error);
}

/* The facts of a PyTorch trace, beside the members of all files. */
static json_t *facts_json(const char *file, const KinetoFacts *facts)
{
    json_t *notes =
        json_list(places_before(i, facts->note->len), json_text(facts->note->pdata[i]));
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:s, s:i, s:i, s:i, s:o, s:o}", "file",
        file, "events", (json_int_t)facts->events, "kernels", (json_int_t)facts->kernels,
        "used_kernels", (json_int_t)facts->used_kernels, "kernel_us_sum",
        facts->kernel_us, "nccl_kernels", (json_int_t)facts->nccl_kernels,
        "collective_metadata_kernels", (json_int_t)facts->collective_kernels,
        "matmul_ops_with_dims", (json_int_t)facts->matmul_ops, "device", facts->device,
        "devices_listed", (int)facts->devices_listed, "streams", (int)facts->streams,
        "world_size", (int)facts->world_size, "rank",
        facts->rank >= 0 ? json_integer(facts->rank) : json_null(), "notes", notes);
}

static void import_count(json_t *object, const char *name)
{
    json_object_set_new(
        object, name,
        json_integer(json_integer_value(json_object_get(object, name)) + 1));
}

/* The facts of an execution trace. */
static json_t *execution_json(const char *file, const Trace *trace)
{
    json_t *types = json_object(), *collectives = json_object();
    double duration_s = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < trace->node->len; i++) {
        const TraceNode *node = trace_node(trace, i);
        import_count(types, trace_kind_name(node->kind));
        if (node->kind == TRACE_COLLECTIVE && node->collective != TRACE_COMM_NONE)
            import_count(collectives, trace_collective_name(node->collective));
        duration_s += node->duration_s;
        bytes += node->bytes;
    }
    json_t *notes = json_array();
    if (trace->n_dangling > 0)
        json_array_append_new(notes,
                              json_sprintf("node %" G_GUINT64_FORMAT
                                           " waits for node %" G_GUINT64_FORMAT
                                           ", which is not there",
                                           trace->dangling_node, trace->dangling_id));
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:I, s:f, s:I, s:I, s:o}", "file",
                     file, "of", "chakra", "version", trace->version, "nodes",
                     (int)trace->node->len, "types", types, "collectives", collectives,
                     "comm_size_sum", (json_int_t)bytes, "duration_us_sum",
                     round(1e6 * duration_s), "dependencies",
                     (json_int_t)trace->n_dependencies, "dangling_dependencies",
                     (json_int_t)trace->n_dangling, "notes", notes);
}

/* Reads each file by its first bytes; `traces` gets the facts of traces. */
static bool import_read_all(int argc, char **argv, GArray *list, GArray *tables,
                            json_t *traces, GError **error)
{
    for (int i = 1; i < argc; i++) {
        KinetoFacts facts = {0};
        const FileFormat format =
            format_of_file(argv[i], FORMAT_MEASURED | FORMAT_EXECUTION);
        if (format == FORMAT_CHAKRA) {
            g_autoptr(Trace) trace = trace_read(argv[i], error);
            if (!trace)
                return false;
            json_array_append_new(traces, execution_json(argv[i], trace));
            continue;
        }
        if (format != FORMAT_KINETO) {
            if (!measurements_read(argv[i], list, tables, error))
                return false;
            continue;
        }
        const bool good = kineto_read(argv[i], list, tables, &facts, error);
        if (good)
            json_array_append_new(traces, facts_json(argv[i], &facts));
        kineto_facts_clear(&facts);
        if (!good)
            return false;
    }
    return true;
}

/* Refuses files that have nothing to show, or, where they are to be written, no measurements. */
static bool import_check_rows(const GArray *list, const GArray *tables,
                              const json_t *traces, bool written, GError **error)
{
    size_t events = 0;
    elements_each (trace, traces)
        events += json_integer_value(json_object_get(trace, "events")) > 0;
    if (tables->len == 0 || list->len > 0 || (events > 0 && !written))
        return true;
    const MeasuredTable *first = &g_array_index(tables, MeasuredTable, 0);
    return refuse(error, "%s: expected measurements: %s", first->file,
                  first->reason ? first->reason : "it has none");
}

#define IMPORT_OPTIONS(X) X(FILE, output, "output", 'o')
COMMAND_OPTIONS(Own, import_options, IMPORT_OPTIONS)

COMMAND(import, Own, IMPORT_OPTIONS, 0)
{
    const char *output = own->output;
    if (output && !output_check(output, error))
        return false;
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GArray) tables = measured_tables_new();
    g_autofree char *names = g_strjoinv(", ", argv + 1);
    json_t *traces = json_array();
    if (!import_read_all(argc, argv, list, tables, traces, error) ||
        !import_check_rows(list, tables, traces, output != NULL, error) ||
        (output && !write_rows(output, list, names, error))) {
        json_decref(traces);
        return false;
    }
    command_report(options,
                   json_pack("{s:o, s:o, s:i, s:s*}", "files",
                             measured_report_json(tables, NULL), "traces", traces,
                             "measurements", (int)list->len, "output", output),
                   ANSWER_IMPORT, ANSWER_MEASURED, NULL);
    return true;
}
