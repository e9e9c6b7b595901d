/* Known strategies have the forms that their papers describe. */
#include "data/data.h"
#include "synth/synth.h"
#include "tests/test.h"

#include <string.h>

typedef struct {
    Graph *graph;
    Program *program;
} Made;

static Made make(const char *model, Baseline baseline)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autofree char *canonical = NULL;
    Made made = {.graph = model_build(model, cluster_gpus(cluster), &canonical, &error)};
    assert_no_error(error);
    g_autofree double *ratio = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = 1.0 / view->n_devices;
    SynthResult result;
    synth_baseline(made.graph, view, ratio, baseline, &result, &error);
    assert_no_error(error);
    made.program = result.program;
    program_check(made.program, made.graph, &error);
    assert_no_error(error);
    return made;
}

static void made_clear(Made *made)
{
    program_free(made->program);
    graph_free(made->graph);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Made, made_clear)

/* The form at rest of a tensor that is loaded, the form that its op makes of any other. */
static void assert_form(const Made *made, const char *tensor, const char *form)
{
    const TensorId id = graph_find(made->graph, tensor);
    assert_int_not_equal(id, GRAPH_NONE);
    char text[FORM_TEXT] = "";
    for (uint32_t i = 0; i < made->program->n; i++) {
        const Instr *instr = &made->program->instr[i];
        if (instr->kind == INSTR_LOAD && instr->tensor == id)
            form_text(instr->to, text);
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(made->graph, instr->op) : NULL;
        for (uint32_t o = 0; op && o < op->n_out; o++)
            if (op->out[o] == id)
                form_text(instr->form[op->n_in + o], text);
    }
    if (strcmp(text, form) != 0)
        fail_msg("%s is %s, not %s", tensor, text, form);
}

/* Collectives of a kind on tensors of a layer; NULL: anywhere. */
static uint32_t count(const Made *made, Collective kind, const char *prefix)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < made->program->n; i++) {
        const Instr *instr = &made->program->instr[i];
        n += instr->kind == INSTR_COLLECTIVE && instr->collective == kind &&
             (!prefix ||
              g_str_has_prefix(graph_tensor(made->graph, instr->tensor)->name, prefix));
    }
    return n;
}

static void test_megatron_cuts_columns_then_rows(void **state)
{
    (void)state;
    g_auto(Made) m = make("bert-base:layers=3,vocab=640", BASELINE_MEGATRON);
    assert_form(&m, "layers.1.attention.qkv.weight", "gather(1)"); /* heads */
    assert_form(&m, "layers.1.attention.qkv", "gather(3)");
    assert_form(&m, "layers.1.attention.out.weight", "gather(1)");
    assert_form(&m, "layers.1.attention.out.bias", "identity");
    assert_form(&m, "layers.1.attention.out", "reduce");
    assert_form(&m, "layers.1.ffn.up.weight", "gather(0)");
    assert_form(&m, "layers.1.ffn.up.bias", "gather(0)");
    assert_form(&m, "layers.1.ffn.up", "gather(2)");
    assert_form(&m, "layers.1.ffn.down.weight", "gather(1)");
    assert_form(&m, "layers.1.ffn.down", "reduce");
    assert_form(&m, "layers.1.norm1", "identity");
    assert_form(&m, "embedding.weight", "gather(0)"); /* vocabulary */
    assert_form(&m, "embedding", "reduce");
    /* Two all-reduces per layer in the forward pass (Sec. 3) and two in the backward pass, and no
     * other communication in the layer. */
    assert_int_equal(count(&m, COLLECTIVE_ALL_REDUCE, "layers.1."), 4);
    assert_int_equal(count(&m, COLLECTIVE_ALL_GATHER, "layers.1."), 0);
    assert_int_equal(count(&m, COLLECTIVE_GROUPED_ALL_GATHER, "layers.1."), 0);
    assert_int_equal(count(&m, COLLECTIVE_ALL_TO_ALL, NULL), 0);
}

/* Separate queries and keys are cut together, by the heads of keys; if there are fewer of these
 * than devices, keys are whole and queries are cut within their groups. */
static void test_megatron_cuts_grouped_attention(void **state)
{
    (void)state;
    g_auto(Made) m = make("llama:layers=2,kv_heads=8,vocab=640", BASELINE_MEGATRON);
    assert_form(&m, "layers.1.attention.q.weight", "gather(0)");
    assert_form(&m, "layers.1.attention.kv.weight", "gather(0)");
    assert_form(&m, "layers.1.attention.k.rotary", "gather(2)");
    assert_form(&m, "layers.1.attention.out.weight", "gather(1)");
    assert_form(&m, "layers.1.attention.out", "reduce");
    /* The gradients of an input of both are added up before they are communicated. */
    assert_int_equal(count(&m, COLLECTIVE_ALL_REDUCE, "layers.1."), 4);
    assert_int_equal(count(&m, COLLECTIVE_ALL_GATHER, "layers.1."), 0);
    g_auto(Made) few = make("llama:layers=2,kv_heads=2,vocab=640", BASELINE_MEGATRON);
    assert_form(&few, "layers.1.attention.q.weight", "gather(1)");
    assert_form(&few, "layers.1.attention.kv.weight", "identity");
    assert_form(&few, "layers.1.attention.out.weight", "gather(2)");
    assert_int_equal(count(&few, COLLECTIVE_ALL_GATHER, "layers.1."), 0);
}

/* Logits stay sharded over the vocabulary: two numbers per token are summed over the devices (Sec.
 * 3). */
static void test_megatron_never_gathers_logits(void **state)
{
    (void)state;
    g_auto(Made) m = make("gpt2:layers=2,vocab=640", BASELINE_MEGATRON);
    assert_form(&m, "decoder.weight", "gather(0)");
    assert_form(&m, "decoder", "gather(2)");
    assert_form(&m, "label_logit", "reduce");
    assert_form(&m, "sum_exp", "reduce");
    assert_form(&m, "log_sum_exp", "identity");
    assert_form(&m, "loss", "reduce");
    assert_form(&m, "decoder.grad", "gather(2)");
    assert_form(&m, "decoder.norm.grad", "reduce");
    assert_int_equal(count(&m, COLLECTIVE_ALL_REDUCE, "label_logit"), 1);
    assert_int_equal(count(&m, COLLECTIVE_ALL_REDUCE, "sum_exp"), 1);
    for (Collective kind = 0; kind < COLLECTIVES; kind++)
        assert_int_equal(count(&m, kind, "decoder"), kind == COLLECTIVE_ALL_REDUCE);
    assert_int_equal(count(&m, COLLECTIVE_ALL_GATHER, NULL), 0);
}

/* On slow links between machines the exact search does so by itself, with the layers data parallel:
 * the decoder's gradient is larger than its input. */
static void test_the_search_shards_the_head(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-a100-4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_auto(Made)
        m = {.graph = model_build("gpt2:layers=2,global_batch=16", 4, NULL, &error)};
    g_autoptr(SynthSpace) space = synth_space_new(m.graph, NULL);
    const double even[] = {0.25, 0.25, 0.25, 0.25};
    SynthResult result;
    synth_search(space, view, even, &(SynthOptions){0}, &result, &error);
    assert_no_error(error);
    assert_true(result.optimal);
    m.program = result.program;
    assert_form(&m, "layers.1.ffn.up", "gather(0)");
    assert_form(&m, "decoder.weight", "gather(0)");
    assert_form(&m, "decoder", "gather(2)");
    assert_form(&m, "sum_exp", "reduce");
    assert_form(&m, "decoder.grad", "gather(2)");
    assert_form(&m, "decoder.weight.grad", "gather(0)");
    assert_int_equal(count(&m, COLLECTIVE_PAD, NULL), 0);
}

static void test_megatron_pairs_convolutions(void **state)
{
    (void)state;
    g_auto(Made) m = make("vgg19:width=8,fc=64", BASELINE_MEGATRON);
    assert_form(&m, "features.0.0.weight", "gather(0)");
    assert_form(&m, "features.0.0", "gather(1)");
    assert_form(&m, "features.0.1.weight", "gather(1)");
    assert_form(&m, "features.0.1", "reduce");
}

/* The first layer's columns would be gathered at once, so cutting them gains nothing. */
static void test_megatron_keeps_single_layers_whole(void **state)
{
    (void)state;
    g_auto(Made) m = make("transgan:layers=1", BASELINE_MEGATRON);
    assert_form(&m, "embedding.weight", "identity");
    assert_form(&m, "wide.0.ffn.up.weight", "gather(0)");
    assert_form(&m, "narrow.0.ffn.up.weight", "gather(0)");
}

static void test_gshard_exchanges_tokens(void **state)
{
    (void)state;
    g_auto(Made) m = make("bert-moe:layers=2,vocab=640", BASELINE_GSHARD);
    assert_form(&m, "layers.1.moe.up.weight", "gather(0)");
    assert_form(&m, "layers.1.moe.up", "gather(1)");
    assert_form(&m, "layers.1.moe.down.weight", "gather(0)");
    assert_form(&m, "layers.1.attention.qkv", "gather(0)");
    assert_form(&m, "layers.1.attention.qkv.weight", "identity");
    /* To the experts and back, forward and backward. */
    assert_int_equal(count(&m, COLLECTIVE_ALL_TO_ALL, NULL), 4);
    assert_int_equal(count(&m, COLLECTIVE_ALL_GATHER, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_megatron_cuts_columns_then_rows),
        cmocka_unit_test(test_megatron_cuts_grouped_attention),
        cmocka_unit_test(test_megatron_never_gathers_logits),
        cmocka_unit_test(test_the_search_shards_the_head),
        cmocka_unit_test(test_megatron_pairs_convolutions),
        cmocka_unit_test(test_megatron_keeps_single_layers_whole),
        cmocka_unit_test(test_gshard_exchanges_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
