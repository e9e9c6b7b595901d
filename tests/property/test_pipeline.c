/* Pipelines of stages, replicas and microbatches: the builder's programs pass the checker, but not
 * with any deletion, and take the time worked out by hand. */
#include "sim/sim.h"
#include "tests/support/pipeline_case.h"
#include "tests/support/random_plan.h"

#include <math.h>

static double time_of(const Case *c, const char *fidelity, const char *set)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    g_auto(GStrv) pairs = g_strsplit(set, ",", -1);
    for (uint32_t i = 0; pairs[i]; i++) {
        g_auto(GStrv) pair = g_strsplit(pairs[i], "=", 2);
        sim_options_set(&options, pair[0], pair[1], &error);
        assert_no_error(error);
    }
    g_autoptr(SimReport) report =
        sim_evaluate_with(c->plan, c->graph, c->view, fidelity, &options, &error);
    assert_no_error(error);
    return report->iteration_time_s;
}

/* --- times by hand --- */

/* P stages of equal times f and b, M microbatches, negligible communication: (M + P - 1) (f + b)
 * under GPipe and 1F1B. Each of the 8 layers takes 10 and 20 ms on the whole batch. */
static void test_bubbles(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 8; p *= 2)
        for (uint32_t m = 1; m <= 16; m *= 2)
            for (int kind = 0; kind <= 1; kind++) {
                g_autofree char *cluster =
                    g_strdup_printf("star:hosts=%u,bandwidth=1e15B/s,latency=0us", p);
                const Setting s = {.cluster = cluster,
                                   .n_stages = p,
                                   .n_groups = p,
                                   .n_replicas = 1,
                                   .n_devices = 1,
                                   .n_microbatches = m,
                                   .schedule = kind ? SCHEDULE_1F1B : SCHEDULE_GPIPE};
                g_auto(Case) c = case_new(&s);
                const double each_s = 8 * 30e-3 / p / m;
                assert_close(time_of(&c, "stage", ""), (m + p - 1) * each_s, 1e-6);
                assert_close(time_of(&c, "flow", "network=crossbar"),
                             (m + p - 1) * each_s, 1e-6);
            }
}

/* With V stages per group the bubble is V times shorter (Narayanan et al. 2021, Sec. 2.2): M (f +
 * b) + (P - 1)(f + b) / V. */
static void test_interleaved_bubbles(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 4; p *= 2)
        for (uint32_t v = 2; v * p <= 8; v *= 2)
            for (uint32_t m = p; m <= 16; m *= 2) {
                g_autofree char *cluster =
                    g_strdup_printf("star:hosts=%u,bandwidth=1e15B/s,latency=0us", p);
                const Setting s = {.cluster = cluster,
                                   .n_stages = p * v,
                                   .n_groups = p,
                                   .n_replicas = 1,
                                   .n_devices = 1,
                                   .n_microbatches = m,
                                   .schedule = SCHEDULE_INTERLEAVED};
                g_auto(Case) c = case_new(&s);
                const double each_s = 8 * 30e-3 / p / m;
                assert_close(time_of(&c, "stage", ""), m * each_s + (p - 1) * each_s / v,
                             1e-6);
            }
}

/* Where gradients of weights are computed apart and take as long as a forward, only the way of the
 * first microbatch to the last stage is left of the bubble (Qi et al. 2024, Sec. 2.3): M (f + b) +
 * (P - 1) f with M >= 2 P - 1; the schedules differ where transfers take time. */
static void test_zero_bubbles(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 8; p *= 2)
        for (SynthSchedule kind = SCHEDULE_ZB_H1; kind <= SCHEDULE_ZB_H2; kind++) {
            g_autofree char *cluster =
                g_strdup_printf("star:hosts=%u,bandwidth=1e15B/s,latency=0us", p);
            const Setting s = {.cluster = cluster,
                               .n_stages = p,
                               .n_groups = p,
                               .n_replicas = 1,
                               .n_devices = 1,
                               .n_microbatches = 16,
                               .schedule = kind};
            g_auto(Case) c = case_new(&s);
            const double each_s = 8 * 10e-3 / p / s.n_microbatches;
            const double expected_s = (3 * s.n_microbatches + p - 1) * each_s;
            assert_close(time_of(&c, "stage", ""), expected_s, 1e-6);
            assert_close(time_of(&c, "flow", "network=crossbar"), expected_s, 1e-6);
        }
}

static Program *without(const Program *program, uint32_t skip)
{
    Program *copy = program_copy(program);
    copy->n--;
    memmove(&copy->instr[skip], &copy->instr[skip + 1],
            (copy->n - skip) * sizeof *copy->instr);
    return copy;
}

/* Recomputed ops could be left out. */
static void test_deletions_are_found(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        for (uint32_t skip = i; !SETTINGS[i].recompute && skip < c.plan->program->n;
             skip += 7) {
            g_autoptr(Program) less = without(c.plan->program, skip);
            if (program_check(less, c.graph, NULL)) {
                g_autofree char *text =
                    instr_text(&c.plan->program->instr[skip], c.graph);
                fail_msg("setting %u passes without instruction %u: %s", i, skip, text);
            }
        }
    }
}

static void swap(void *a, void *b, size_t size)
{
    g_autofree void *kept = g_memdup2(a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

/* Another order of the devices is the same cluster. */
static void test_names_of_devices_do_not_matter(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        const uint32_t n = c.view->n_devices;
        for (uint32_t j = 0; j < n; j++)
            c.view->device[j].rate *= 1 + 0.1 * (j % 5);
        const double stage_s = time_of(&c, "stage", "");
        const double flow_s = time_of(&c, "flow", "network=crossbar");
        for (uint32_t g = 0; g < c.plan->program->n_groups; g++) {
            const DeviceGroup *group = &c.plan->program->group[g];
            for (uint32_t k = 0; k < group->n_replicas * group->n_devices; k++)
                group->device[k] = n - 1 - group->device[k];
        }
        for (uint32_t j = 0; j < n / 2; j++)
            swap(&c.view->device[j], &c.view->device[n - 1 - j], sizeof(Device));
        assert_close(time_of(&c, "stage", ""), stage_s, 1e-9);
        assert_close(time_of(&c, "flow", "network=crossbar"), flow_s, 1e-9);
    }
}

/* A program that names its one group of all devices takes the time of one that names none. */
static void test_one_group_is_spmd(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    g_autoptr(GError) error = NULL;
    for (int round = 0; round < 20; round++) {
        g_autoptr(Graph) graph = model_build(round % 2 ? MOE : VIT, 1, NULL, &error);
        g_autoptr(Cluster) cluster = random_cluster(rand, 4);
        g_autoptr(ClusterView) view =
            cluster_view(cluster, round % 4 < 2 ? GRANULARITY_GPU : GRANULARITY_MACHINE);
        g_autoptr(Plan) plan = plan_of(
            graph, view->n_devices, false,
            inner_program(graph, view,
                          round % 3 ? BASELINE_DATA_PARALLEL : BASELINE_ZERO_EXPERT));
        g_autoptr(SimReport) analytic =
            sim_evaluate(plan, graph, view, "analytic", &error);
        assert_no_error(error);
        g_autofree uint32_t *device = g_new(uint32_t, view->n_devices);
        for (uint32_t j = 0; j < view->n_devices; j++)
            device[j] = j;
        program_add_group(plan->program, 1, view->n_devices, device);
        g_autoptr(SimReport) stage = sim_evaluate(plan, graph, view, "stage", &error);
        assert_no_error(error);
        assert_close(stage->iteration_time_s, analytic->iteration_time_s, 1e-9);
        for (uint32_t j = 0; j < view->n_devices; j++)
            assert_at_most(
                fabs((double)stage->memory_bytes[j] - (double)analytic->memory_bytes[j]),
                1); /* fractions add up in another order */
        assert_null(sim_evaluate(plan, graph, view, "analytic", &error));
        assert_error(error, KILTER_ERROR_INPUT, "for programs of one group");
        g_clear_error(&error);
    }
}

/* On a star every byte that is sent passes two links; with one device per stage only transfers
 * send. */
static void test_transfers_are_conserved(void **state)
{
    (void)state;
    const Setting s = {VIT,
                       "star:hosts=3,bandwidth=1Gb/s,latency=5us",
                       BASELINE_DATA_PARALLEL,
                       3,
                       3,
                       1,
                       1,
                       4,
                       SCHEDULE_1F1B,
                       RECOMPUTE_NONE,
                       false};
    g_auto(Case) c = case_new(&s);
    g_autoptr(GError) error = NULL;
    double sent = 0, carried = 0;
    for (uint32_t i = 0; i < c.plan->program->n; i++) {
        const Instr *instr = &c.plan->program->instr[i];
        if (instr->kind == INSTR_TRANSFER)
            sent += (double)tensor_bytes(graph_tensor(c.graph, instr->tensor)) /
                    s.n_microbatches;
    }
    g_autoptr(SimReport) report = sim_evaluate(c.plan, c.graph, c.view, "flow", &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < report->timeline->n_links; i++)
        carried += report->timeline->link[i].bytes;
    assert_true(sent > 0);
    assert_close(carried, 2 * sent, 1e-9);
}

/* 1f1b keeps the activations of fewer microbatches than gpipe; recomputation keeps fewer still. */
static void test_memory_of_schedules(void **state)
{
    (void)state;
    Setting s = {VIT,
                 "star:hosts=4,bandwidth=1Gb/s,latency=5us",
                 BASELINE_DATA_PARALLEL,
                 2,
                 2,
                 2,
                 1,
                 12,
                 SCHEDULE_GPIPE,
                 RECOMPUTE_NONE,
                 false};
    uint64_t peak[3];
    for (uint32_t i = 0; i < 3; i++) {
        s.schedule = i ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
        s.recompute = i == 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        g_auto(Case) c = case_new(&s);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimReport) report =
            sim_evaluate(c.plan, c.graph, c.view, "stage", &error);
        g_autoptr(SimReport) flow = sim_evaluate(c.plan, c.graph, c.view, "flow", &error);
        assert_no_error(error);
        peak[i] = report->memory_bytes[0];
        assert_close((double)flow->memory_bytes[0], (double)peak[i], 0.3);
    }
    assert_true(peak[1] < peak[0]);
    assert_true(peak[2] < peak[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubbles),
        cmocka_unit_test(test_interleaved_bubbles),
        cmocka_unit_test(test_zero_bubbles),
        cmocka_unit_test(test_deletions_are_found),
        cmocka_unit_test(test_names_of_devices_do_not_matter),
        cmocka_unit_test(test_one_group_is_spmd),
        cmocka_unit_test(test_transfers_are_conserved),
        cmocka_unit_test(test_memory_of_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
