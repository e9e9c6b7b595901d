/* Several plans on one network (kilter simulate A.json B.json --cluster C): alone each takes what
 * `flow` says; apart none loses; on a shared link of which each could use all, all communication
 * takes as many times as long. */
#include "tests/support/program_json.h"

#include <math.h>

#define LINKS "bandwidth=10Gb/s,latency=0us,inner_bandwidth=100GB/s"

static void make_plan(const Sandbox *box, const char *model, const char *file)
{
    g_autofree char *line =
        g_strdup_printf("plan --planner hap %s 'star:hosts=2,gpus=2," LINKS
                        "' --planner dp-ev --granularity gpu -q -o %s",
                        model, file);
    program_runs(box, line);
}

static json_t *side_by_side(const Sandbox *box, const char *files, const char *cluster)
{
    g_autofree char *line =
        g_strdup_printf("simulate %s --cluster '%s' --json", files, cluster);
    json_t *answer = program_json(box, line);
    json_t *jobs = json_incref(json_object_get(answer, "jobs"));
    json_decref(answer);
    assert_true(json_array_size(jobs) > 0);
    return jobs;
}

static void test_alone(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    make_plan(box, "vgg19", "a.json");
    make_plan(box, "vit:layers=2", "b.json");
    static const char *const FILES[] = {"a.json", "b.json"};
    json_t *jobs = side_by_side(box, "a.json b.json", "star:hosts=4,gpus=2," LINKS);
    for (uint32_t i = 0; i < G_N_ELEMENTS(FILES); i++) {
        g_autofree char *line = g_strdup_printf("simulate %s -f flow --json", FILES[i]);
        json_t *single = program_json(box, line);
        const json_t *job = json_array_get(jobs, i);
        const double flow_s = number(single, "iteration_time_s");
        assert_float_equal(number(job, "alone_s") / flow_s, 1, 1e-9);
        assert_float_equal(number(job, "slowdown"), 1, 1e-9);
        json_decref(single);
    }
    json_decref(jobs);
}

/* A narrow link between two leaves, which both plans cross. */
static void test_crossed(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    make_plan(box, "vgg19", "a.json");
    static const char TREE[] = "tree:hosts=4,gpus=2,leaf=2,oversubscription=64," LINKS;
    json_t *packed = side_by_side(box, "a.json a.json", TREE);
    json_t *spread = side_by_side(box, "a.json a.json --place spread", TREE);
    for (uint32_t i = 0; i < 2; i++) {
        const json_t *job = json_array_get(spread, i);
        assert_float_equal(number(json_array_get(packed, i), "slowdown"), 1, 1e-9);
        /* nearly all of the time is communication, which takes twice as long */
        assert_true(number(job, "slowdown") > 1.9 && number(job, "slowdown") <= 2 + 1e-9);
        assert_int_equal((int)number(job, "iterations"), 10);
    }
    json_decref(packed);
    json_decref(spread);
}

/* A short job beside a long one runs on, so that the long one is slowed down all the time. */
static void test_unlike(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    make_plan(box, "vgg19", "a.json");
    make_plan(box, "vit:layers=1", "b.json");
    static const char TREE[] = "tree:hosts=4,gpus=2,leaf=2,oversubscription=8," LINKS;
    json_t *jobs = side_by_side(box, "a.json b.json --place spread --samples 3", TREE);
    const json_t *a = json_array_get(jobs, 0), *b = json_array_get(jobs, 1);
    assert_true(number(a, "slowdown") > 1.05 && number(b, "slowdown") > 1.05);
    assert_true(number(a, "iterations") >= 3 && number(b, "iterations") >= 3);
    assert_true(number(a, "iterations") != number(b, "iterations"));
    /* both end about when the last of the longer job's iterations does */
    const double a_s = number(a, "iterations") * number(a, "together_s"),
                 b_s = number(b, "iterations") * number(b, "together_s");
    assert_true(fabs(a_s - b_s) <= MAX(number(a, "together_s"), number(b, "together_s")));
    json_decref(jobs);
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    make_plan(box, "vgg19", "a.json");
    program_refuses(box,
                    "simulate a.json a.json --cluster 'star:hosts=3,gpus=2," LINKS "'", 2,
                    "no machine of cluster");
    program_refuses(box, "simulate a.json a.json --cluster dgx-h100", 2,
                    "no machine of cluster dgx-h100 has 2 free GPUs");
    program_refuses(box, "simulate a.json --place spread", 2, "--place is for --cluster");
    program_refuses(box, "simulate a.json a.json a.json", 2, "need --cluster");
    program_refuses(box, "simulate a.json --cluster dgx-h100 --trace t.json", 2,
                    "--trace is for a plan");
    program_refuses(box, "simulate a.json --cluster dgx-h100 --place near", 2,
                    "packed, spread");
}

/* Samples without noise are the iteration itself, whatever prices its ops. */
static void test_samples(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *answer = program_json(
        box, "simulate vit:layers=2 dgx-h100 --planner dp-ev --granularity gpu -f flow "
             "--samples 2 --set costs=kernels --json");
    assert_float_equal(number(json_object_get(answer, "samples"), "mean_s") /
                           number(answer, "iteration_time_s"),
                       1, 1e-9);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_crossed),
        cmocka_unit_test(test_unlike),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
