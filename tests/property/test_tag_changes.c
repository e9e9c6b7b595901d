/* Strategies that are changed group by group: the results of the previous one are reused, and every
 * number equals that of a fresh run bit for bit, and that of the fidelities. KILTER_ALL=1: ten
 * times as many changes. */
#include "synth/synth.h"
#include "tests/support/plan_of.h"
#include "tests/support/tag_setup.h"
#include "tests/test.h"

static const struct {
    const char *model, *cluster;
    uint32_t groups, changes;
} CASES[] = {
    {"vit:layers=2,hidden=8,heads=2,ffn=12,image=8,global_batch=24",
     "star:hosts=5,bandwidth=1Gb/s,latency=5us", 8, 300},
    {"bert-moe:layers=2,hidden=4,heads=2,ffn=6,seq=4,vocab=10,global_batch=24,experts=4",
     "hap-8", 12, 300},
    {"vgg19:image=32,global_batch=96,classes=10", "tag-testbed", 20, 200},
    {"tag-bert-small:global_batch=96", "tag-testbed", 30, 200},
};

enum { SIMULATED = 50 /* every n-th is also evaluated by the fidelities */ };

static Program *program_of(const Setup *s, const uint16_t *action)
{
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(s->graph);
    synth_tag_place(s->space, &s->work, action, placement);
    return synth_tag_program(s->space, &s->work, placement, true);
}

static void check_simulated(const Setup *s, const uint16_t *action, SimQuickTimes times)
{
    g_autoptr(Plan) plan =
        plan_of(s->graph, s->view->n_devices, false, program_of(s, action));
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    plan->n_splits = 0; /* fractional shares */
    assert_close(times.flow_s, simulated_s(s, plan, "flow"), 1e-9);
    assert_close(times.stage_s, simulated_s(s, plan, "stage"), 1e-9);
}

/* Changes one group or a run of groups, or undoes the last change. */
static void change(const Setup *s, GRand *rand, uint16_t *before, uint16_t *action)
{
    const uint32_t n = s->work.n_groups;
    const uint32_t kind = (uint32_t)g_rand_int_range(rand, 0, 8);
    if (kind == 0) {
        memcpy(action, before, n * sizeof *action);
        return;
    }
    memcpy(before, action, n * sizeof *action);
    const uint32_t at = (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
    const uint16_t to = (uint16_t)g_rand_int_range(rand, 0, (gint32)s->space->n_actions);
    for (uint32_t i = at; i < MIN(n, at + (kind == 1 ? 3 : 1)); i++)
        action[i] = to;
}

/* A program's times are those of the prices of now, whatever was asked before under others; cheaper
 * sums make nothing slower. */
static void check_prices(SimQuick *quick, const Program *program)
{
    static const SimQuickSums PRICES[] = {SIM_SUMS_EACH, SIM_SUMS_FUSED, SIM_SUMS_FREE,
                                          SIM_SUMS_EACH};
    double last_s = INFINITY;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PRICES); i++) {
        sim_quick_price_sums(quick, PRICES[i]);
        assert_int_equal(sim_quick_sums(quick), PRICES[i]);
        g_autoptr(SimQuick) fresh = sim_quick_another(quick);
        const SimQuickTimes a = sim_quick_times(quick, program),
                            b = sim_quick_times(fresh, program);
        assert_true(a.flow_s == b.flow_s && a.stage_s == b.stage_s &&
                    a.busy_s == b.busy_s);
        if (i < 3)
            assert_at_most(a.flow_s, last_s * (1 + 1e-12));
        last_s = a.flow_s;
    }
}

static void test_changes(void **state)
{
    (void)state;
    const uint32_t times_more = g_getenv("KILTER_ALL") ? 10 : 1;
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    for (uint32_t c = 0; c < G_N_ELEMENTS(CASES); c++) {
        g_auto(Setup) s =
            setup_new(CASES[c].model, CASES[c].cluster, CASES[c].groups, rand);
        g_autoptr(GError) error = NULL;
        const uint32_t n = s.view->n_devices;
        g_autofree double *ratio = g_new(double, n);
        g_autofree uint64_t *peak = g_new(uint64_t, n), *fresh = g_new(uint64_t, n);
        g_autofree uint16_t *action = g_new0(uint16_t, s.work.n_groups);
        g_autofree uint16_t *before = g_new0(uint16_t, s.work.n_groups);
        for (uint32_t j = 0; j < n; j++)
            ratio[j] = 1.0 / n;
        g_autoptr(SimQuick) known = sim_quick_new(
            s.graph, s.view, ratio, s.space->n_groups, s.space->group, &error);
        g_autoptr(SimQuick) whole = sim_quick_new(
            s.graph, s.view, ratio, s.space->n_groups, s.space->group, &error);
        assert_no_error(error);
        uint64_t tasks = 0, run = 0;
        for (uint32_t k = 0; k < CASES[c].changes * times_more; k++) {
            change(&s, rand, before, action);
            g_autoptr(Program) program = program_of(&s, action);
            sim_quick_forget(whole);
            const SimQuickTimes a = sim_quick_times(known, program),
                                b = sim_quick_times(whole, program);
            assert_true(a.flow_s == b.flow_s && a.stage_s == b.stage_s &&
                        a.busy_s == b.busy_s);
            assert_int_equal(b.n_run, b.n_tasks);
            assert_true(sim_quick_memory(known, program, peak) ==
                        sim_quick_memory(whole, program, fresh));
            assert_memory_equal(peak, fresh, n * sizeof *peak);
            if (k % SIMULATED == 0) {
                check_simulated(&s, action, a);
                check_prices(known, program);
            }
            tasks += a.n_tasks;
            run += a.n_run;
        }
        print_message("%s: %.0f %% of the tasks run again\n", CASES[c].model,
                      100.0 * (double)run / (double)tasks);
        assert_true(run < tasks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
