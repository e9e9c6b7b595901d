/* Strategies: files, texts, and their layouts. */
#include "data/data.h"
#include "tests/support/strategy_text.h"
#include "tests/test.h"

#define MODEL "gpt2:layers=6,hidden=4,heads=2,ffn=4,seq=2,vocab=4,global_batch=8"

static Strategy parse(const char *text)
{
    Strategy strategy;
    g_autoptr(GError) error = NULL;
    strategy_init(&strategy);
    strategy_parse("s.yaml", text, strlen(text), &strategy, &error);
    assert_no_error(error);
    return strategy;
}

static void expect_refusal(const char *text, const char *part)
{
    Strategy strategy;
    g_autoptr(GError) error = NULL;
    strategy_init(&strategy);
    assert_false(strategy_parse("s.yaml", text, strlen(text), &strategy, &error));
    assert_error(error, KILTER_ERROR_INPUT, part);
}

static void test_file(void **state)
{
    (void)state;
    const Strategy s = parse("pp: 2\ntp: 2   # two\nschedule: gpipe\nlayers: [3, 3]\n"
                             "ranks: [[0, 1, 2, 3], [4, 5, 6, 7]]\nshares: [1, 2.5]\n"
                             "recompute: [full, none]\nsequence_parallel: on\n");
    assert_int_equal(s.pp, 2);
    assert_int_equal(s.dp, 0);
    assert_int_equal(s.schedule, SCHEDULE_GPIPE);
    assert_string_equal(s.layers, "3 3");
    assert_string_equal(s.ranks, "0 1 2 3; 4 5 6 7");
    assert_string_equal(s.recompute, "full none");
    g_autofree char *text = strategy_write(&s);
    const Strategy again = parse(text);
    assert_memory_equal(&s, &again, sizeof s);
    const Strategy usual = parse("recompute: none\nsequence_parallel: off\n");
    assert_true(strategy_is_default(&usual));
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal("pp: 2\nppp: 3\n", "s.yaml:2: ppp: unknown key; did you mean 'pp'?");
    expect_refusal("pp: two\n",
                   "s.yaml:1: pp: option 'pp': expected an integer from 0 to 65535");
    expect_refusal("pp: 2\npp: 3\n", "s.yaml:2: pp: given twice");
    expect_refusal("schedule: zigzag\n",
                   "expected one of gpipe, 1f1b, interleaved, zb-h1, zb-h2, "
                   "breadth-first, zb-v, v-half, v-min, dualpipev, dualpipe, got 'zigzag'");
    expect_refusal("recompute: some\n", "or one of none, full, selective, core_attn");
    expect_refusal("recompute: full+mlp\n", "and classes together as in core_attn+mlp");
    expect_refusal("layers: {a: 1}\n", "expected a value, a list or a list of lists");
    expect_refusal("shares: [1, -1]\n", "expected numbers from 1e-09 to 1e+09, got '-1'");
    expect_refusal("- pp\n", "expected keys of a strategy");
    expect_refusal("zero: 4\n", "expected an integer from 0 to 3");
}

static void lay_out(const char *text, StrategyLayout *layout, const char *part)
{
    const Strategy s = parse(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, 1, NULL, &error);
    assert_no_error(error);
    const bool good = strategy_lay_out(&s, graph, 8, layout, &error);
    if (part)
        assert_error(error, KILTER_ERROR_INPUT, part);
    else
        assert_no_error(error);
    assert_true(good == !part);
}

/* The model has 8 layers: the embedding, 6, the head. */
static void test_layout(void **state)
{
    (void)state;
    g_auto(StrategyLayout) even = {0}, own = {0};
    lay_out("pp: 2\ntp: 2\nmicro_batch: 2\nrecompute: full\n", &even, NULL);
    assert_int_equal(even.dp, 2);
    assert_int_equal(even.n_microbatches, 2);
    assert_int_equal(even.first[1], 4);
    assert_int_equal(even.first[2], 8);
    assert_int_equal(even.recompute[0], RECOMPUTE_NONE);
    assert_int_equal(even.recompute[1], RECOMPUTE_FULL);
    assert_int_equal(even.recompute[6], RECOMPUTE_FULL);
    assert_int_equal(even.recompute[7], RECOMPUTE_NONE);
    lay_out("pp: 2\ndp: 2\ntp: 2\nlayers: 2 4\nranks: 7 6 5 4; 3 2 1 0\nshares: 1 3\n"
            "recompute: full@0-2 selective@5\nsequence_parallel: off on\n",
            &own, NULL);
    assert_int_equal(own.first[1], 3);
    assert_int_equal(own.device[0], 7);
    assert_int_equal(own.device[7], 0);
    assert_close(own.share[1], 0.75, 1e-15);
    assert_int_equal(own.recompute[0], RECOMPUTE_FULL);
    assert_int_equal(own.recompute[3], RECOMPUTE_NONE);
    assert_int_equal(own.recompute[5], RECOMPUTE_SELECTIVE);
    assert_false(own.sequence[2]);
    assert_true(own.sequence[3]);
}

static void check_counts(const char *text, uint32_t n_layers, const uint32_t *count,
                         uint32_t n_stages)
{
    const Strategy s = parse(text);
    g_auto(StrategyLayout) layout = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *model = g_strdup_printf(
        "gpt2:layers=%u,hidden=4,heads=2,ffn=4,seq=2,vocab=4,global_batch=8", n_layers);
    g_autoptr(Graph) graph = model_build(model, 1, NULL, &error);
    assert_no_error(error);
    assert_true(strategy_lay_out(&s, graph, 8, &layout, &error));
    assert_int_equal(layout.n_stages, n_stages);
    for (uint32_t i = 0; i < n_stages; i++)
        assert_int_equal(layout.first[i + 1] - layout.first[i], count[i]);
}

/* Stages get equally many of all layers where they cannot of those between the first and the last;
 * of groups with several stages none gets two more layers than another. */
static void test_equal_layers(void **state)
{
    (void)state;
    check_counts("pp: 4\n", 6, (const uint32_t[]){2, 2, 2, 2}, 4);
    check_counts("pp: 4\n", 8, (const uint32_t[]){3, 2, 2, 3}, 4);
    check_counts("pp: 2\nschedule: interleaved\nvirtual_stages: 3\n", 6,
                 (const uint32_t[]){2, 1, 1, 1, 1, 2}, 6);
    check_counts("pp: 2\nschedule: zb-v\n", 6, (const uint32_t[]){2, 2, 2, 2}, 4);
    check_counts("pp: 4\nschedule: interleaved\n", 12,
                 (const uint32_t[]){3, 2, 2, 2, 1, 1, 1, 2}, 8);
    check_counts("pp: 4\nschedule: interleaved\n", 11,
                 (const uint32_t[]){2, 2, 2, 2, 1, 1, 1, 2}, 8);
    check_counts("pp: 4\nschedule: zb-v\n", 11,
                 (const uint32_t[]){2, 2, 2, 2, 1, 1, 1, 2}, 8);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"pp: 3\n", "expected a product of 8"},
        {"pp: 2\nvirtual_stages: 2\n", "interleaved takes more"},
        {"pp: 2\nlayers: 1 1\n", "add up to 8, or to 6 without the first and the last"},
        {"pp: 2\nlayers: 4 4\ncuts: 4\n", "expected layers or cuts, got both"},
        {"pp: 2\ncuts: 8\n", "stage 1 has no layer"},
        {"pp: 8\nvirtual_stages: 2\nschedule: interleaved\n", "has no layer"},
        {"micro_batch: 3\n", "to divide the global batch, 8"},
        {"micro_batch: 1\nmicrobatches: 2\n", "expected micro_batch or microbatches"},
        {"pp: 2\nranks: 0 1 2 3 4 5 6 7\n", "expected 2 lists"},
        {"pp: 2\nranks: 0 1 2 3; 4 5 6 6\n", "got 6 again"},
        {"pp: 2\nranks: 0 1 2 3; 4 5 6 8\n", "from 0 to 7 once, got 8"},
        {"shares: 1 2\n", "expected 8 numbers, one per replica, got 2"},
        {"recompute: full none\n", "for each of 1 stages, got 2"},
        {"recompute: full@3-9\n", "expected layers from 0 to 7"},
        {"cp: 3\n", "cp=3, tp=1: expected a product of 8"},
        {"cp: 2\nep: 3\n", "ep=3: expected a divisor of dp times cp=8"},
        {"ep: 3\n", "ep=3: expected a divisor of dp=8"},
        {"ep: 2\nshares: [1, 1, 1, 1, 1, 1, 1, 1]\n", "expected equal shares"},
        {"zero: 1\nzero_ranks: 3\n", "zero_ranks=3: expected a divisor of dp=8"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_auto(StrategyLayout) layout = {0};
        lay_out(wrong[i].text, &layout, wrong[i].part);
    }
}

static void lay_out_pipelines(const char *text, StrategyPipelines *pipelines,
                              const char *part)
{
    const Strategy s = parse(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, 1, NULL, &error);
    assert_no_error(error);
    const bool good = strategy_lay_out_pipelines(&s, graph, 8, pipelines, &error);
    if (part)
        assert_error(error, KILTER_ERROR_INPUT, part);
    else
        assert_no_error(error);
    assert_true(good == !part);
}

static void test_pipelines(void **state)
{
    (void)state;
    g_auto(StrategyPipelines) one = {0}, two = {0};
    lay_out_pipelines("pp: 2\n", &one, NULL);
    assert_int_equal(one.n, 1);
    assert_int_equal(one.pipeline[0].pp, 2);
    lay_out_pipelines("pipeline_layers: [[4, 2], [2, 1, 2, 1]]\npipeline_shares: [3, 1]\n"
                      "microbatches: 8\nrecompute: [full, none, none, full, none, none]\n"
                      "ranks: [[7, 6], [5, 4], [0], [1], [2], [3]]\n",
                      &two, NULL);
    const StrategyLayout *a = &two.pipeline[0], *b = &two.pipeline[1];
    assert_int_equal(two.n, 2);
    assert_int_equal(a->n_microbatches, 6);
    assert_int_equal(b->n_microbatches, 2);
    assert_int_equal(a->dp, 2);
    assert_int_equal(b->dp, 1);
    assert_int_equal(a->first[1], 5);
    assert_int_equal(b->first[3], 6);
    assert_int_equal(a->device[0], 7);
    assert_int_equal(b->device[3], 3);
    assert_int_equal(a->recompute[1], RECOMPUTE_FULL);
    assert_int_equal(b->recompute[1], RECOMPUTE_NONE);
    assert_int_equal(b->recompute[3], RECOMPUTE_FULL);
}

static void test_pipelines_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"pipeline_shares: [3, 1]\n", "expected pipeline_layers beside it"},
        {"pipeline_layers: [3, 3]\n", "expected two lists or more"},
        {"pipeline_layers: 6; 3 3\npp: 2\n", "pipeline_layers with pp: expected only"},
        {"pipeline_layers: 6; 3 3\nzero: 2\n", "expected zero=0 or zero=1"},
        {"pipeline_layers: 6; 3 3\n", "microbatches=1: pipeline 0 gets none"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\npipeline_shares: 1 1 1\n",
         "expected 2 numbers, one per pipeline, got 3"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\nranks: \"; 0 1 2; 3 4 5\"\n",
         "ranks: expected GPUs of stage 0 of pipeline 0, got none"},
        {"pipeline_layers: 6; 6; 6\nmicrobatches: 4\n", "no multiple of 3 pipelines"},
        {"pipeline_layers: 6; 3 2\nmicrobatches: 4\n", "pipeline 1: layers: expected 2"},
        {"pipeline_layers: 6; 2 2 2\nmicrobatches: 4\n", "pipeline 1: pp=3"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\nranks: 0 1; 2 3\n",
         "expected 3 lists, one per stage, got 2"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\nranks: 0 1; 2 3; 4\n",
         "for stage 1 of pipeline 1"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\nranks: 0 1; 2 3; 4 3\n",
         "got 3 again"},
        {"pipeline_layers: 6; 3 3\nmicrobatches: 4\nranks: 0 1; 2 3; 4 5\n",
         "once, got 6 of them"},
        {"pipeline_layers: 6;\nmicrobatches: 4\n", "expected layers of pipeline 1"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_auto(StrategyPipelines) pipelines = {0};
        lay_out_pipelines(wrong[i].text, &pipelines, wrong[i].part);
    }
    g_auto(StrategyLayout) layout = {0};
    lay_out("pipeline_layers: 6; 3 3\nmicrobatches: 4\n", &layout,
            "with the same stages");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_equal_layers),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_pipelines_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
