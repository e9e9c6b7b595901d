/* Rounds of steps after which replicas exchange (sync_every): the time of a step is the mean of its
 * round, by durations that can be worked out by hand. */
#include "tests/support/made_plan.h"

#define MODEL   "synthetic:layers=12,forward=10ms,backward=20ms,gradient=28MB"
#define CLUSTER "star:hosts=8,bandwidth=10Gb/s,latency=5us"

static double time_of(const Made *made, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) report =
        sim_evaluate(made->plan, made->graph, made->view, fidelity, &error);
    assert_no_error(error);
    for (uint32_t j = 0; j < report->n_devices; j++)
        assert_close(report->busy_s[j] + report->comm_busy_s[j] + report->idle_s[j],
                     report->iteration_time_s, 1e-9);
    return report->iteration_time_s;
}

static void test_mean(void **state)
{
    (void)state;
    static const char *const fidelity[] = {"stage", "flow"};
    g_auto(Made) each = made_plan("manual", MODEL, CLUSTER, "");
    for (uint32_t every = 2; every <= 500; every *= 5) {
        g_autofree char *set = g_strdup_printf("sync_every=%u", every);
        g_auto(Made) round = made_plan("manual", MODEL, CLUSTER, set);
        for (uint32_t f = 0; f < G_N_ELEMENTS(fidelity); f++) {
            const double exchange_s = time_of(&each, fidelity[f]);
            assert_true(exchange_s > 0.5);
            assert_close(time_of(&round, fidelity[f]), 0.36 + (exchange_s - 0.36) / every,
                         1e-9);
        }
    }
}

/* Replicas that divide states exchange in every step, sets of them once a round. */
static void test_sets(void **state)
{
    (void)state;
    static const char *const model =
        "gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=16";
    g_auto(Made) each = made_plan("manual", model, CLUSTER, "zero=3 zero_ranks=4");
    g_auto(Made) round =
        made_plan("manual", model, CLUSTER, "zero=3 zero_ranks=4 sync_every=1000");
    g_auto(Made) apart = made_plan("manual", model, CLUSTER, "zero=3 zero_ranks=2");
    g_auto(Made) never =
        made_plan("manual", model, CLUSTER, "zero=3 zero_ranks=2 sync_every=1000");
    assert_true(time_of(&round, "stage") < time_of(&each, "stage"));
    /* gathers and scatters of four take longer than those of two, and remain */
    assert_true(time_of(&round, "stage") > time_of(&never, "stage"));
    assert_true(time_of(&never, "stage") < time_of(&apart, "stage"));
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const set[] = {"sync_every=4 tp=8", "sync_every=4 zero=1",
                                      "sync_every=4 cp=2"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(set); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", "gpt2:layers=2,global_batch=16,heads=16",
                                 CLUSTER, set[i], &error);
        assert_null(made.plan);
        assert_error(error, KILTER_ERROR_INPUT, "sync_every has no effect here");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
