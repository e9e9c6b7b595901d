/* Neighbours of a strategy: more runs of layers on each device, which may change with the number
 * of stages, and keys that are asked for stay as they are. */
#include "synth/auto/neighbours.h"
#include "tests/test.h"

static const Strategy START = {.pp = 4,
                               .dp = 4,
                               .tp = 2,
                               .micro_batch = 1,
                               .schedule = SCHEDULE_INTERLEAVED,
                               .virtual_stages = 2,
                               .cuts = "3 5 7 9 11 13 15"};

/* How many neighbours have so many stages and runs on each device; they are cut evenly. */
static uint32_t count(const Strategy *at, const PlannerOptions *asked, uint32_t pp,
                      uint32_t runs)
{
    const TechniqueNeeds has = {.attention = true, .scores = true};
    uint32_t n = 0, row = 0;
    Strategy next;
    while (neighbour_next(at, asked, has, &row, &next)) {
        if (next.pp != pp || next.virtual_stages != runs)
            continue;
        assert_true(!next.cuts || (next.pp == at->pp && runs == at->virtual_stages));
        n++;
    }
    return n;
}

static void test_virtual_stages(void **state)
{
    (void)state;
    PlannerOptions asked;
    planner_options_init(&asked);
    assert_int_equal(count(&START, &asked, 4, 4), 1);
    assert_int_equal(count(&START, &asked, 8, 1), 1);
    Strategy plain = START;
    plain.schedule = SCHEDULE_1F1B;
    plain.virtual_stages = 1;
    assert_int_equal(count(&plain, &asked, 4, 2), 0);
    assert_true(planner_options_set(&asked, "virtual_stages", "2", NULL));
    assert_int_equal(count(&START, &asked, 4, 4), 0);
    assert_true(count(&START, &asked, 4, 2) > 0);
}

/* Of rings, larger and larger groups of neighbours exchange heads; without cp none do. */
static void test_rings(void **state)
{
    (void)state;
    static const Strategy OF[] = {
        {.dp = 1, .cp = 8, .cp_comm = CP_COMM_P2P},
        {.dp = 1, .cp = 8, .cp_comm = CP_COMM_A2A_P2P, .a2a_ranks = 2},
        {.dp = 1, .cp = 2, .cp_comm = CP_COMM_A2A_P2P, .a2a_ranks = 2},
        {.dp = 1, .cp = 8}};
    PlannerOptions asked;
    planner_options_init(&asked);
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        const TechniqueNeeds has = {.attention = true};
        uint32_t larger = 0, row = 0;
        Strategy next;
        while (neighbour_next(&OF[i], &asked, has, &row, &next)) {
            larger |= next.cp == OF[i].cp && next.a2a_ranks > OF[i].a2a_ranks
                          ? next.a2a_ranks
                          : 0;
            assert_true(next.cp > 1 ||
                        (!next.a2a_ranks && next.cp_comm == CP_COMM_ALLGATHER));
        }
        assert_int_equal(larger, i == 0 ? 2 : i < 3 ? 4 : 0);
    }
}

/* A strategy that says how many microbatches there are has neighbours with half and twice as many,
 * and none that also says their size. */
static void test_microbatches(void **state)
{
    (void)state;
    const TechniqueNeeds has = {.attention = true};
    const Strategy at = {.pp = 2, .dp = 2, .tp = 2, .microbatches = 8};
    PlannerOptions asked;
    planner_options_init(&asked);
    uint32_t row = 0, half = 0, twice = 0;
    Strategy next;
    while (neighbour_next(&at, &asked, has, &row, &next)) {
        assert_int_equal(next.micro_batch, 0);
        half += next.microbatches == 4;
        twice += next.microbatches == 16;
    }
    assert_true(half > 0 && twice > 0);
}

/* A schedule that goes there and back has its own two runs on each device and few neighbours. */
static void test_back(void **state)
{
    (void)state;
    const TechniqueNeeds has = {.attention = true};
    PlannerOptions asked;
    planner_options_init(&asked);
    uint32_t row = 0, found = 0, further = 0;
    Strategy next, at = START;
    while (neighbour_next(&START, &asked, has, &row, &next))
        if (next.schedule == SCHEDULE_ZB_V) {
            assert_true(next.pp == 4u << found && next.virtual_stages == 0 && !next.cuts);
            at = next;
            found++;
        }
    assert_int_equal(found, 2);
    for (row = 0; neighbour_next(&at, &asked, has, &row, &next); further++)
        assert_true(next.pp == 16 && next.schedule == SCHEDULE_ZB_V);
    assert_int_equal(further, 1);
    assert_true(planner_options_set(&asked, "virtual_stages", "2", NULL));
    for (row = 0; neighbour_next(&START, &asked, has, &row, &next);)
        assert_int_equal(next.schedule, START.schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual_stages), cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_back), cmocka_unit_test(test_rings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
