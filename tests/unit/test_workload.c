/* The samples and tokens of an iteration are those that the model's inputs have, whatever op comes
 * first. */
#include "sim/sim.h"
#include "tests/support/made_plan.h"
#include "tests/test.h"

static void test_samples_and_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double samples, tokens;
    } CASE[] = {
        {"gpt2:layers=2,hidden=64,heads=2,ffn=64,seq=32,vocab=128,global_batch=16", 16,
         512},
        {"bert-base:layers=1,seq=32,global_batch=16", 16, 512},
        {"vit:layers=1,global_batch=16", 16, 0},
        {"vgg19:width=8,fc=64,global_batch=16", 16, 0},
        /* the first two read their word embeddings, which are the head's, before any input; small
         * models of files have 9 tokens */
        {"llama-3.2-1b:small=2,seq=32,global_batch=16", 16, 144},
        {"gemma-2-9b:small=2,seq=32,global_batch=16", 16, 144},
        {"llama-3.1-8b:small=2,seq=32,global_batch=16", 16, 144},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        Made made = made_plan("manual", CASE[i].model, "dgx-h100", "tp=1");
        const SimWorkload work = sim_workload(made.plan, made.graph, made.view);
        assert_true(work.samples == CASE[i].samples);
        assert_true(work.tokens == CASE[i].tokens);
        assert_int_equal(work.gpus, 8);
        made_clear(&made);
    }
}

/* However a pipeline divides the batch, its devices do the model's FLOPs once: nothing is computed
 * again, and every op of this model is cut along the samples. */
static void test_flops(void **state)
{
    (void)state;
    static const char *const SET[] = {"dp=8", "pp=2", "pp=2 microbatches=4",
                                      "pp=4 microbatches=8 dp=2", "pp=8 microbatches=8"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SET); i++) {
        Made made =
            made_plan("manual", "vit:layers=8,hidden=64,heads=4,ffn=128,global_batch=64",
                      "dgx-h100", SET[i]);
        const SimWorkload work = sim_workload(made.plan, made.graph, made.view);
        double flops = 0;
        for (OpId id = 0; id < graph_n_ops(made.graph); id++)
            if (graph_get_op(made.graph, id)->pass != PASS_UPDATE)
                flops += graph_op_flops(made.graph, id);
        assert_close(work.model_flops, flops, 1e-9);
        assert_close(work.run_flops, flops, 0.001);
        made_clear(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples_and_tokens),
                                       cmocka_unit_test(test_flops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
