/* Recomputation chosen by layer: the order of layers, and plans limited by memory. */
#include <glib/gstdio.h>

#include "data/data.h"
#include "exec/exec.h"
#include "synth/planners/planner.h"
#include "synth/train/again.h"
#include "tests/test.h"

static void test_text(void **state)
{
    (void)state;
    const uint32_t order[] = {4, 1, 2, 3};
    assert_null(again_text(order, 4, 0, "none"));
    assert_string_equal(again_text(order, 4, 1, "none"), "full@4-4");
    assert_string_equal(again_text(order, 4, 2, "none"), "full@1-1 full@4-4");
    assert_string_equal(again_text(order, 4, 2, "selective"),
                        "full@1-1 selective@2-3 full@4-4");
    assert_string_equal(again_text(order, 4, 4, "selective"), "full@1-4");
}

/* Layers with experts take fewer or more FLOPs per saved byte than dense ones; either way layers of
 * a kind come together, and the first and last layers of the model are left out. */
static void test_order(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("bert-moe:layers=6,hidden=16,heads=2,ffn=32,seq=8,vocab=32,"
                    "global_batch=8,experts=4,moe_every=2",
                    4, NULL, &error);
    assert_no_error(error);
    uint32_t n;
    g_autofree uint32_t *order = again_order(graph, &n);
    assert_int_equal(n, graph_n_layers(graph) - 2);
    for (uint32_t k = 0; k < n; k++)
        assert_in_range(order[k], 1, n);
    for (uint32_t k = 1; k < n; k++)
        if (k != n / 2) {
            assert_int_equal(order[k] % 2, order[k - 1] % 2);
            assert_true(order[k] > order[k - 1]);
        }
    assert_int_not_equal(order[0] % 2, order[n / 2] % 2);
}

/* Devices with `memory`: two machines of `small` GPUs each and one of `large` GPUs, which are twice
 * as fast. */
static char *write_cluster(const char *memory, uint32_t small, uint32_t large)
{
    g_autofree char *text = g_strdup_printf(
        "name: tight\n"
        "device_types:\n"
        "  - {name: slow, rate: 100 TFLOP/s, half_rate: 100 TFLOP/s, memory: %s}\n"
        "  - {name: fast, rate: 300 TFLOP/s, half_rate: 300 TFLOP/s, memory: %s}\n"
        "machines:\n"
        "  - {name: a, type: slow, gpus: %u, count: 2, inner: {link: nvlink3, count: "
        "12}, nic: ib-hdr}\n"
        "  - {name: h, type: fast, gpus: %u, inner: {link: nvlink4, count: 12}, nic: "
        "ib-hdr}\n",
        memory, memory, small, large);
    char *path = NULL;
    const int file = g_file_open_tmp("kilter-XXXXXX.yaml", &path, NULL);
    assert_true(file >= 0);
    g_close(file, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static Plan *plan_in(const char *model, const char *memory, uint32_t small,
                     uint32_t large, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_cluster(memory, small, large);
    g_autoptr(Cluster) cluster = cluster_load(path, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    planner_options_set(&options, "recompute", "auto", &error);
    assert_no_error(error);
    Plan *plan = planner_plan(planner_find("hap", NULL), model, path, view, &options,
                              graph, &error);
    assert_no_error(error);
    assert_true(plan->feasible);
    assert_at_most(plan->lower_bound_s, plan->iteration_time_s);
    assert_non_null(strstr(plan->bound_over, "with any layers recomputed"));
    g_unlink(path);
    return plan;
}

/* The chosen plan fits, is proved, and recomputes no more than needed: as memory grows, plans
 * become faster and recompute fewer layers. */
static void test_tight(void **state)
{
    (void)state;
    static const char model[] = "gpt2:layers=8,hidden=32,heads=4,ffn=64,seq=32,vocab=24,"
                                "global_batch=24,dropout=0.1";
    static const char *const memory[] = {"2400 KiB", "3200 KiB", "64 MiB"};
    double before_s = INFINITY;
    for (uint32_t i = 0; i < G_N_ELEMENTS(memory); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = NULL;
        g_autoptr(Plan) plan = plan_in(model, memory[i], 1, 1, &graph);
        assert_true((plan->strategy.recompute != NULL) == (i < 2));
        assert_at_most(plan->iteration_time_s, before_s * (1 + 1e-9));
        before_s = plan->iteration_time_s;
        g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
        g_auto(ExecVerdict) verdict = {0};
        exec_verify(backend, plan, graph, 3, EXEC_TOLERANCE, &verdict, &error);
        assert_no_error(error);
        assert_true(verdict.right);
    }
}

/* Llama-3.1-8B on 2 x 4 and 8 GPUs of 64 GiB, 2 sequences per GPU: some layers, not all. The fast
 * GPUs take most of the batch and the others most of the optimizer states; with the same ratios for
 * both, the iteration took 9.2 s. Without any limit of memory it takes 4.3 s. */
static void test_llama(void **state)
{
    (void)state;
    enum { SLOW, FAST = 2 };
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan =
        plan_in("llama:global_batch=32,seq=4096,precision=mixed", "64 GiB", 4, 8, &graph);
    assert_non_null(plan->strategy.recompute);
    assert_true(g_str_has_prefix(plan->strategy.recompute, "full@"));
    assert_string_not_equal(plan->strategy.recompute, "full@1-32");
    assert_int_equal(plan->n_segments, 2);
    const double *work = plan->ratio, *states = &plan->ratio[plan->n_devices];
    assert_true(work[FAST] > 5 * work[SLOW] && states[FAST] < 3 * states[SLOW]);
    assert_at_most(plan->iteration_time_s, 5.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_tight),
        cmocka_unit_test(test_llama),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
