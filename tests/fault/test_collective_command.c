/* kilter collective from the command line: times that follow by hand, the same bytes for the
 * same seed, and what it refuses. */
#include <jansson.h>

#include "tests/support/program.h"

static double time_of(const Sandbox *box, const char *line)
{
    g_autofree char *whole = g_strdup_printf("collective %s --json", line);
    g_auto(Ran) ran = program_run_good(box, whole);
    json_t *value = json_loads(ran.out, 0, NULL);
    assert_non_null(value);
    const double seconds = json_number_value(json_object_get(value, "time_s"));
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

/* Ranks that come late make a ring end later by as much; a seed says how late. */
static void test_skew(void **state)
{
    static const char LINE[] =
        "collective all_reduce star:hosts=4 --bytes 10MB --skew 5ms --json --seed 7";
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) ran = program_run_good(box, LINE);
    g_auto(Ran) again = program_run_good(box, LINE);
    assert_string_equal(ran.out, again.out);
    json_t *value = json_loads(ran.out, 0, NULL);
    const double last_s = json_number_value(json_object_get(value, "last_arrival_s"));
    assert_true(last_s > 0 && last_s < 5e-3);
    assert_close(json_number_value(json_object_get(value, "time_s")) - last_s,
                 time_of(box, "all_reduce star:hosts=4 --bytes 10MB"), 1e-9);
    json_decref(value);
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
    program_refuses(box, "collective send star:hosts=2 --bytes 1MB --granularity rack", 2,
                    "rack");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("collective_command", tests, NULL, NULL);
}
