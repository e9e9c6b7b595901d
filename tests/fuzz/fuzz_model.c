/* Fuzz target: a file named as a model is refused with one line, or makes a graph that is sealed
 * and small enough to count, and its spec with every parameter makes the same graph. A small one is
 * planned by data parallelism, or there is a reason, and all fidelities take the plan. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "synth/planners/planner.h"
#include "tests/fuzz/fuzz.h"

/* Ops; more take long, and show nothing else. */
enum { MOST_WRITTEN = 500, MOST_PLANNED = 200 };

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

/* Building, writing and planning again take more time than all else, so that one input in four is
 * checked so; the same ones each time. */
static bool is_deep(const unsigned char *data, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    return sum % 4 == 0;
}

static void check_graph(const Graph *graph, const char *path, const char *canonical,
                        bool deep)
{
    if (deep)
        check_same(graph, canonical, "the full spec builds the same");
    if (deep && graph_n_ops(graph) <= MOST_WRITTEN)
        check_written(graph, path);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        fuzz_check(graph_find(graph, graph_tensor(graph, t)->name) == t,
                   "names are those of one tensor");
    const GraphFacts a = graph_facts(graph);
    fuzz_note(
        "%u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %.15g",
        graph_n_ops(graph), a.parameters, a.active_parameters, a.tokens, a.forward_flops);
    fuzz_check(a.active_parameters <= a.parameters,
               "no more parameters work than the model has");
    fuzz_check((a.forward_flops > 0 || graph_has_times(graph)) && a.tokens > 0,
               "there is work");
}

static double time_of(const Plan *plan, const Graph *graph, const ClusterView *view,
                      const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, fidelity, &error);
    fuzz_check(!report == !!error, "either a report or an error");
    if (!report)
        return NAN;
    fuzz_check(isfinite(report->iteration_time_s) && report->iteration_time_s >= 0,
               "a time");
    return report->iteration_time_s;
}

/* Devices of types that profiles in the seeds know. */
static void check_plan(const char *path)
{
    static ClusterView *view =
        NULL; /* made once, since a fuzzer calls this a million times */
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = NULL;
    PlannerOptions options;
    if (!view)
        view = cluster_view(cluster_load("hap-8", NULL), GRANULARITY_MACHINE);
    planner_options_init(&options);
    g_autoptr(Plan) plan = planner_plan(planner_find("dp-ev", NULL), path, "hap-8", view,
                                        &options, &graph, &error);
    fuzz_check(!plan == !!error, "either a plan or an error");
    if (!plan)
        return;
    fuzz_check(program_check(plan->program, graph, NULL), "the program is sound");
    const double analytic_s = time_of(plan, graph, view, "analytic"),
                 stage_s = time_of(plan, graph, view, "stage");
    fuzz_check(isnan(analytic_s) == isnan(stage_s) &&
                   !(fabs(analytic_s - stage_s) > 1e-9 * analytic_s),
               "analytic and stage agree");
    fuzz_check(isnan(time_of(plan, graph, view, "flow")) == isnan(stage_s), "flow, too");
}

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    const bool deep = is_deep(data, size);
    g_autofree char *path = fuzz_file_open(data, size, &memory);
    g_autofree char *canonical = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(path, 1, &canonical, &error);
    fuzz_check(!graph == (error != NULL), "either a graph or an error");
    if (graph)
        check_graph(graph, path, canonical, deep);
    if (graph && deep && graph_n_ops(graph) <= MOST_PLANNED)
        check_plan(path);
    if (!graph)
        fuzz_check_refused(error, NULL);
    fuzz_file_close(memory);
    return graph != NULL;
}
