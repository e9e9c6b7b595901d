/* The theory of a graph: the rules of its ops, and the collectives, as Hoare triples. */
#include "synth/spmd/price.h"
#include "synth/spmd/spmd.h"

static void add_loads(const Graph *graph, TensorId id, GArray *theory)
{
    Triple triple = {.kind = TRIPLE_LOAD, .tensor = id};
    for (triple.to = 0; triple.to < FORM_MAX; triple.to++)
        if (triple.to != FORM_REDUCE && form_can_hold(graph, id, triple.to))
            g_array_append_val(theory, triple);
}

static void add_computations(const Graph *graph, OpId id, GArray *theory)
{
    const Op *op = graph_get_op(graph, id);
    Rule rule[OP_MAX_RULES];
    uint32_t n = op_rules(graph, id, rule);
    for (uint32_t r = 0; r < n; r++) {
        const bool holds =
            all_of(i, op->n_in + op->n_out,
                   form_can_hold(graph, i < op->n_in ? op->in[i] : op->out[i - op->n_in],
                                 rule[r].form[i]));
        Triple triple = {.kind = TRIPLE_COMPUTE, .op = id, .rule = rule[r]};
        if (holds)
            g_array_append_val(theory, triple);
    }
}

static void add_collectives(const Graph *graph, TensorId id, GArray *theory)
{
    Triple triple = {.kind = TRIPLE_COLLECTIVE, .tensor = id};
    for (int kind = 0; kind < COLLECTIVES; kind++)
        for (triple.from = 0; triple.from < FORM_MAX; triple.from++)
            for (triple.to = 0; triple.to < FORM_MAX; triple.to++) {
                triple.collective = (Collective)kind;
                if (collective_converts(triple.collective, triple.from, triple.to) &&
                    form_can_hold(graph, id, triple.from) &&
                    form_can_hold(graph, id, triple.to))
                    g_array_append_val(theory, triple);
            }
}

GArray *synth_theory(const Graph *graph)
{
    GArray *theory = g_array_new(FALSE, FALSE, sizeof(Triple));
    for (TensorId id = 0; id < graph_n_tensors(graph); id++)
        if (graph_tensor(graph, id)->producer == GRAPH_NONE)
            add_loads(graph, id, theory);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        add_computations(graph, id, theory);
    for (TensorId id = 0; id < graph_n_tensors(graph); id++)
        add_collectives(graph, id, theory);
    return theory;
}

/* --- notation --- */

static void append_property(GString *text, const Graph *graph, TensorId tensor, Form form,
                            bool first)
{
    g_string_append_printf(text, "%s%s|", first ? "" : ", ",
                           graph_tensor(graph, tensor)->name);
    if (form_is_gather(form))
        g_string_append_printf(text, "Gather(%u)", form_dim(form));
    else
        g_string_append(text, form == FORM_REDUCE ? "Reduce" : "Identity");
}

/* "linear_dx" -> "Linear-Dx", as the paper writes All-Reduce. */
static void append_title(GString *text, const char *name)
{
    bool start = true;
    for (const char *c = name; *c; c++) {
        bool gap = *c == '_';
        g_string_append_c(text, gap ? '-' : start ? g_ascii_toupper(*c) : *c);
        start = gap;
    }
}

static void append_load(GString *text, const Graph *graph, const Triple *triple)
{
    Role role = graph_tensor(graph, triple->tensor)->role;
    g_string_append(text, role == ROLE_INPUT       ? "Placeholder"
                          : role == ROLE_PARAMETER ? "Parameter"
                                                   : "Optimizer-State");
    if (form_is_gather(triple->to))
        g_string_append_printf(text, "-Shard(%u)", form_dim(triple->to));
    else
        g_string_append(text, "()");
}

static const char *const INSTRUCTION[COLLECTIVES] = {
    [COLLECTIVE_ALL_REDUCE] = "All-Reduce",
    [COLLECTIVE_ALL_GATHER] = "All-Gather",
    [COLLECTIVE_GROUPED_ALL_GATHER] = "Grouped-Broadcast",
    [COLLECTIVE_REDUCE_SCATTER] = "Reduce-Scatter",
    [COLLECTIVE_GROUPED_REDUCE_SCATTER] = "Grouped-Reduce",
    [COLLECTIVE_ALL_TO_ALL] = "All-To-All",
    [COLLECTIVE_SLICE] = "Slice",
    [COLLECTIVE_KEEP] = "Keep",
    [COLLECTIVE_PAD] = "Pad",
};

static void append_collective(GString *text, const Graph *graph, const Triple *triple)
{
    g_string_append_printf(text, "%s(%s", INSTRUCTION[triple->collective],
                           graph_tensor(graph, triple->tensor)->name);
    if (form_is_gather(triple->from))
        g_string_append_printf(text, ", %u", form_dim(triple->from));
    if (form_is_gather(triple->to))
        g_string_append_printf(text, ", %u", form_dim(triple->to));
    g_string_append_c(text, ')');
}

char *synth_triple_instruction(const Graph *graph, const Triple *triple)
{
    GString *text = g_string_new("");
    if (triple->kind == TRIPLE_LOAD) {
        append_load(text, graph, triple);
    } else if (triple->kind == TRIPLE_COLLECTIVE) {
        append_collective(text, graph, triple);
    } else {
        const Op *op = graph_get_op(graph, triple->op);
        append_title(text, op_kind_name(op->kind));
        for (uint32_t i = 0; i < op->n_in; i++)
            g_string_append_printf(text, "%s%s", i ? ", " : "(",
                                   graph_tensor(graph, op->in[i])->name);
        g_string_append_c(text, ')');
    }
    return g_string_free(text, FALSE);
}

char *synth_triple_condition(const Graph *graph, const Triple *triple, bool after)
{
    GString *text = g_string_new("{");
    const Op *op =
        triple->kind == TRIPLE_COMPUTE ? graph_get_op(graph, triple->op) : NULL;
    if (op) {
        uint32_t n = after ? op->n_out : op->n_in;
        for (uint32_t i = 0; i < n; i++)
            append_property(text, graph, after ? op->out[i] : op->in[i],
                            triple->rule.form[after ? op->n_in + i : i], i == 0);
    } else if (after || triple->kind == TRIPLE_COLLECTIVE) {
        append_property(text, graph, triple->tensor, after ? triple->to : triple->from,
                        true);
    }
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}
