/* Favourite children by the linear program, and Baechi's placements, on cases worked out by
 * hand. */
#include <math.h>

#include "balance/balance.h"
#include "synth/synth.h"
#include "tests/test.h"

enum { NONE = UINT32_MAX };

/* A parent of two children, one of which goes on for long: with the communication as long as the
 * tasks, that one is the favourite, and its own child is its. */
static void test_favourites(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    const double time_s[] = {1, 4, 1, 1};
    const BalanceArc arc[] = {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}};
    uint32_t favourite[4];
    assert_true(balance_favourites(4, time_s, 3, arc, favourite, &error));
    assert_no_error(error);
    assert_int_equal(favourite[0], 1);
    assert_int_equal(favourite[1], 3);
    assert_int_equal(favourite[2], NONE);
    assert_int_equal(favourite[3], NONE);
}

/* Two parents of one child: one of them keeps it. */
static void test_one_parent(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    const double time_s[] = {1, 5, 1};
    const BalanceArc arc[] = {{0, 2, 2}, {1, 2, 2}};
    uint32_t favourite[3];
    assert_true(balance_favourites(3, time_s, 2, arc, favourite, &error));
    assert_no_error(error);
    assert_int_equal(favourite[0], NONE);
    assert_int_equal(favourite[1], 2);
}

/* --- placements on two equal devices --- */

enum { DEVICES = 2, GROUPS = 4 };

typedef struct {
    TagList list;
    double seconds[3][DEVICES * DEVICES];
    TagArc arc[3];
    double forward_s[GROUPS * DEVICES], mean_s[GROUPS];
    uint64_t bytes[GROUPS];
    uint32_t first_arc[GROUPS + 1];
    Device device[DEVICES];
    ClusterView view;
} Example;

/* 0 -> 1 -> 3 and 0 -> 2, a transfer takes `transfer_s`. */
static void example_init(Example *e, const double *time_s, double transfer_s,
                         uint64_t memory)
{
    static const uint32_t from[] = {0, 0, 1};
    *e = (Example){.first_arc = {0, 0, 1, 2, 3}};
    for (uint32_t a = 0; a < 3; a++) {
        e->seconds[a][1] = e->seconds[a][2] = transfer_s;
        e->arc[a] = (TagArc){from[a], a + 1, e->seconds[a], transfer_s};
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        e->forward_s[g * DEVICES] = e->forward_s[g * DEVICES + 1] = e->mean_s[g] =
            time_s[g];
        e->bytes[g] = 10;
    }
    e->list = (TagList){GROUPS,    DEVICES,  3,      e->forward_s,
                        e->mean_s, e->bytes, e->arc, e->first_arc};
    e->device[0].memory_bytes = e->device[1].memory_bytes = memory;
    e->view = (ClusterView){.n_devices = DEVICES, .device = e->device};
}

static void check_placement(const Example *e, TagListRule rule, const uint32_t *favourite,
                            const uint32_t *expected)
{
    uint32_t device[GROUPS];
    synth_tag_list_place(&e->list, &e->view, rule, favourite, device);
    for (uint32_t g = 0; g < GROUPS; g++)
        assert_int_equal(device[g], expected[g]);
}

/* Each device is filled with half of the bytes. */
static void test_topo(void **state)
{
    (void)state;
    Example e;
    example_init(&e, (double[]){1, 1, 1, 1}, 1, 100);
    check_placement(&e, TAG_TOPO, NULL, (uint32_t[]){0, 0, 1, 1});
}

/* Group 1 starts at 1 on device 0, then group 2 there at 3, on device 1 at 1 + the transfer; of
 * groups 2 and 3, which could start at 3, the shorter one does. */
static void test_etf(void **state)
{
    (void)state;
    Example e;
    example_init(&e, (double[]){1, 2, 2, 1}, 0.5, 100);
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 0, 1, 0});
    example_init(&e, (double[]){1, 2, 2, 1}, 2.5, 100);
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 0, 1, 0});
    example_init(&e, (double[]){1, 2, 2, 1}, 3.5, 100);
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 0, 0, 0});
    example_init(&e, (double[]){1, 2, 2, 1}, 9, 100);
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 0, 0, 0});
}

/* Two groups have room on a device. */
static void test_memory(void **state)
{
    (void)state;
    Example e;
    example_init(&e, (double[]){1, 2, 2, 1}, 9, 20);
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 0, 1, 1});
    example_init(&e, (double[]){1, 2, 2, 1}, 9, 5); /* nowhere: in turn */
    check_placement(&e, TAG_ETF, NULL, (uint32_t[]){0, 1, 0, 1});
}

/* Group 2 is the favourite of group 0, so that group 1 may start on device 0 when it could
 * anywhere, and does so on the other one. */
static void test_sct(void **state)
{
    (void)state;
    Example e;
    example_init(&e, (double[]){1, 2, 2, 1}, 0.5, 100);
    check_placement(&e, TAG_SCT, (uint32_t[]){2, 3, NONE, NONE},
                    (uint32_t[]){0, 1, 0, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_favourites), cmocka_unit_test(test_one_parent),
        cmocka_unit_test(test_topo),       cmocka_unit_test(test_etf),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_sct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
