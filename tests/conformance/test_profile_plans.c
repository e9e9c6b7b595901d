/* A workload by profile goes through every planner: its plans are proved, simulated, and read again
 * without the profile; and a device type without measurements is named. */
#include <glib/gstdio.h>

#include "tests/support/program.h"
#include "tests/test.h"

#define HEAD                                                                           \
    "{\"format\": {\"name\": \"kilter-profile\", \"version\": 1}, \"name\": \"net\", " \
    "\"batch\": 8, "
#define TIMES(seconds)                                                            \
    "\"forward_s\": {\"v100\": " seconds ", \"p100\": [[8, 0.02], [64, 0.09]]}, " \
    "\"backward_s\": {\"v100\": " seconds ", \"p100\": [[8, 0.04], [64, 0.2]]}}"

/* A fork and a join of layers, the widest of which communicates less whole than its gradient. */
static const char WORK[] =
    HEAD "\"input_bytes\": 4096, \"ops\": ["
         "{\"op\": \"stem\", \"bytes\": 262144, \"kept_bytes\": 524288, "
         "\"parameter_bytes\": 4096, " TIMES(
             "0.01") ", "
                     "{\"op\": \"left\", \"in\": [\"stem\"], \"bytes\": 131072, "
                     "\"parameter_bytes\": 65536, " TIMES(
                         "0.02") ", "
                                 "{\"op\": \"right\", \"in\": [\"stem\"], \"bytes\": "
                                 "131072, " TIMES(
                                     "0.01") ", "
                                             "{\"op\": \"head\", \"in\": [\"left\", "
                                             "\"right\"], \"bytes\": 1024%s, "
                                             "\"parameter_bytes\": 8388608, " TIMES(
                                                 "0.005") "]}";

static void write_work(const Sandbox *box, const char *more)
{
    g_autofree char *text = g_strdup_printf(WORK, more);
    sandbox_write(box, "net.json", text);
}

static void test_every_planner(void **state)
{
    (void)state;
    static const char *const PLANNED[] = {
        "--planner hap",
        "--planner hap --granularity machine",
        "--planner hap --set microbatches=4 --set recompute=full",
        "--planner dp-ev",
        "--planner dp-cp",
        "--planner deepspeed",
        "--planner hidup",
        "--planner ddp",
        "--planner tag",
        "--planner amp --set schedule=1f1b",
        "--planner megatron",
        "--planner joint",
        "--planner auto",
        "--planner m-etf",
        "--planner manual --set pp=2 --set dp=8 --set micro_batch=2",
        "--planner manual --set dp=16 --set zero=3",
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(PLANNED); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        write_work(box, "");
        const bool whole = strstr(PLANNED[i], "machine") != NULL;
        g_autofree char *plan =
            g_strdup_printf("plan --planner hap profile:net.json hap-16 %s %s -o p.json",
                            PLANNED[i], whole ? "" : "--granularity gpu");
        program_runs(box, plan);
        g_autofree char *file = g_build_filename(box->folder, "net.json", NULL);
        assert_int_equal(g_remove(file), 0);
        g_auto(Ran) proved = program_run_good(box, "verify p.json");
        assert_non_null(strstr(proved.out, "error"));
        g_auto(Ran) simulated = program_run_good(box, "simulate p.json -f flow");
        assert_non_null(strstr(simulated.out, "iteration"));
    }
}

/* An op that is not splittable stays whole on every device, or keeps planners from dividing the
 * batch. */
static void test_whole_ops(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_work(box, ", \"splittable\": false");
    program_runs(box, "plan --planner hap profile:net.json hap-16 -o p.json");
    program_runs(box, "verify p.json");
    g_auto(Ran) refused =
        program_run(box, "plan profile:net.json hap-16 --planner hidup");
    assert_int_equal(refused.status, 2);
    assert_non_null(strstr(refused.err, "op head does not run on parts of it"));
}

static void test_types_that_were_not_measured(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_work(box, "");
    static const char *const LINE[] = {
        "plan --planner hap profile:net.json hap-a100-4 -o p.json",
        "sfb profile:net.json hap-a100-4", "memory profile:net.json hap-a100-4",
        "sensitivity profile:net.json hap-a100-4"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINE); i++) {
        g_auto(Ran) refused = program_run(box, LINE[i]);
        assert_int_equal(refused.status, 2);
        assert_non_null(strstr(refused.err,
                               "op stem has no times on device type a100 of cluster "
                               "hap-a100-4; it was measured on p100, v100"));
    }
    program_runs(box, "plan profile:net.json hap-16 --planner dp-ev "
                      "--granularity gpu -o p.json");
    g_auto(Ran) moved = program_run(box, "simulate p.json hap-a100-4");
    assert_int_not_equal(moved.status, 0);
}

/* One device takes exactly the measured time: for 8 samples on a V100, and for numbers of samples
 * in between on a P100. */
static void test_times_by_hand(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_work(box, "");
    sandbox_write(box, "p.yaml",
                  "name: p\ndevice_types:\n  - {name: p100, rate: 1000000 TFLOP/s, "
                  "memory: 16 GiB}\n"
                  "machines:\n  - {name: m, type: p100, gpus: 1}\n");
    g_auto(Ran) planned = program_run_good(
        box, "plan profile:net.json:batch=36 p.yaml --planner dp-ev --json");
    /* Four ops of (0.02 + 0.09) / 2 forward and (0.04 + 0.2) / 2 backward, `right` having one, too;
     * updates take no time. */
    const char *time = strstr(planned.out, "\"iteration_time_s\": ");
    assert_non_null(time);
    assert_close(g_ascii_strtod(time + strlen("\"iteration_time_s\": "), NULL),
                 4 * (0.055 + 0.12), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_planner),
        cmocka_unit_test(test_whole_ops),
        cmocka_unit_test(test_types_that_were_not_measured),
        cmocka_unit_test(test_times_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
