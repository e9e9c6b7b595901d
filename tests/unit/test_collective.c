/* The formulas of sim_collective_s against numbers worked out by hand. */
#include "sim/sim.h"
#include "tests/test.h"

enum { N = 4 };

/* Four devices; latency 0.5 s and 100 B/s for every kind. */
static void setup(ClusterView *view)
{
    memset(view, 0, sizeof *view);
    view->n_devices = N;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        view->collective[kind] = (LinkCost){0.5, 100};
}

static void test_formulas(void **state)
{
    ClusterView view;
    const double bytes = 800, from = 0.4, to = 0.7; /* 8 s for the whole tensor */

    (void)state;
    setup(&view);
    const double want[COLLECTIVES] = {
        [COLLECTIVE_ALL_REDUCE] = 0.5 + 2 * 3. / 4 * 8,
        [COLLECTIVE_ALL_GATHER] = 0.5 + 3 * 0.4 * 8,
        [COLLECTIVE_GROUPED_ALL_GATHER] = 4 * 0.5 + 8,
        [COLLECTIVE_REDUCE_SCATTER] = 0.5 + 3 * 0.7 * 8,
        [COLLECTIVE_GROUPED_REDUCE_SCATTER] = 4 * 0.5 + 8,
        [COLLECTIVE_ALL_TO_ALL] = 0.5 + 0.7 * 3. / 4 * 8,
    };
    for (int kind = 0; kind < COLLECTIVES; kind++)
        assert_close(sim_collective_s(&view, (Collective)kind, bytes, from, to),
                     want[kind], 1e-12);
    assert_close(sim_collective_s(&view, COLLECTIVE_ALL_TO_ALL, bytes, to, from),
                 want[COLLECTIVE_ALL_TO_ALL], 1e-12);
}

static void test_each_kind_has_its_own_link(void **state)
{
    ClusterView view;

    (void)state;
    setup(&view);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        view.collective[kind] = (LinkCost){kind + 1, 1e30};
        const bool grouped = kind == COLLECTIVE_GROUPED_ALL_GATHER ||
                             kind == COLLECTIVE_GROUPED_REDUCE_SCATTER;
        assert_close(sim_collective_s(&view, (Collective)kind, 8, 0.5, 0.5),
                     (kind + 1) * (grouped ? N : 1), 1e-12);
    }
}

static void test_latency_only(void **state)
{
    ClusterView view;

    (void)state;
    setup(&view);
    assert_close(sim_collective_s(&view, COLLECTIVE_ALL_REDUCE, 0, 1, 1), 0.5, 1e-12);
    assert_close(sim_collective_s(&view, COLLECTIVE_GROUPED_ALL_GATHER, 0, 1, 1), 2,
                 1e-12);
}

static void test_one_device_is_free(void **state)
{
    ClusterView view;

    (void)state;
    setup(&view);
    view.n_devices = 1;
    for (int kind = 0; kind < COLLECTIVES; kind++)
        assert_true(sim_collective_s(&view, (Collective)kind, 1e9, 1, 1) == 0);
}

/* HAP Sec. 2.5: grouped broadcasts win once shards are uneven enough. Padded and grouped
 * cost the same where a + (n-1) B V/w = n a + V/w, that is B = 1/(n-1) + a w / V = 1/3 +
 * 1/16. */
static void test_crossover(void **state)
{
    ClusterView view;
    const double bytes = 800, even = 1. / 3 + 1. / 16;
    const Collective pairs[2][2] = {
        {COLLECTIVE_ALL_GATHER, COLLECTIVE_GROUPED_ALL_GATHER},
        {COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_GROUPED_REDUCE_SCATTER}};

    (void)state;
    setup(&view);
    for (int i = 0; i < 2; i++) {
        const Collective padded = pairs[i][0], grouped = pairs[i][1];
        assert_close(sim_collective_s(&view, padded, bytes, even, even),
                     sim_collective_s(&view, grouped, bytes, even, even), 1e-12);
        assert_true(sim_collective_s(&view, padded, bytes, even - 0.01, even - 0.01) <
                    sim_collective_s(&view, grouped, bytes, even - 0.01, even - 0.01));
        assert_true(sim_collective_s(&view, padded, bytes, even + 0.01, even + 0.01) >
                    sim_collective_s(&view, grouped, bytes, even + 0.01, even + 0.01));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_each_kind_has_its_own_link),
        cmocka_unit_test(test_latency_only),
        cmocka_unit_test(test_one_device_is_free),
        cmocka_unit_test(test_crossover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
