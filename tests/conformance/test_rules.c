/* Every rule of the op table, proved by running it: an op on shards, cut as the rule
 * says, gives the whole op's outputs once they are put together as the rule says.
 *
 * For random shapes and uneven cuts, empty shards among them, in float64. The same
 * check must refuse rules that are known to be wrong. */
#include "data/data.h"
#include "exec/contraction.h"
#include "tests/conformance/sample.h"

enum { SEEDS = 12 };

/* The number of runs of each kind of rule, by op kind. */
typedef struct {
    uint32_t replicated[OP_KINDS], linear[OP_KINDS], sharded[OP_KINDS];
} Coverage;

static void check_op(const Graph *graph, OpId id, const ExecTensor *value, GRand *random,
                     Coverage *coverage)
{
    const Op *op = graph_get_op(graph, id);
    Rule rule[OP_MAX_RULES];
    const uint32_t n = op_rules(graph, id, rule);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t *count = rule[r].loop >= 0                       ? coverage->sharded
                          : rule[r].form[op->n_in] == FORM_REDUCE ? coverage->linear
                                                                  : coverage->replicated;
        count[op->kind]++;
        if (exec_rule_error(graph, id, value, &rule[r], random) <= EXEC_TOLERANCE)
            continue;
        g_autoptr(GString) text = g_string_new(op->name);
        char buffer[FORM_TEXT];
        for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
            g_string_append_printf(text, "%s %s", i == op->n_in ? " ->" : "",
                                   form_text(rule[r].form[i], buffer));
        fail_msg("%s: rule does not hold:%s", op_kind_name(op->kind), text->str);
    }
}

static void test_every_rule_of_every_kind(void **state)
{
    (void)state;
    Coverage coverage = {0};
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            GRand *random = g_rand_new_with_seed(seed);
            g_autoptr(Graph) graph = graph_new("one op");
            const OpId op = sample_op(graph, kind, seed % 4 == 3 ? 1 : 2, false, random);
            graph_seal(graph);
            ExecTensor *value = exec_values_new(graph, g_rand_int(random));
            exec_run_graph(graph, value);
            check_op(graph, op, value, random, &coverage);
            exec_values_free(graph, value);
            g_rand_free(random);
        }
    for (OpKind kind = 0; kind < OP_KINDS; kind++) {
        const char *signature = op_kind_signature(kind);
        const bool shardable = strpbrk(signature, "*abcdefghijklmnopqrstuvwxyz") != NULL;
        const bool linear = strcmp(op_kind_linear(kind), "-") != 0;
        if (!coverage.replicated[kind] || !coverage.sharded[kind] != !shardable ||
            !coverage.linear[kind] != !linear)
            fail_msg("%s: not all kinds of its rules were run", op_kind_name(kind));
    }
}

/* In a model, dimensions have fewer units than their extents, and values come from a real
 * iteration. */
static void test_every_rule_in_models(void **state)
{
    (void)state;
    Coverage coverage = {0};
    for (uint32_t m = 0; m < G_N_ELEMENTS(SAMPLE_MODELS); m++) {
        GRand *random = g_rand_new_with_seed(m);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(SAMPLE_MODELS[m], 2, NULL, &error);
        assert_no_error(error);
        ExecTensor *value = exec_values_new(graph, g_rand_int(random));
        exec_run_graph(graph, value);
        for (OpId id = 0; id < graph_n_ops(graph); id++)
            check_op(graph, id, value, random, &coverage);
        exec_values_free(graph, value);
        g_rand_free(random);
    }
}

/* --- rules that are wrong --- */

/* Forms in brief: I identity, R reduce, a digit d gather(d), L gather(last dim). */
static const struct {
    OpKind kind;
    const char *in, *out;
    const char *why;
} WRONG[] = {
    {OP_ADD, "RI", "R", "the replicated operand is added once per device"},
    {OP_ADD_ROWS, "IR", "R", "the same"},
    {OP_APPEND_TOKEN, "IR", "R", "the same for the rows of x"},
    {OP_LINEAR, "L1I", "R", "the bias is added once per device"},
    {OP_LINEAR, "RII", "R", "the same"},
    {OP_LINEAR, "RR", "R", "linear in each input, not in both"},
    {OP_LINEAR, "L1", "I", "partial sums are not replicas"},
    {OP_CONV2D, "11I", "R", "the bias is added once per device"},
    {OP_LINEAR_DW, "00", "I", "partial sums are not replicas"},
    {OP_EMBEDDING, "I0", "I", "ids of other shards give zeros"},
    {OP_EMBEDDING, "RI", "R", "ids are indices, not summands"},
    {OP_NLL_SUM, "00", "I", "each device has the loss of its rows only"},
    {OP_GELU, "R", "R", "not linear"},
    {OP_RELU, "R", "R", "not linear"},
    {OP_MAX_POOL2D, "R", "R", "not linear"},
    {OP_ATTENTION, "R", "RR", "not linear"},
    {OP_ADAM, "RRRR", "RRR", "not linear"},
    {OP_ADAM_MASTER, "RRRRR", "RRRR", "not linear"},
    {OP_ADAMW, "RRRR", "RRR", "not linear"},
    {OP_ADAFACTOR, "RRRR", "RRR", "not linear"},
    {OP_GELU_DX, "RR", "R", "linear in dy only"},
    {OP_MAX_POOL2D_DX, "RR", "R", "linear in dy only"},
    {OP_LOG_SOFTMAX_DX, "RR", "R", "linear in dy only"},
    {OP_LABEL_LOGIT, "LI", "I", "labels of other shards give zeros"},
    {OP_LABEL_LOGIT, "RR", "R", "labels are indices, not summands"},
    {OP_SUM_EXP, "LI", "I", "partial sums are not replicas"},
    {OP_SUM_EXP, "LR", "R", "not linear in the shift"},
    {OP_LOG_SUM_EXP, "IR", "R", "the logarithm is added once per device"},
    {OP_CROSS_ENTROPY, "LII", "I", "each device has the loss of its labels only"},
    {OP_CROSS_ENTROPY, "IIR", "R", "logits are subtracted once per device"},
    {OP_CROSS_ENTROPY_DX, "RIIR", "R", "linear in dy only"},
    {OP_LAYER_NORM, "L00", "L", "moments are over the whole hidden dim"},
    {OP_LAYER_NORM_DX, "LL0", "L", "the same"},
    {OP_LAYER_NORM_DW, "LL", "00", "the same, in x"},
    {OP_LOG_SOFTMAX, "L", "L", "the sum is over the whole vocabulary"},
    {OP_ATTENTION, "1", "12", "every query sees all keys"},
    {OP_GATE_TOP1, "1", "11", "slots are given out over the whole group"},
    {OP_GATE_TOP1, "2", "22", "the best expert is chosen among all"},
    {OP_GATE_TOP2, "1", "11", "slots are given out over the whole group"},
    {OP_GATE_TOP2, "2", "22", "the best experts are chosen among all"},
    {OP_RMS_NORM, "L0", "L", "the mean square is over the whole hidden dim"},
    {OP_RMS_NORM_DW, "LL", "0", "the same, in x"},
    {OP_SWIGLU, "R", "R", "not linear"},
    {OP_KV_PROJ, "RII", "R", "the bias is added once per device"},
    {OP_GROUPED_ATTENTION, "RI", "RR", "not linear"},
    {OP_FUSED_ATTENTION, "I1", "II", "every query sees all keys"},
    {OP_FUSED_ATTENTION, "RI", "RR", "not linear"},
    {OP_FUSED_ATTENTION_DX, "33I2", "3I", "each device has its own queries' part of dkv"},
    {OP_GATE_TOPK, "L", "L", "the best experts are chosen among all"},
    {OP_ROUTE, "RI", "R", "weights choose, they are no summands"},
    {OP_ROUTE, "11", "R", "slots are given out over the whole group"},
    {OP_UNROUTE, "12", "I", "each device has the part of its experts"},
    {OP_ROUTE_WEIGH, "RR", "R", "linear in the slots only"},
    {OP_EXPERT_BIAS, "RI", "R", "the bias is added once per device"},
    {OP_JOIN_KEYS, "IR", "R", "the heads' own elements are added once per device"},
    {OP_MERGE, "L", "L", "slices of the inner dim are not adjacent once merged"},
    {OP_MOE_COMBINE, "RR", "R", "linear in each input, not in both"},
};

static Form brief_form(char c, uint32_t rank)
{
    return c == 'I'   ? FORM_IDENTITY
           : c == 'R' ? FORM_REDUCE
                      : form_gather(c == 'L' ? rank - 1 : (uint32_t)(c - '0'));
}

/* The rule that `in` and `out` describe; false if the op has another number of operands (no
 * bias). */
static bool brief_rule(const Graph *graph, const Op *op, const char *in, const char *out,
                       Rule *rule)
{
    if (strlen(in) != op->n_in || strlen(out) != op->n_out)
        return false;
    *rule = (Rule){.loop = -1};
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const bool is_in = i < op->n_in;
        const Tensor *tensor =
            graph_tensor(graph, is_in ? op->in[i] : op->out[i - op->n_in]);
        rule->form[i] = brief_form(is_in ? in[i] : out[i - op->n_in], tensor->rank);
        if (form_is_gather(rule->form[i]) && rule->units == 0)
            rule->units = tensor->dim[form_dim(rule->form[i])];
    }
    return true;
}

static void test_wrong_rules_are_caught(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < G_N_ELEMENTS(WRONG); w++) {
        uint32_t caught = 0;
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            GRand *random = g_rand_new_with_seed(seed);
            g_autoptr(Graph) graph = graph_new("one op");
            const OpId id = sample_op(graph, WRONG[w].kind, 2, false, random);
            graph_seal(graph);
            ExecTensor *value = exec_values_new(graph, g_rand_int(random));
            exec_run_graph(graph, value);
            const Op *op = graph_get_op(graph, id);
            Rule rule;
            if (brief_rule(graph, op, WRONG[w].in, WRONG[w].out, &rule)) {
                /* The rule must not be in the theory either. */
                assert_false(op_rule_find(graph, id, rule.form, &(Rule){0}));
                caught +=
                    exec_rule_error(graph, id, value, &rule, random) > EXEC_TOLERANCE;
            }
            exec_values_free(graph, value);
            g_rand_free(random);
        }
        if (caught < 2)
            fail_msg("%s %s -> %s held although %s", op_kind_name(WRONG[w].kind),
                     WRONG[w].in, WRONG[w].out, WRONG[w].why);
    }
}

/* A linear op as matrices: rows and columns of each operand are dense in the order of its dims,
 * and not when swapped. */
static void test_contraction(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = graph_new("linear");
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 3, (uint32_t[]){2, 3, 5}),
                   w = graph_parameter(graph, "w", 2, (uint32_t[]){7, 5});
    graph_op(graph, OP_LINEAR, "y", (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
    const ExecShard in[] = {{.rank = 3, .dim = {2, 3, 5}}, {.rank = 2, .dim = {7, 5}}},
                    out = {.rank = 3, .dim = {2, 3, 7}};
    const ExecShard *const shard[] = {&in[0], &in[1], &out};
    static const struct {
        uint32_t rows, columns;
    } AS[] = {{GROUP_M, GROUP_K}, {GROUP_N, GROUP_K}, {GROUP_M, GROUP_N}};
    Contraction c;
    assert_true(contraction_bind(graph, 0, in, &out, &c));
    assert_int_equal(c.added, -1);
    for (uint32_t i = 0; i < 3; i++) {
        const LoopOrder order =
                            contraction_order(&c, i, shard[i], AS[i].rows, AS[i].columns),
                        swapped =
                            contraction_order(&c, i, shard[i], AS[i].columns, AS[i].rows);
        uint64_t elements = 1;
        for (uint32_t k = 0; k < order.n; k++)
            elements *= order.extent[k];
        assert_int_equal(order.n, shard[i]->rank);
        assert_int_equal(swapped.n, shard[i]->rank);
        assert_int_equal(elements, exec_shard_elements(shard[i]));
        assert_true(loop_order_is_dense(&order));
        assert_false(loop_order_is_dense(&swapped));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contraction),
        cmocka_unit_test(test_every_rule_of_every_kind),
        cmocka_unit_test(test_every_rule_in_models),
        cmocka_unit_test(test_wrong_rules_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
