/* A program as a picture: Graphviz. */
#include "data/base/assert.h"
#include "data/program/program.h"

/* With more instructions a node stands for one pass of a layer. */
enum { MAX_SINGLE = 500 };

typedef struct {
    const Program *program;
    const Graph *graph;
    bool folded;
    GString *text;
    GHashTable *node;  /* label of its group and layer -> number from 1 */
    GHashTable *maker; /* "group tensor form" -> node */
    GHashTable *edge;  /* "from to" of the edges drawn so far */
    uint32_t n_nodes;
} Dot;

static void escape(GString *text, const char *words)
{
    for (; *words; words++) {
        if (*words == '"' || *words == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *words);
    }
}

/* The label of a folded node. */
static char *fold(const Dot *dot, const Instr *instr)
{
    static const char *const PASS[] = {[PASS_FORWARD] = "forward",
                                       [PASS_BACKWARD] = "backward",
                                       [PASS_UPDATE] = "update"};
    if (instr->kind != INSTR_COMPUTE)
        return g_strdup_printf("%s of group %u",
                               instr->kind == INSTR_LOAD ? "loads" : "communication",
                               instr->group);
    const Op *op = graph_get_op(dot->graph, instr->op);
    return g_strdup_printf("%s %s", graph_layer_name(dot->graph, op->layer),
                           PASS[op->pass]);
}

static uint32_t dot_add_node(Dot *dot, const Instr *instr)
{
    static const char *const SHAPE[] = {[INSTR_LOAD] = "plaintext",
                                        [INSTR_COMPUTE] = "box",
                                        [INSTR_COLLECTIVE] = "ellipse",
                                        [INSTR_TRANSFER] = "cds"};
    g_autofree char *words =
        dot->folded ? fold(dot, instr) : instr_text(instr, dot->graph);
    g_autofree char *key = g_strdup_printf("%u %s", instr->group, words);
    const uint32_t known = GPOINTER_TO_UINT(g_hash_table_lookup(dot->node, key));
    if (dot->folded && known)
        return known;
    dot->n_nodes++;
    g_hash_table_insert(dot->node, g_steal_pointer(&key), GUINT_TO_POINTER(dot->n_nodes));
    g_string_append_printf(dot->text,
                           "  subgraph cluster_%u { label=\"group %u\"; n%u [shape=%s, "
                           "label=\"",
                           instr->group, instr->group, dot->n_nodes, SHAPE[instr->kind]);
    escape(dot->text, words);
    g_string_append(dot->text, "\"]; }\n");
    return dot->n_nodes;
}

static const char *color(Form form)
{
    return form_is_gather(form) ? "blue" : form == FORM_REDUCE ? "red" : "black";
}

static char *instance_key(uint32_t group, const Operand *operand)
{
    return g_strdup_printf("%u %u %u", group, operand->tensor, operand->form);
}

static void add_edges(Dot *dot, const Instr *instr, uint32_t node)
{
    KILTER_ASSERT(node > 0);
    Operand use[OP_MAX_IN];
    const uint32_t n = instr_uses(instr, dot->graph, use);
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *key = instance_key(instr->group, &use[i]);
        const uint32_t from = GPOINTER_TO_UINT(g_hash_table_lookup(dot->maker, key));
        char *edge = g_strdup_printf("%u %u", from, node);
        if (from && from != node && g_hash_table_add(dot->edge, edge))
            g_string_append_printf(dot->text, "  n%u -> n%u [color=%s];\n", from, node,
                                   color(use[i].form));
        else if (!from || from == node)
            g_free(edge);
    }
}

static void take_made(Dot *dot, const Instr *instr, uint32_t node)
{
    KILTER_ASSERT(node > 0);
    Operand make[OP_MAX_OUT];
    const uint32_t n = instr_makes(instr, dot->graph, make);
    const uint32_t group = instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
    for (uint32_t i = 0; i < n; i++)
        g_hash_table_insert(dot->maker, instance_key(group, &make[i]),
                            GUINT_TO_POINTER(node));
}

char *program_dot(const Program *program, const Graph *graph)
{
    Dot dot = {
        .program = program,
        .graph = graph,
        .folded = program->n > MAX_SINGLE,
        .text = g_string_new("digraph program {\n  rankdir=TB; node [fontsize=10];\n"),
        .node = text_table(NULL),
        .maker = text_table(NULL),
        .edge = text_table(NULL),
    };
    items_each (const Instr, instr, program->instr, program->n) {
        const uint32_t node = dot_add_node(&dot, instr);
        add_edges(&dot, instr, node);
        take_made(&dot, instr, node);
    }
    g_string_append(dot.text, "}\n");
    g_hash_table_unref(dot.node);
    g_hash_table_unref(dot.maker);
    g_hash_table_unref(dot.edge);
    return g_string_free(dot.text, false);
}
