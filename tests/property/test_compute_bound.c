/* The bound on every plan by computation alone is the optimum of a linear program: every op is
 * divided among the kinds of devices, no kind is busy for longer than the iteration. It is never
 * above that optimum, equals it with two kinds, and is close to it with more. */
#include "tests/test.h"

#include "balance/lp.h"
#include "data/data.h"
#include "sim/cost/op_kernels.h"
#include "sim/sim.h"

static const char *const DEVICE[] = {"h100-sxm", "a100-80g", "h20",      "l40s",
                                     "rtx-4090", "mi300x",   "b200",     "a40",
                                     "l4",       "gh200",    "v100-32g", "t4"};
static const char MODEL[] = "llama:layers=1,hidden=2048,heads=16,kv_heads=8,ffn=5632,"
                            "seq=1024,vocab=32000,global_batch=512,precision=fp16";

/* Seconds: the least time of the longest-busy kind. */
static double optimum_s(const Graph *graph, const ClusterView *view, uint32_t *n_kinds)
{
    enum { MOST = 8 }; /* kinds */
    g_autoptr(GError) error = NULL;
    g_autoptr(Lp) lp = lp_new(&error);
    assert_no_error(error);
    const uint32_t n_ops = graph_n_ops(graph), time = lp_column(lp, 0, INFINITY, 1);
    const Device *kind[MOST];
    double count[MOST] = {0};
    uint32_t n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        if (n == 0 || device_compare(kind[n - 1], &view->device[j]) != 0)
            kind[n++] = &view->device[j];
        count[n - 1]++;
    }
    g_autofree uint32_t *column = g_new(uint32_t, (size_t)n_ops * n + 1);
    g_autofree double *s = g_new(double, (size_t)n_ops *n + 1);
    double scale = 0;
    for (uint32_t k = 0; k < n; k++)
        for (OpId op = 0; op < n_ops; op++) {
            double once;
            s[k * n_ops + op] = kind[k]->stretch / kind[k]->gpus *
                                op_kernels_least_s(kind[k]->kernels, graph, op, &once);
            column[k * n_ops + op] = lp_column(lp, 0, INFINITY, 0);
            scale += k == 0 ? s[op] : 0;
        }
    for (OpId op = 0; op < n_ops; op++) {
        uint32_t own[MOST];
        double one[MOST];
        for (uint32_t k = 0; k < n; k++) {
            own[k] = column[k * n_ops + op];
            one[k] = 1;
        }
        lp_row(lp, 1, 1, n, own, one);
    }
    for (uint32_t k = 0; k < n; k++) {
        column[n * n_ops] = time;
        g_autofree uint32_t *own =
            g_memdup2(&column[k * n_ops], (n_ops + 1) * sizeof *own);
        g_autofree double *value = g_memdup2(&s[k * n_ops], (n_ops + 1) * sizeof *value);
        own[n_ops] = time;
        for (OpId op = 0; op < n_ops; op++)
            value[op] /= scale;
        value[n_ops] = -count[k];
        lp_row(lp, -INFINITY, 0, n_ops + 1, own, value);
    }
    assert_int_equal(lp_solve(lp, &error), LP_OPTIMAL);
    *n_kinds = n;
    return lp_objective(lp) * scale;
}

static void test_optimum(void **state)
{
    (void)state;
    enum { CASES = 60 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(17);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, 8, NULL, &error);
    assert_no_error(error);
    double worst = 1;
    for (uint32_t i = 0; i < CASES; i++) {
        const uint32_t kinds = 1 + i % 5, first = g_rand_int_range(rand, 0, 1000);
        g_autoptr(GString) word = g_string_new(NULL);
        for (uint32_t k = 0; k < kinds; k++)
            g_string_append_printf(word, "%s%dx%s@ib-ndr", k > 0 ? "+" : "",
                                   g_rand_int_range(rand, 1, 9),
                                   DEVICE[(first + 5 * k) % G_N_ELEMENTS(DEVICE)]);
        g_autoptr(Cluster) cluster = cluster_load(word->str, &error);
        assert_no_error(error);
        g_autoptr(ClusterView) plain = cluster_view(cluster, GRANULARITY_GPU);
        SimOptions options;
        sim_options_init(&options);
        g_autoptr(ClusterView) view = sim_options_view(&options, NULL, plain);
        assert_non_null(view);
        uint32_t n = 0;
        const double least_s = optimum_s(graph, view, &n),
                     bound_s = sim_compute_bound_s(graph, view);
        assert_true(bound_s <= least_s * (1 + 1e-6));
        if (n <= 2)
            assert_true(bound_s >= least_s * (1 - 1e-5));
        worst = fmin(worst, bound_s / least_s);
    }
    print_message("worst part of the optimum: %.4f\n", worst);
    assert_true(worst > 0.95);
}

/* Ops that follow from one another run one after the other, on however many GPUs. */
static void test_path(void **state)
{
    (void)state;
    static const char *const CLUSTER[] = {"8xh100-sxm", "64x8xh100-sxm@ib-ndr"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(
        "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=32,vocab=64,global_batch=8", 8, NULL,
        &error);
    assert_no_error(error);
    double bound_s[2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(Cluster) cluster = cluster_load(CLUSTER[i], &error);
        assert_no_error(error);
        g_autoptr(ClusterView) plain = cluster_view(cluster, GRANULARITY_GPU);
        SimOptions options;
        sim_options_init(&options);
        g_autoptr(ClusterView) view = sim_options_view(&options, NULL, plain);
        bound_s[i] = sim_compute_bound_s(graph, view);
    }
    assert_at_most(bound_s[0], 8 * bound_s[1]); /* all work divided: 64 times */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_optimum),
                                       cmocka_unit_test(test_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
