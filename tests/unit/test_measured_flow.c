/* Collectives that were measured, as flows: alone they take the measured time at any size, and
 * together they share the links. */
#include "sim/network/measured.h"
#include "tests/support/synthetic_case.h"

#include <math.h>
#include <string.h>

/* Four machines of eight GPUs with links that are faster than the curves of some sizes, and slower
 * than those of others. */
static Cluster *measured_cluster(const char *machines)
{
    g_autoptr(GError) error = NULL;
    static const char *const KIND[] = {"all_reduce",         "all_gather",
                                       "grouped_all_gather", "reduce_scatter",
                                       "all_to_all",         "grouped_reduce_scatter"};
    g_autoptr(GString) text = g_string_new(machines);
    g_string_append(text, "\ncurves:\n");
    for (uint32_t k = 0; k < G_N_ELEMENTS(KIND); k++)
        g_string_append_printf(
            text,
            "- {collective: %s, device: h100-sxm, ranks: 8, hosts: 1, points: "
            "[{bytes: 1 kB, time: %u us}, {bytes: 1 MB, time: 31 us}, {bytes: 1 GB, "
            "time: "
            "%u ms}], source: s}\n"
            "- {collective: %s, ranks: 32, hosts: 4, points: [{bytes: 1 kB, time: 50 "
            "us}, "
            "{bytes: 1 MB, time: %u us}, {bytes: 1 GB, time: 40 ms}], source: s}\n",
            KIND[k], 9 + k, 2 + k, KIND[k], 91 + k);
    Cluster *cluster = cluster_parse("made.yaml", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

static const char *const PLACES[] = {
    "machines: [{device: h100-sxm, gpus: 8, inner: nvlink4}]",
    "machines: [{device: h100-sxm, gpus: 8, count: 4, inner: nvlink4, nic: ib-ndr}]",
};

static double time_s(const Case *c, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) report =
        sim_evaluate_with(c->plan, c->graph, c->view, fidelity, &c->options, &error);
    assert_no_error(error);
    return report->iteration_time_s;
}

static const struct {
    Collective kind, then;
} PROGRAMS[] = {
    {COLLECTIVE_ALL_REDUCE, COLLECTIVES},
    {COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER},
    {COLLECTIVE_GROUPED_REDUCE_SCATTER, COLLECTIVE_GROUPED_ALL_GATHER},
};

static void test_alone(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < G_N_ELEMENTS(PLACES); p++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(PROGRAMS); k++)
            for (double bytes = 1600; bytes < 4e9; bytes *= 3) {
                g_autofree char *model = g_strdup_printf(
                    "synthetic:layers=1,forward=0s,backward=0s,gradient=%.0fB", bytes);
                Case c = case_on(model, measured_cluster(PLACES[p]), GRANULARITY_GPU);
                program_free(c.plan->program);
                c.plan->program =
                    data_parallel(c.graph, PROGRAMS[k].kind, PROGRAMS[k].then);
                const double analytic_s = time_s(&c, "analytic");
                assert_true(analytic_s > 1e-6);
                assert_close(time_s(&c, "flow"), analytic_s, 1e-9);
                set(&c, "overlap", "off");
                assert_close(time_s(&c, "flow"), analytic_s, 1e-9);
                free_case(&c);
            }
}

/* All kinds by their lowering, among all ranks and in groups of one machine each. */
static void test_kinds(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = measured_cluster(PLACES[1]);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(SimAlone) alone = sim_alone_new(view, &error);
    assert_no_error(error);
    uint32_t device[32];
    for (uint32_t j = 0; j < 32; j++)
        device[j] = j;
    for (Collective kind = 0; (int)kind < COLLECTIVES_PRICED; kind++)
        for (double bytes = 500; bytes < 1e10; bytes *= 20) {
            const CurvePlace inside = {"h100-sxm", 8, 1};
            LinkCost line;
            assert_true(curves_line(&cluster->curves, kind, inside, bytes, &line));
            assert_close(sim_alone_collective_s(alone, kind, bytes, 8, 4, device),
                         sim_collective_over(line, 8, kind, bytes, 0.125, 0.125), 1e-12);
            assert_close(sim_alone_collective_s(alone, kind, bytes, 32, 1, device),
                         sim_collective_s(view, kind, bytes, 1.0 / 32, 1.0 / 32), 1e-12);
        }
}

/* Messages between machines take the line of transfers, where it is slower than the links and where
 * it is faster; two through one port share it; inside a machine the links count. */
static void test_sends(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    static const LinkCost LINE[] = {{33e-6, 4e9}, {1e-7, 9e12}};
    const uint32_t pair[] = {0, 8, 1, 16}, inside[] = {0, 1};
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINE); i++)
        for (double bytes = 100; bytes < 1e10; bytes *= 30) {
            g_autoptr(Cluster) cluster = measured_cluster(PLACES[1]);
            g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
            g_autoptr(SimAlone) before = sim_alone_new(view, &error);
            const double inside_s = sim_alone_send_s(before, bytes, 1, inside);
            cluster->transfer = LINE[i];
            g_autoptr(SimAlone) alone = sim_alone_new(view, &error);
            assert_no_error(error);
            const double one_s = LINE[i].latency_s + bytes / LINE[i].bandwidth;
            assert_close(sim_alone_send_s(alone, bytes, 1, pair), one_s, 1e-12);
            assert_close(sim_alone_send_s(alone, bytes, 1, inside), inside_s, 1e-12);
            const double two_s = sim_alone_send_s(alone, bytes, 2, pair);
            assert_true(two_s >= one_s && two_s <= 2 * one_s);
        }
}

/* Two at a time: small ones do not disturb one another, large ones take as long as one after the
 * other, and never less than alone or more than both. */
static void test_together(void **state)
{
    (void)state;
    double last = 1;
    for (double bytes = 1e3; bytes < 2e9; bytes *= 4) {
        g_autofree char *model = g_strdup_printf(
            "synthetic:layers=2,forward=0s,backward=0s,gradient=%.0fB", bytes);
        Case c = case_on(model, measured_cluster(PLACES[1]), GRANULARITY_GPU);
        const double both_s = time_s(&c, "flow");
        set(&c, "streams", "3");
        const double ratio = 2 * time_s(&c, "flow") / both_s;
        assert_true(ratio > 1 - 1e-9 && ratio < 2 + 1e-9);
        last = ratio;
        if (bytes < 1e4)
            assert_close(ratio, 1, 0.03);
        free_case(&c);
    }
    assert_close(last, 2, 0.1);
}

/* Links count the bytes that the messages have, however long they take. */
static void test_bytes(void **state)
{
    (void)state;
    for (double bytes = 1e4; bytes < 2e9; bytes *= 10) {
        g_autofree char *model = g_strdup_printf(
            "synthetic:layers=1,forward=0s,backward=0s,gradient=%.0fB", bytes);
        Case c = case_on(model, measured_cluster(PLACES[1]), GRANULARITY_GPU);
        set(&c, "algorithm", "all_reduce:ring");
        g_autoptr(SimReport) report = evaluate(&c);
        double inner = 0;
        for (uint32_t i = 0; i < report->timeline->n_links; i++)
            if (strchr(report->timeline->link[i].name, ':'))
                inner += report->timeline->link[i].bytes;
        assert_close(inner, 32 * 2 * (2 * 31.0 / 32) * 8 * floor(bytes / 8), 0.01);
        free_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_sends), cmocka_unit_test(test_together),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
