/* Fuzz target: a file named as a model is refused with one line, or makes a graph that is sealed
 * and small enough to count, and its spec with every parameter makes the same graph. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_WRITTEN = 500 }; /* ops; more take long, and show nothing else */

static void check_same(const Graph *graph, const char *spec, const char *what)
{
    g_autoptr(Graph) again = model_build(spec, 1, NULL, NULL);
    fuzz_check(again, what);
    const GraphFacts a = graph_facts(graph), b = graph_facts(again);
    fuzz_check(a.parameters == b.parameters && a.forward_flops == b.forward_flops &&
                   graph_n_ops(graph) == graph_n_ops(again),
               what);
}

/* The graph's file, as kilter models --write makes it, is the same graph. */
static void check_written(const Graph *graph, const char *path)
{
    int memory;
    g_autofree char *text = model_write(path, 1, NULL);
    fuzz_check(text != NULL, "what is built is written");
    g_autofree char *file = fuzz_file_open(text, strlen(text), &memory);
    check_same(graph, file, "the written file builds the same");
    fuzz_file_close(memory);
}

static void check_graph(const Graph *graph, const char *path, const char *canonical)
{
    check_same(graph, canonical, "the full spec builds the same");
    if (graph_n_ops(graph) <= MOST_WRITTEN)
        check_written(graph, path);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        fuzz_check(graph_find(graph, graph_tensor(graph, t)->name) == t,
                   "names are those of one tensor");
    const GraphFacts a = graph_facts(graph);
    fuzz_check(a.active_parameters <= a.parameters,
               "no more parameters work than the model has");
    fuzz_check((a.forward_flops > 0 || graph_has_times(graph)) && a.tokens > 0,
               "there is work");
}

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autofree char *path = fuzz_file_open(data, size, &memory);
    g_autofree char *canonical = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
    fuzz_check(!graph == (error != NULL), "either a graph or an error");
    if (graph)
        check_graph(graph, path, canonical);
    else
        fuzz_check_refused(error, NULL);
    fuzz_file_close(memory);
    return graph != NULL;
}
