/* The memory of a strategy in AMP's search, compared with the peak of its program by the fidelity
 * `stage`. */
#include <math.h>

#include "synth/amp/steps.h"
#include "tests/support/amp_setup.h"

static double peak_bytes(const AmpSetup *s, const AmpOptions *options,
                         const AmpStrategy *strategy)
{
    GError *error = NULL;
    g_autoptr(Plan) plan = amp_setup_plan(s, options, strategy);
    g_autoptr(SimReport) report = sim_evaluate(plan, s->graph, s->view, "stage", &error);
    assert_no_error(error);
    double peak = 0;
    for (uint32_t j = 0; j < s->view->n_devices; j++)
        peak = fmax(peak, (double)report->memory_bytes[j]);
    return peak;
}

/* The least memory with which the search says that the strategy fits. */
static double expected_bytes(const AmpSetup *s, const AmpOptions *options,
                             const AmpStrategy *strategy)
{
    double low = 0, high = 1e13;
    for (uint32_t i = 0; i < 40; i++) {
        const double bytes = (low + high) / 2;
        for (uint32_t d = 0; d < s->devices->n_devices; d++)
            s->devices->memory[d] = bytes;
        *(synth_amp_cost(s->model, s->devices, options, strategy).fits ? &high : &low) =
            bytes;
    }
    return high;
}

typedef struct {
    uint32_t n;
    double off; /* sum of |log(expected / peak)| */
} Tally;

/* recompute: as in a strategy, or NULL. */
static void check_model(const char *name, const char *recompute, Tally *tally)
{
    GError *error = NULL;
    g_auto(AmpSetup) setup = amp_setup_new(name, "amp-het-cluster");
    for (uint32_t d = 0; d < setup.devices->n_devices; d++)
        setup.devices->memory[d] = 1e13;
    const AmpOptions options = {
        .schedule = SCHEDULE_1F1B, .faithful = true, .recompute = recompute};
    g_autoptr(GArray) found =
        synth_amp_search(setup.model, setup.devices, &options, AMP_SEARCH, NULL, &error);
    assert_no_error(error);
    for (guint i = 0; i < found->len; i += recompute ? 3 : 1) {
        const AmpStrategy *s = &g_array_index(found, AmpCandidate, i).strategy;
        if (recompute && s->dp * s->mbs == setup.model->global_batch)
            continue; /* updates free gradients before others are made */
        const double peak = peak_bytes(&setup, &options, s),
                     expected = expected_bytes(&setup, &options, s);
        /* The search leaves out gradients that live beside the kept activations, which matters
         * where many devices share large microbatches. */
        const double most =
            recompute ? 1.35 : 1.25; /* all of a layer that runs again at once */
        if (!(expected >= 0.7 * peak && expected <= most * peak))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s, %s: pp %u, dp %u, tmp %u, mbs %u: expected %g bytes, peak "
                         "%g",
                         name, recompute ? recompute : "none", s->pp, s->dp, s->tmp,
                         s->mbs, expected, peak);
        tally->n++;
        tally->off += fabs(log(expected / peak));
    }
}

static void test_memory(void **state)
{
    (void)state;
    static const char *const models[] = {
        "gpt2:layers=4,hidden=256,ffn=1024,seq=128,vocab=1024",
        "gpt2:layers=4,hidden=256,ffn=1024,seq=128,vocab=8192,precision=mixed",
        "transgan:layers=3,upsample=4,precision=mixed"};
    Tally tally = {0};
    for (uint32_t i = 0; i < G_N_ELEMENTS(models); i++)
        check_model(models[i], NULL, &tally);
    assert_true(tally.n > 150);
    assert_at_most(tally.off / tally.n, 0.06);
}

/* The same with every class of recomputation that programs run: each keeps as much as its program
 * does. */
static void test_recomputation(void **state)
{
    (void)state;
    static const char *const mode[] = {"full",
                                       "selective",
                                       "core_attn",
                                       "layernorm",
                                       "mlp",
                                       "alternate",
                                       "core_attn+layernorm+mlp",
                                       "mlp@1-2 full@3"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(mode); i++) {
        Tally tally = {0};
        check_model("gpt2:layers=4,hidden=256,ffn=1024,seq=128,vocab=1024", mode[i],
                    &tally);
        check_model(
            "llama:layers=4,hidden=256,heads=16,kv_heads=16,ffn=1024,seq=512,vocab=1024,"
            "global_batch=32",
            mode[i], &tally);
        print_message("%s: %u strategies, %.1f %% off\n", mode[i], tally.n,
                      100 * tally.off / tally.n);
        assert_at_most(tally.off / tally.n, 0.12);
    }
}

/* Layers that are alike have equal times in all rows, and the blocks of a model that lie inside are
 * alike in each pass. */
static void test_alike(void **state)
{
    (void)state;
    enum { BLOCKS = 8 };
    g_auto(AmpSetup) setup = amp_setup_new(
        "gpt2:layers=8,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=64",
        "amp-het-cluster");
    const AmpModel *model = setup.model;
    const uint32_t n = model->n_layers, *like = model->steps->like;
    const size_t rows = (size_t)model->n_types * model->n_degrees * model->n_sizes;
    assert_true(n >= BLOCKS);
    for (uint32_t q = 0; q < AMP_PASSES * n; q++) {
        const uint32_t p = like[q];
        assert_true(p <= q && p / n == q / n && like[p] == p);
        for (size_t r = 0; q / n == AMP_BACKWARD && r < rows; r++)
            if (p == like[q - n] + n)
                assert_true(model->time_s[r * n + p % n] == model->time_s[r * n + q % n]);
    }
    for (uint32_t pass = 0; pass < AMP_PASSES; pass++) {
        uint32_t most = 0, of[64] = {0};
        for (uint32_t l = 0; l < n; l++)
            most = MAX(most, ++of[like[pass * n + l] % n]);
        assert_true(most >= BLOCKS - 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
