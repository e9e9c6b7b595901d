/* HiDup's search and duplex programs, on random graphs and on its models. */
#include "tests/support/random_graph.h"
#include "tests/test.h"

#include "synth/synth.h"

static ClusterView *open_view(const char *name, Cluster **cluster)
{
    g_autoptr(GError) error = NULL;
    *cluster = cluster_load(name, &error);
    assert_no_error(error);
    return cluster_view(*cluster, GRANULARITY_GPU);
}

static double *even(const ClusterView *view)
{
    double *ratio = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] = 1.0 / view->n_devices;
    return ratio;
}

/* Makes a duplex program, and checks both programs. */
static void check_doubled(const Program *program, const Graph *graph)
{
    g_autoptr(GError) error = NULL;
    assert_true(program_check(program, graph, &error));
    assert_no_error(error);
    g_autoptr(Program) doubled = synth_duplex(program, graph, 2, &error);
    assert_no_error(error);
    assert_true(program_check(doubled, graph, &error));
    assert_no_error(error);
    /* Each op of the batch runs twice in alternation, everything else once. */
    uint32_t turns = 0, before = 0;
    for (uint32_t i = 0; i < doubled->n; i++) {
        const Instr *instr = &doubled->instr[i];
        if (instr->kind != INSTR_COMPUTE || instr->microbatch == PROGRAM_WHOLE)
            continue;
        turns += instr->microbatch != before;
        before = instr->microbatch;
    }
    assert_int_equal(turns % 2, 1);
}

static void test_models(void **state)
{
    (void)state;
    static const char *const models[] = {"bert-sgmoe:layers=2", "vit-switch:layers=2",
                                         "bert-base:layers=2,seq=64", "vgg19"};
    static const char *const clusters[] = {"hidup-1x4", "hidup-2x4-10"};
    for (uint32_t c = 0; c < G_N_ELEMENTS(clusters); c++) {
        Cluster *cluster;
        ClusterView *view = open_view(clusters[c], &cluster);
        g_autofree double *ratio = even(view);
        for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(Graph) graph =
                model_build(models[m], cluster_gpus(cluster), NULL, &error);
            assert_no_error(error);
            SynthResult result;
            assert_true(synth_hidup(graph, view, ratio, NULL, &result, &error));
            assert_no_error(error);
            assert_true(result.optimal);
            check_doubled(result.program, graph);
            synth_result_clear(&result);
            for (Baseline b = BASELINE_DATA_PARALLEL; b <= BASELINE_ZERO_EXPERT; b++) {
                assert_true(synth_baseline(graph, view, ratio, b, &result, &error));
                check_doubled(result.program, graph);
                synth_result_clear(&result);
            }
        }
        cluster_view_free(view);
        cluster_free(cluster);
    }
}

/* On one device many choices take equally long: those that differ by the rounding of sums leave one
 * label. */
static void test_equal_labels(void **state)
{
    g_autoptr(GError) error = NULL;
    (void)state;
    Cluster *cluster = cluster_load("hidup-1x8", &error);
    assert_no_error(error);
    ClusterView *view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) graph = model_build("gpt2", cluster_gpus(cluster), NULL, &error);
    assert_no_error(error);
    const double ratio = 1;
    SynthResult result;
    assert_true(synth_hidup(graph, view, &ratio, NULL, &result, &error));
    assert_no_error(error);
    assert_int_equal(view->n_devices, 1);
    assert_true(result.labels <= 80 * result.states); /* 163 if rounding counts */
    synth_result_clear(&result);
    cluster_view_free(view);
    cluster_free(cluster);
}

static double believed_s(const Graph *graph, const ClusterView *view,
                         double communication)
{
    g_autoptr(GError) error = NULL;
    g_autofree double *ratio = even(view);
    const SynthHidupOptions options = {.communication = communication};
    SynthResult result;
    assert_true(synth_hidup(graph, view, ratio, &options, &result, &error));
    assert_no_error(error);
    const double time_s = result.time_s;
    synth_result_clear(&result);
    return time_s;
}

static void slow(LinkCost *link, double factor)
{
    link->latency_s *= factor;
    link->bandwidth /= factor;
}

/* Prices collectives by pieces, as their lines do. */
static void cut_in_pieces(ClusterView *view, CollectivePiece *piece)
{
    for (uint32_t k = 0; k < COLLECTIVES_PRICED; k++) {
        piece[k] = (CollectivePiece){INFINITY, view->collective[k]};
        view->pieces[k] = (CollectivePieces){.n = 1, .piece = &piece[k]};
    }
}

/* Assuming longer communication is searching for a cluster where it takes longer; the cluster
 * itself is unchanged. */
static void test_communication(void **state)
{
    (void)state;
    static const double more[] = {-0.5, 1, 7};
    for (uint32_t i = 0; i < G_N_ELEMENTS(more); i++) {
        Cluster *right, *slower;
        ClusterView *view = open_view("hidup-2x4-10", &right);
        cluster_view_free(open_view("hidup-2x4-10", &slower));
        for (uint32_t k = 0; k < COLLECTIVES_PRICED; k++)
            slow(&slower->collective[k], 1 + more[i]);
        for (uint32_t m = 0; m < slower->n_machines; m++)
            slow(&slower->machine[m].inner, 1 + more[i]);
        ClusterView *slow_view = cluster_view(slower, GRANULARITY_GPU);
        g_autoptr(Graph) graph = model_build("bert-sgmoe:layers=2", 8, NULL, NULL);
        assert_close(believed_s(graph, view, more[i]), believed_s(graph, slow_view, 0),
                     1e-9);
        assert_true(believed_s(graph, view, more[i]) != believed_s(graph, view, 0));
        CollectivePiece piece[COLLECTIVES_PRICED];
        cut_in_pieces(view, piece);
        for (uint32_t again = 0; again < 2; again++)
            assert_close(believed_s(graph, view, more[i]),
                         believed_s(graph, slow_view, 0), 1e-9);
        memset(view->pieces, 0, sizeof view->pieces);
        cluster_view_free(view);
        cluster_view_free(slow_view);
        cluster_free(right);
        cluster_free(slower);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    Cluster *cluster;
    ClusterView *view = open_view("hidup-1x4", &cluster);
    g_autofree double *ratio = even(view);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) odd = model_build("vit:layers=1,global_batch=5", 4, NULL, &error);
    SynthResult result;
    assert_true(
        synth_baseline(odd, view, ratio, BASELINE_DATA_PARALLEL, &result, &error));
    assert_null(synth_duplex(result.program, odd, 2, &error));
    assert_error(error, KILTER_ERROR_INPUT, "cannot be cut in two microbatches");
    synth_result_clear(&result);
    cluster_view_free(view);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models), cmocka_unit_test(test_equal_labels),
        cmocka_unit_test(test_communication), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
