/* Fuzz target: a file named as a model is refused with one line, or makes a graph that is sealed and
 * small enough to count, and the spec that says everything makes the same one. */
#include <glib/gstdio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "property broken: %s\n", what);
    abort();
}

static void check_graph(const Graph *graph, const char *canonical)
{
    g_autoptr(Graph) again = model_build(canonical, 1, NULL, NULL);
    check(again, "the full spec builds");
    const GraphFacts a = graph_facts(graph), b = graph_facts(again);
    check(a.parameters == b.parameters && a.forward_flops == b.forward_flops &&
              graph_n_ops(graph) == graph_n_ops(again),
          "the full spec builds the same");
    check(a.active_parameters <= a.parameters, "no more parameters work than there are");
    check(a.forward_flops > 0 && a.tokens > 0, "there is work");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-fuzz-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *canonical = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_set_contents_full(path, (const char *)data, (gssize)size,
                                  G_FILE_SET_CONTENTS_NONE, 0600, NULL))
        return 0;
    {
        g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
        check(!graph == (error != NULL), "either a graph or an error");
        if (graph)
            check_graph(graph, canonical);
        else
            check(error->code == KILTER_ERROR_INPUT && *error->message &&
                      !strchr(error->message, '\n'),
                  "one line");
    }
    g_unlink(path);
    return 0;
}
