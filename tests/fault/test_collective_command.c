/* kilter collective from the command line: times worked out by hand, the same bytes for the same
 * seed, and refusals. */
#include "tests/support/program_json.h"

static double time_of(const Sandbox *box, const char *line)
{
    g_autofree char *whole = g_strdup_printf("collective %s --json", line);
    json_t *value = program_json(box, whole);
    const double seconds = number(value, "time_s");
    assert_true(json_array_size(json_object_get(value, "rank_times")) ==
                (size_t)json_integer_value(json_object_get(value, "ranks")));
    json_decref(value);
    return seconds;
}

static void test_times(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    assert_close(time_of(box, "all_reduce star:hosts=1024,bandwidth=10Gb/s,latency=5us "
                              "--bytes 100MB --algorithm ring"),
                 0.18030375, 1e-6);
    assert_close(time_of(box, "all_to_all tree:hosts=8,leaf=4,oversubscription=4 "
                              "--bytes 64MB"),
                 0.10242, 1e-6);
    assert_close(time_of(box, "broadcast hidup-1x4 --bytes 1GB --granularity machine"), 0,
                 0);
}

/* Late ranks make a ring end later by the same time; the seed decides how late they are. */
static void test_skew(void **state)
{
    static const char LINE[] =
        "collective all_reduce star:hosts=4 --bytes 10MB --skew 5ms --json --seed 7";
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) ran = program_run_good(box, LINE);
    g_auto(Ran) again = program_run_good(box, LINE);
    assert_string_equal(ran.out, again.out);
    json_t *value = json_of(ran.out);
    const double last_s = number(value, "last_arrival_s");
    assert_true(last_s > 0 && last_s < 5e-3);
    assert_close(number(value, "time_s") - last_s,
                 time_of(box, "all_reduce star:hosts=4 --bytes 10MB"), 1e-9);
    json_decref(value);
}

/* Uneven shares: padded to the largest or exact; servers and roots. w = 1.25 GB/s. */
static void test_shares(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
#define STAR "star:hosts=4,latency=0s --bytes 100MB "
    /* 3 rounds of the largest part: V/2 */
    assert_close(time_of(box, "all_gather " STAR "--shares 3,1,1,1 --algorithm ring"),
                 0.12, 1e-9);
    /* the first receives at least V/2 of each of the 3 others */
    assert_close(time_of(box, "grouped_all_gather " STAR "--shares 3,1,1,1 -a direct"),
                 0.12, 1e-9);
    assert_close(time_of(box, "reduce_scatter " STAR "--shares 1,1,1,3 --algorithm ring"),
                 0.12, 1e-9);
    /* 400 MB in all; the first sends half of it times half of that to others */
    assert_close(time_of(box, "all_to_all " STAR "--shares 3,1,1,1 --algorithm direct"),
                 0.08, 1e-9);
    /* whichever is the server, three send it everything */
    assert_close(time_of(box, "push " STAR "--root 2"), 0.24, 1e-9);
    assert_close(time_of(box, "push " STAR "--root all"), 0.06, 1e-9);
    assert_close(time_of(box, "push " STAR "--root all --shares 1,1,2,0"), 0.12, 1e-9);
    assert_close(time_of(box, "broadcast " STAR "--root 3 --algorithm direct"), 0.24,
                 1e-9);
#undef STAR
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "collective all_reduce star:hosts=4", 2, "expected --bytes");
    program_refuses(box, "collective all_reduce --bytes 1MB", 2, "expected KIND CLUSTER");
    program_refuses(box, "collective gather star:hosts=4 --bytes 1MB", 2, "'gather'");
    program_refuses(box, "collective all_reduce star:hosts=4 --bytes 1", 2, "--bytes");
    program_refuses(box, "collective all_reduce star:hosts=4 --bytes 1MB --skew 1", 2,
                    "--skew");
    program_refuses(box, "collective all_reduce star:hosts=4 --bytes 1MB -a rnig", 2,
                    "unknown algorithm 'rnig'");
    program_refuses(box, "collective all_to_all star:hosts=4 --bytes 1MB -a ring", 2,
                    "ring does not do all_to_all; expected one of pairwise, direct");
    program_refuses(box, "collective all_reduce star:hosts=4,bandwidth=0b/s --bytes 1MB",
                    2, "bandwidth");
    program_refuses(box, "collective send star:hosts=1 --bytes 1MB", 2, "2 ranks");
    program_refuses(box, "collective push star:hosts=2 --bytes 1MB --root 2", 2,
                    "root 2: there are 2 ranks");
    program_refuses(box, "collective all_gather star:hosts=2 --bytes 1MB --root 1", 2,
                    "all_gather has no root");
    program_refuses(box, "collective all_gather star:hosts=2 --bytes 1MB --shares 1", 2,
                    "a share for each of 2 ranks");
    program_refuses(box, "collective all_gather star:hosts=2 --bytes 1MB --shares 0,0", 2,
                    "--shares");
    program_refuses(box, "collective all_gather star:hosts=2 --bytes 1MB --shares 1,x", 2,
                    "--shares");
    program_refuses(box, "collective all_reduce star:hosts=2 --bytes 1MB --shares 1,2", 2,
                    "all_reduce has no shares");
    program_refuses(box, "collective send star:hosts=2 --bytes 1MB --granularity rack", 2,
                    "rack");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("collective_command", tests, NULL, NULL);
}
