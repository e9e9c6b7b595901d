/* Devices that do the same are simulated as one (sim/tasks/team.h). Where all have the same place
 * in the network, the iteration takes as long as if each was simulated on its own, also beside a
 * slower device. Elsewhere, as groups that lie differently in machines, or a slower link, hold up
 * all that are simulated as one, it takes at most 2 % more or less, and 4 % where a zero-bubble
 * schedule leaves no time to wait. */
#include "tests/support/made_plan.h"
#include "tests/support/pipeline_case.h"

enum { CASES = 220 };

static const char *const NETWORKS[] = {
    "star:hosts=12,bandwidth=10Gb/s", /* all devices have the same place */
    "star:hosts=3,gpus=4,inner_bandwidth=3GB/s,inner_latency=9us",
    "star:hosts=6,gpus=2,inner_bandwidth=30GB/s",
    "rail:hosts=3,gpus=4,rails=4,inner_bandwidth=3GB/s,inner_latency=9us",
    "tree:hosts=12,leaf=6,spines=1,oversubscription=2",
    "tree:hosts=6,gpus=2,leaf=2,pod=1,spines=1,oversubscription=2,inner_bandwidth=9GB/s",
};

typedef struct {
    double one_s, all_s; /* folded, and each device on its own */
} Times;

static Times times_of(const Case *c, const char *slow_link)
{
    Times times;
    for (uint32_t separate = 0; separate < 2; separate++) {
        SimOptions options;
        g_autoptr(GError) error = NULL;
        sim_options_init(&options);
        options.separate = separate;
        assert_true(sim_options_set(&options, "slow_link", slow_link, &error));
        g_autoptr(SimReport) report =
            sim_evaluate_with(c->plan, c->graph, c->view, "flow", &options, &error);
        assert_no_error(error);
        *(separate ? &times.all_s : &times.one_s) = report->iteration_time_s;
    }
    return times;
}

static void test_folded_and_unfolded(void **state)
{
    uint32_t n_alike = 0;
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        Setting setting = SETTINGS[seed % G_N_ELEMENTS(SETTINGS)];
        const uint32_t kind = seed / G_N_ELEMENTS(SETTINGS) % 3;
        const gint32 n = g_rand_int_range(random, 0, G_N_ELEMENTS(NETWORKS));
        setting.cluster = NETWORKS[n];
        g_auto(Case) c = case_new(&setting);
        g_autoptr(GError) error = NULL;
        g_autoptr(Topology) topology = topology_of_view(c.view, &error);
        assert_no_error(error);
        const TopologyLink *link =
            &topology->link[g_rand_int_range(random, 0, (gint32)topology->n_links)];
        g_autofree char *slow = g_strdup_printf(
            "%s>%s*3@0s", topology->node[link->from].name, topology->node[link->to].name);
        if (kind == 1)
            c.view->device[g_rand_int_range(random, 0, (gint32)c.view->n_devices)].rate /=
                3;
        const Times t = times_of(&c, kind == 2 ? slow : "");
        const bool alike = kind < 2 && n == 0;
        const bool tight =
            setting.schedule == SCHEDULE_ZB_H1 || setting.schedule == SCHEDULE_ZB_H2;
        assert_close(t.one_s, t.all_s, alike ? 1e-9 : tight ? 0.04 : 0.02);
        n_alike += alike;
    }
    assert_at_most(15, n_alike);
}

/* Devices that work on a sample together are one, however its rounding gives it to one of them. */
static void test_one_lane_per_stage(void **state)
{
    static const char *const SET[] = {"pp=2 dp=2 tp=2 micro_batch=1",
                                      "pp=2 tp=2 cp=2 micro_batch=1",
                                      "pp=2 tp=4 micro_batch=1 sequence_parallel=on"};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SET); i++) {
        g_auto(Made) made = made_plan(
            "manual",
            "gpt2:layers=2,hidden=16,heads=4,ffn=24,seq=8,vocab=24,global_batch=8",
            "star:hosts=8", SET[i]);
        const Case c = {made.graph, made.cluster, made.view, made.plan};
        g_autoptr(SimReport) report =
            sim_evaluate(made.plan, made.graph, made.view, "stage", NULL);
        assert_int_equal(report->timeline->n_lanes, 2);
        const Times t = times_of(&c, "");
        assert_close(t.one_s, t.all_s, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded_and_unfolded),
        cmocka_unit_test(test_one_lane_per_stage),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
