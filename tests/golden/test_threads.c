/* The number of threads changes no byte of an answer: simulations with noise, days of training,
 * sweeps. */
#include "tests/support/program.h"

static const char *const THREADS[] = {"1", "2", "3", "8"};

static Sandbox *planned(void)
{
    Sandbox *box = sandbox_new();
    program_runs(box, "plan --planner hap vgg19:width=8 hap-8 -q -o p.json");
    return box;
}

/* Runs the line with each number of threads. */
static void check_same(const Sandbox *box, const char *line)
{
    g_autofree char *first = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(THREADS); i++) {
        g_autofree char *whole = g_strconcat(line, " --json -j ", THREADS[i], NULL);
        g_auto(Ran) ran = program_run_good(box, whole);
        if (!first)
            first = g_strdup(ran.out);
        assert_string_equal(ran.out, first);
    }
}

static void test_samples(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = planned();
    check_same(box, "simulate p.json -f flow --samples 24 --set jitter=0.1 --seed 3");
}

static void test_days(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = planned();
    sandbox_write(box, "log.csv",
                  "time_s,machines\n1000,1\n50000,2\n300000,1\n900000,1\n");
    check_same(box, "days 30 p.json --mtbf 500h --spares 1 --runs 30");
    check_same(box, "days 30 p.json --mtbf 500h --weibull 0.7 --runs 30 "
                    "--stragglers 1000h,30min,1.5");
    check_same(box, "days 30 p.json --failures log.csv --runs 4");
}

static void test_sweep(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *first = NULL;
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: ['vit:layers=1', 'vgg19:width=8']\n"
                  "  cluster: [hap-8, hap-16]\n  planner: [hap, dp-ev]\n");
    for (uint32_t i = 0; i < G_N_ELEMENTS(THREADS); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --db %s.db -q -j %s", THREADS[i], THREADS[i]);
        g_autofree char *table =
            g_strdup_printf("table %s.db --rows model --rows cluster --columns planner "
                            "--value iteration_time_s",
                            THREADS[i]);
        program_runs(box, line);
        g_auto(Ran) ran = program_run_good(box, table);
        if (!first)
            first = g_strdup(ran.out);
        assert_string_equal(ran.out, first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
