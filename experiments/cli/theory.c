/* kilter theory. */
#include "data/models/model.h"
#include "experiments/cli/command.h"
#include "synth/planners/planner.h"
#include "synth/synth.h"

/* The kinds of triples that are counted: loads, computations by pass, collectives by kind. */
enum {
    KIND_LOAD,
    KIND_FORWARD,
    KIND_BACKWARD,
    KIND_UPDATE,
    KIND_COLLECTIVE,
    KINDS = KIND_COLLECTIVE + COLLECTIVES
};

static uint32_t theory_kind_of(const Graph *graph, const Triple *triple)
{
    switch (triple->kind) {
    case TRIPLE_LOAD:
        return KIND_LOAD;
    case TRIPLE_COLLECTIVE:
        return KIND_COLLECTIVE + (uint32_t)triple->collective;
    case TRIPLE_COMPUTE:
        break;
    }
    return KIND_FORWARD + (uint32_t)graph_get_op(graph, triple->op)->pass;
}

static const char *kind_name(uint32_t kind)
{
    static const char *const name[KIND_COLLECTIVE] = {"load", "forward", "backward",
                                                      "update"};
    return kind < KIND_COLLECTIVE ? name[kind]
                                  : collective_name((Collective)(kind - KIND_COLLECTIVE));
}

static json_t *theory_triple_json(const Graph *graph, const Triple *triple)
{
    g_autofree char *instruction = synth_triple_instruction(graph, triple);
    g_autofree char *before = synth_triple_condition(graph, triple, false);
    g_autofree char *after = synth_triple_condition(graph, triple, true);
    return json_pack("{s:s, s:s, s:s, s:s}", "kind",
                     kind_name(theory_kind_of(graph, triple)), "precondition", before,
                     "instruction", instruction, "postcondition", after);
}

/* Text goes out triple by triple, as all of them take gigabytes in deep models. */
static void theory_report(const CommandOptions *options, const Graph *graph,
                          const char *model, const GArray *theory,
                          const uint32_t count[KINDS])
{
    json_t *counts = json_object(), *triples = json_array();
    for (uint32_t kind = 0; kind < KINDS; kind++)
        json_object_set_new(counts, kind_name(kind), json_integer(count[kind]));
    for (guint i = 0; !command_is_silent(options) && i < theory->len; i++) {
        json_t *triple = theory_triple_json(graph, &g_array_index(theory, Triple, i));
        if (options->json)
            json_array_append_new(triples, triple);
        else
            command_report(options, triple,
                           "{precondition} {instruction} {postcondition}\n", NULL);
    }
    json_t *answer =
        json_pack("{s:s, s:I, s:o, s:o}", "model", model, "count",
                  (json_int_t)theory->len, "counts", counts, "triples", triples);
    command_report(options, answer, "# {count} triples:[*counts/,: {value} {key}]\n",
                   NULL);
}

/* Says first that an answer is large: the triples of an op take so long, and as JSON so much. */
static void theory_say_size(const Graph *graph, bool json)
{
    const double op_s = 3e-4, op_bytes = json ? 6e4 : 3e3;
    const uint32_t ops = graph_n_ops(graph);
    g_autofree char *what = g_strdup_printf("the theory of %u ops", ops);
    planner_say(what, op_s * ops, op_bytes * ops);
}

#define THEORY_OPTIONS(X) X(COUNT, gpus, "gpus", 0, 1, G_MAXINT)
COMMAND_OPTIONS(Own, theory_options, THEORY_OPTIONS)

COMMAND(theory, Own, THEORY_OPTIONS, .gpus = 8)
{
    g_autofree char *model = NULL;
    g_autoptr(Graph) graph = model_build(argv[1], (uint32_t)own->gpus, &model, error);
    if (!graph)
        return false;
    theory_say_size(graph, options->json);
    g_autoptr(GArray) theory = synth_theory(graph);
    uint32_t count[KINDS] = {0};
    for (guint i = 0; i < theory->len; i++)
        count[theory_kind_of(graph, &g_array_index(theory, Triple, i))]++;
    theory_report(options, graph, model, theory, count);
    return true;
}
