/* What AMP's search expects a strategy to hold, and the peak of its program in the fidelity
 * `stage`. */
#include <math.h>

#include "synth/synth.h"
#include "tests/test.h"

static double peak_bytes(const Graph *graph, const ClusterView *view,
                         const AmpOptions *options, const AmpStrategy *strategy)
{
    GError *error = NULL;
    g_autoptr(Plan) plan = plan_new();
    const uint32_t n = view->n_devices;
    plan->program = synth_amp_program(graph, view, options, strategy, &error);
    assert_no_error(error);
    plan->n_devices = n;
    plan->n_segments = 1;
    plan->ratio = g_new(double, n);
    for (uint32_t j = 0; j < n; j++)
        plan->ratio[j] = 1.0 / n;
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    plan_round(plan, graph, &error);
    assert_no_error(error);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", &error);
    assert_no_error(error);
    double peak = 0;
    for (uint32_t j = 0; j < n; j++)
        peak = fmax(peak, (double)report->memory_bytes[j]);
    return peak;
}

/* The least memory with which the strategy is said to fit. */
static double expected_bytes(const AmpModel *model, AmpCluster *devices,
                             const AmpOptions *options, const AmpStrategy *strategy)
{
    double low = 0, high = 1e13;
    for (uint32_t i = 0; i < 40; i++) {
        const double bytes = (low + high) / 2;
        for (uint32_t d = 0; d < devices->n_devices; d++)
            devices->memory[d] = bytes;
        *(synth_amp_cost(model, devices, options, strategy).fits ? &high : &low) = bytes;
    }
    return high;
}

typedef struct {
    uint32_t n;
    double off; /* sum of |log(expected / peak)| */
} Tally;

static void check_model(const char *name, Tally *tally)
{
    GError *error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("amp-het-cluster", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(name, 16, NULL, &error);
    assert_no_error(error);
    g_autoptr(AmpModel) model = synth_amp_model(graph, view, NULL, &error);
    g_autoptr(AmpCluster) devices = synth_amp_cluster(view, &error);
    assert_no_error(error);
    for (uint32_t d = 0; d < devices->n_devices; d++)
        devices->memory[d] = 1e13;
    const AmpOptions options = {.schedule = SCHEDULE_1F1B, .faithful = true};
    g_autoptr(GArray) found =
        synth_amp_search(model, devices, &options, AMP_SEARCH, NULL, &error);
    assert_no_error(error);
    for (guint i = 0; i < found->len; i++) {
        const AmpStrategy *s = &g_array_index(found, AmpCandidate, i).strategy;
        const double peak = peak_bytes(graph, view, &options, s),
                     expected = expected_bytes(model, devices, &options, s);
        /* Gradients that are alive beside what is kept are not expected, which shows where many
         * devices share large micro-batches. */
        if (!(expected >= 0.7 * peak && expected <= 1.25 * peak))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s: pp %u, dp %u, tmp %u, mbs %u: expected %g bytes, peak %g",
                         name, s->pp, s->dp, s->tmp, s->mbs, expected, peak);
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
        check_model(models[i], &tally);
    assert_true(tally.n > 150);
    assert_at_most(tally.off / tally.n, 0.06);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
