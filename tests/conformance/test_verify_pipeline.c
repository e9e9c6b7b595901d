/* Pipelines of stages, replicas and microbatches, proved by running them; and wrong ones that must
 * be caught. */
#include "exec/exec.h"
#include "tests/support/pipeline_case.h"

static double error_of(const Case *c, ExecVerdict *verdict)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(c->plan->n_devices);
    g_autoptr(GError) error = NULL;
    exec_verify(backend, c->plan, c->graph, 3, EXEC_TOLERANCE, verdict, &error);
    assert_no_error(error);
    return verdict->error;
}

static void check_right(const char *name, const Case *c)
{
    g_auto(ExecVerdict) verdict = {0};
    error_of(c, &verdict);
    if (!verdict.right)
        fail_msg("%s: error %g of %s on rank %u, first wrong: %s", name, verdict.error,
                 verdict.where, verdict.rank, verdict.wrong_instr);
    assert_true(verdict.n_tensors > 2 * verdict.n_zero);
}

static void test_settings(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++)
        for (uint32_t uneven = 0; uneven < 2; uneven++) {
            Setting s = SETTINGS[i];
            s.uneven = uneven;
            g_auto(Case) c = case_new(&s);
            g_autofree char *name = g_strdup_printf("setting %u, uneven %u", i, uneven);
            check_right(name, &c);
        }
}

static uint32_t pick(GRand *rand, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(rand, (gint32)low, (gint32)high + 1);
}

static void test_random_pipelines(void **state)
{
    (void)state;
    static const Baseline inner[] = {BASELINE_DATA_PARALLEL, BASELINE_MEGATRON};
    static const SynthSchedule one_run[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_ZB_H1,
                                            SCHEDULE_ZB_H2};
    g_autoptr(GRand) rand = g_rand_new_with_seed(17);
    for (int round = 0; round < 32; round++) {
        const uint32_t p = pick(rand, 1, 3), r = pick(rand, 1, 3), n = pick(rand, 1, 2);
        const uint32_t chunks = p > 1 && g_rand_boolean(rand) ? 2 : 1;
        const uint32_t m = chunks > 1 ? p * pick(rand, 1, 2) : pick(rand, 1, 4);
        g_autofree char *cluster =
            g_strdup_printf("star:hosts=%u,bandwidth=1Gb/s,latency=5us", p * r * n);
        const Setting s = {.model = g_rand_boolean(rand) ? VIT : MOE,
                           .cluster = cluster,
                           .baseline = inner[pick(rand, 0, 1)],
                           .n_stages = p * chunks,
                           .n_groups = p,
                           .n_replicas = r,
                           .n_devices = n,
                           .n_microbatches = m,
                           .schedule = chunks > 1 ? SCHEDULE_INTERLEAVED
                                                  : one_run[pick(rand, 0, 3)],
                           .recompute = (Recompute)pick(rand, 0, 2),
                           .uneven = g_rand_boolean(rand)};
        g_auto(Case) c = case_new(&s);
        g_autofree char *name =
            g_strdup_printf("%s: %u stages on %u groups of %u x %u, %u microbatches",
                            s.model, s.n_stages, p, r, n, m);
        check_right(name, &c);
    }
}

/* Stages with different numbers of replicas and devices: the batch is cut again between them. */
static void test_other_widths(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_replicas, n_devices;
    } shape[][3] = {
        {{1, 2}, {3, 1}, {1, 1}}, {{2, 2}, {1, 3}, {4, 1}}, {{3, 1}, {2, 2}, {1, 4}}};
    for (uint32_t k = 0; k < G_N_ELEMENTS(shape); k++) {
        DeviceGroup group[3];
        uint32_t n = 0;
        for (uint32_t g = 0; g < 3; g++) {
            const uint32_t size = shape[k][g].n_replicas * shape[k][g].n_devices;
            group[g] = (DeviceGroup){shape[k][g].n_replicas, shape[k][g].n_devices,
                                     g_new(uint32_t, size), 1, 0};
            for (uint32_t i = 0; i < size; i++)
                group[g].device[i] = n++;
        }
        g_autofree char *cluster =
            g_strdup_printf("star:hosts=%u,bandwidth=1Gb/s,latency=5us", n);
        g_autoptr(GError) error = NULL;
        g_auto(Case) c = {.graph = model_build(VIT, 1, NULL, &error),
                          .cluster = cluster_load(cluster, &error)};
        assert_no_error(error);
        c.view = cluster_view(c.cluster, GRANULARITY_GPU);
        g_autoptr(Program) inner = inner_program(
            c.graph, c.view, k % 2 ? BASELINE_MEGATRON : BASELINE_DATA_PARALLEL);
        g_autofree uint16_t *stage = stages_of(c.graph, 3);
        const SynthPipeline pipeline = {.n_stages = 3,
                                        .n_microbatches = 2,
                                        .stage = stage,
                                        .n_groups = 3,
                                        .group = group,
                                        .schedule = SCHEDULE_1F1B};
        Program *program = synth_pipeline(inner, c.graph, &pipeline, &error);
        assert_no_error(error);
        c.plan = plan_of(c.graph, n, true, program);
        check_right(cluster, &c);
        g_autoptr(SimReport) report =
            sim_evaluate(c.plan, c.graph, c.view, "flow", &error);
        assert_no_error(error);
        assert_non_null(report);
        for (uint32_t g = 0; g < 3; g++)
            g_free(group[g].device);
    }
}

/* Without an all-reduce over the replicas, or with an inner one left out, numbers are wrong. */
static void test_wrong_pipelines_are_caught(void **state)
{
    (void)state;
    const Setting s = {VIT, STAR,          BASELINE_MEGATRON, 2,   2, 3, 2,
                       2,   SCHEDULE_1F1B, RECOMPUTE_NONE,    true};
    g_auto(Case) c = case_new(&s);
    Program *program = c.plan->program;
    uint32_t caught = 0;
    for (uint32_t i = 0; i < program->n; i++) {
        if (!program->instr[i].across)
            continue;
        const Instr kept = program->instr[i];
        /* An input is loaded again instead, which changes nothing. */
        program->instr[i] = program->instr[0];
        g_auto(ExecVerdict) verdict = {0};
        error_of(&c, &verdict);
        assert_false(verdict.right);
        program->instr[i] = kept;
        caught++;
    }
    assert_true(caught > 4);
}

/* A plan of a large model is proved on a small one, whose batch fits the microbatches. */
static void test_shrunk_pipeline(void **state)
{
    (void)state;
    const Setting s = {"vit:layers=2,global_batch=48",
                       STAR,
                       BASELINE_DATA_PARALLEL,
                       2,
                       2,
                       3,
                       2,
                       8,
                       SCHEDULE_1F1B,
                       RECOMPUTE_NONE,
                       true};
    g_auto(Case) c = case_new(&s);
    g_autoptr(GError) error = NULL;
    Graph *small = NULL;
    g_autoptr(Graph) again = model_build(s.model, 1, &c.plan->model, &error);
    assert_non_null(again);
    Plan *plan = exec_shrink_plan(c.plan, c.graph, NULL, &small, &error);
    assert_no_error(error);
    plan_free(c.plan);
    graph_free(c.graph);
    c.plan = plan;
    c.graph = small;
    check_right("shrunk", &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_random_pipelines),
        cmocka_unit_test(test_other_widths),
        cmocka_unit_test(test_wrong_pipelines_are_caught),
        cmocka_unit_test(test_shrunk_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
