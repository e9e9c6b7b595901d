/* Fuzz target: tables of operator graphs (ops and edges, separated by a line of %%) are refused
 * with one line, or make a graph in which all ops have times. */
#include <glib/gstdio.h>
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void write_file(const char *path, const char *text, size_t length)
{
    fuzz_check(g_file_set_contents_full(path, text, (gssize)length,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "the file is written");
}

static void check_graph(const Graph *graph)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpTimes *times = graph_op_times(graph, id);
        fuzz_check((times != NULL) == op_kind_is_opaque(graph_get_op(graph, id)->kind),
                   "opaque ops have times");
        fuzz_note("%s", graph_get_op(graph, id)->name);
        for (uint32_t i = 0; times && i < times->n; i++)
            fuzz_note("%.12g", time_curve_at(&times->curve[i], 3));
        for (uint32_t i = 0; times && i < times->n; i++)
            fuzz_check(time_curve_at(&times->curve[i], 1) >= 0, "no time is negative");
    }
}

static bool check_row(const Csv *csv, void *context, GError **error)
{
    (void)context, (void)error;
    fuzz_check(g_ascii_strtod(csv_text(csv, "memory_bytes"), NULL) >= 0,
               "no accepted memory is negative");
    return true;
}

static void check_table(const char *ops)
{
    g_autoptr(Csv) csv = csv_read(ops, NULL);
    fuzz_check(csv && csv_each(csv, check_row, NULL, NULL), "it is a table");
}

bool fuzz_read(const void *bytes, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-fuzz-XXXXXX", NULL);
    g_autofree char *ops = g_build_filename(folder, "x-ops.csv", NULL),
                    *edges = g_build_filename(folder, "x-edges.csv", NULL);
    const char *middle = g_strstr_len(bytes, (gssize)size, "%%\n");
    const size_t first = middle ? (size_t)(middle - (const char *)bytes) : size;
    write_file(ops, bytes, first);
    write_file(edges, middle ? middle + strlen("%%\n") : "",
               middle ? size - first - strlen("%%\n") : 0);
    g_autofree char *spec = g_strdup_printf("%s:batch=4", ops);
    g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
    fuzz_check(!graph == (error != NULL), "either a graph or an error");
    if (graph) {
        check_graph(graph);
        check_table(ops);
    } else {
        fuzz_check_refused(error, NULL);
    }
    g_remove(ops);
    g_remove(edges);
    g_rmdir(folder);
    return graph != NULL;
}
