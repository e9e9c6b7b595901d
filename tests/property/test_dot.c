/* Programs as pictures: in small ones a box for each instruction and an arrow from the last one that
 * made what it reads; in large ones both are between groups' passes of layers. */
#include "tests/support/made_plan.h"

enum { MAX_SINGLE = 500 };

static const char *colour_of(Form form)
{
    return form_is_gather(form) ? "blue" : form == FORM_REDUCE ? "red" : "black";
}

/* The last instruction before the i-th that made what it reads; UINT32_MAX: none. */
static uint32_t maker_of(const Program *program, const Graph *graph, uint32_t i,
                         const Operand *use)
{
    for (uint32_t k = i; k-- > 0;) {
        const Instr *instr = &program->instr[k];
        Operand make[OP_MAX_OUT];
        const uint32_t n = instr_makes(instr, graph, make),
                       group =
                           instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
        for (uint32_t m = 0; m < n; m++)
            if (group == program->instr[i].group && make[m].tensor == use->tensor &&
                make[m].form == use->form)
                return k;
    }
    return UINT32_MAX;
}

/* The words of each node, by its number, and its group before them; as they are in the text. */
static GPtrArray *labels_of(const char *dot)
{
    GPtrArray *labels = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(labels, NULL); /* numbers begin with 1 */
    for (const char *at = dot; (at = strstr(at, "subgraph cluster_"));) {
        const unsigned long group =
            strtoul(at + strlen("subgraph cluster_"), (char **)&at, 10);
        at = strstr(at, "; n") + strlen("; n");
        assert_int_equal(strtoul(at, (char **)&at, 10), labels->len);
        at = strstr(at, "label=\"") + strlen("label=\"");
        g_autofree char *words = g_strndup(at, (gsize)(strstr(at, "\"]; }") - at));
        g_ptr_array_add(labels, g_strdup_printf("%lu %s", group, words));
    }
    return labels;
}

/* The node of an instruction: its own, or that of its layer and pass, which has one label. */
static uint32_t node_of(const GPtrArray *labels, const Graph *graph, const Instr *instr,
                        uint32_t i)
{
    static const char *const PASS[] = {"forward", "backward", "update"};
    if (labels->len > 1 && i != UINT32_MAX)
        return i + 1;
    g_autofree char *words = NULL;
    if (instr->kind == INSTR_COMPUTE) {
        const Op *op = graph_get_op(graph, instr->op);
        words =
            g_strdup_printf("%u %s %s", instr->group, graph_layer_name(graph, op->layer),
                            PASS[op->pass == PASS_FORWARD    ? 0
                                 : op->pass == PASS_BACKWARD ? 1
                                                             : 2]);
    } else
        words =
            g_strdup_printf(instr->kind == INSTR_LOAD ? "%u loads of group %u"
                                                      : "%u communication of group %u",
                            instr->group, instr->group);
    for (uint32_t n = 1; n < labels->len; n++)
        if (strcmp(labels->pdata[n], words) == 0)
            return n;
    TEST_FAIL_AT(__FILE__, __LINE__, "no box says '%s'", words);
    return 0;
}

static uint32_t check_picture(const char *set, bool folded)
{
    const Made made =
        made_plan("manual",
                  folded ? "gpt2:layers=5,hidden=16,heads=4,ffn=24,seq=8,vocab=24,"
                           "global_batch=16"
                         : "vgg19:width=8,fc=8,batch=4",
                  "hap-8", set);
    const Program *program = made.plan->program;
    const Graph *graph = made.graph;
    g_autofree char *dot = program_dot(program, graph);
    g_autoptr(GPtrArray) labels = labels_of(dot);
    g_autoptr(GHashTable) arrows =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                          pairs = g_hash_table_new(NULL, NULL);
    uint32_t n_arrows = 0;
    assert_int_equal(folded, program->n > MAX_SINGLE);
    for (const char *at = dot; (at = strstr(at, "\n  n"));) {
        at += strlen("\n  ");
        g_hash_table_add(arrows, g_strndup(at, strcspn(at, ";")));
        n_arrows++;
    }
    assert_int_equal(n_arrows, g_hash_table_size(arrows)); /* each is drawn once */
    for (uint32_t i = 0; i < program->n; i++) {
        Operand use[OP_MAX_IN];
        const Instr *instr = &program->instr[i];
        const uint32_t n = instr_uses(instr, graph, use),
                       to = node_of(labels, graph, instr, folded ? UINT32_MAX : i);
        g_autofree char *text = instr_text(instr, graph);
        assert_true(folded || strstr(labels->pdata[to], text) || strpbrk(text, "\"\\"));
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t by = maker_of(program, graph, i, &use[k]);
            if (by == UINT32_MAX)
                continue;
            const uint32_t from =
                node_of(labels, graph, &program->instr[by], folded ? UINT32_MAX : by);
            if (from == to ||
                !g_hash_table_add(pairs, GSIZE_TO_POINTER((gsize)from << 32 | to)))
                continue;
            g_autofree char *arrow = g_strdup_printf("n%u -> n%u [color=%s]", from, to,
                                                     colour_of(use[k].form));
            assert_true(g_hash_table_contains(arrows, arrow));
        }
    }
    assert_int_equal(g_hash_table_size(pairs), n_arrows);
    if (!folded)
        assert_int_equal(labels->len, program->n + 1);
    for (uint32_t n = 1; folded && n < labels->len; n++) /* no two say the same */
        for (uint32_t m = 1; m < n; m++)
            assert_string_not_equal(labels->pdata[n], labels->pdata[m]);
    Made done = made;
    made_clear(&done);
    return n_arrows;
}

static void test_pictures(void **state)
{
    (void)state;
    assert_true(check_picture("dp=8", false) > 100);
    assert_true(check_picture("pp=2 dp=4 microbatches=2", true) > 20);
    assert_true(check_picture("pp=2 tp=2 dp=2 microbatches=2 zero=1", true) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pictures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
