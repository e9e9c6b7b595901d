/* Fuzz target: an ONNX file, or an archive of torch.export, is refused with one line, or makes a
 * graph; the file's description without weights makes the same graph. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void check_again(const char *path, const Graph *graph, const char *canonical)
{
    g_autofree char *content = NULL;
    fuzz_check(model_content(path, &content, NULL), "what it says can be had");
    g_autoptr(Graph) again = model_build_from(canonical, content, 1, NULL, NULL);
    fuzz_check(again && graph_n_ops(graph) == graph_n_ops(again) &&
                   graph_parameter_count(graph) == graph_parameter_count(again),
               "what it says builds the same");
    const GraphFacts facts = graph_facts(graph);
    fuzz_note("%s %u %" G_GUINT64_FORMAT " %.15g", content, graph_n_ops(graph),
              facts.parameters, facts.forward_flops);
}

/* The file's name decides its format, so it cannot be in memory. */
bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-fuzz-%d.%s", g_get_tmp_dir(), (int)getpid(),
                        size > 1 && memcmp(data, "PK", 2) == 0 ? "pt2" : "onnx");
    g_autofree char *canonical = NULL;
    g_autoptr(GError) error = NULL, other = NULL;
    fuzz_check(g_file_set_contents_full(path, data, (gssize)size,
                                        G_FILE_SET_CONTENTS_NONE, 0600, NULL),
               "there is a file");
    g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
    fuzz_check(!graph == (error != NULL), "either a graph or an error");
    if (graph)
        check_again(path, graph, canonical);
    else
        fuzz_check_refused(error, path);
    g_autofree char *facts = model_file_facts(path, &other);
    g_unlink(path);
    fuzz_check(!facts == (other != NULL), "either facts or an error");
    fuzz_check(!graph || facts, "what makes a graph has facts");
    return graph != NULL;
}
