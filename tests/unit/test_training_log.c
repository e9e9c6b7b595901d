/* Logs of training frameworks, and trials whose time is in the log of their run. */
#include <math.h>
#include <stdlib.h>

#include "data/data.h"
#include "experiments/calibration/trial_file.h"
#include "tests/test.h"

static const char MEGATRON[] =
    " [2024-03-01 10:00:00] iteration       10/     100 | consumed samples:          640 "
    "| "
    "elapsed time per iteration (ms): 9834.5 | throughput per GPU (TFLOP/s/GPU): 95.1 |\n"
    "[Rank 0] (after 10 iterations) memory (MB) | allocated: 1000.5 | max allocated: "
    "2048.0 | reserved: 3000.0 | max reserved: 3000.0\n"
    " [2024-03-01 10:00:20] iteration       20/     100 | elapsed time per iteration "
    "(ms): "
    "1800.0 | learning rate: 1.5E-05 |\n"
    " [2024-03-01 10:00:40] iteration       30/     100 | elapsed time per iteration "
    "(ms): "
    "1.9E+03 | learning rate: 1.5E-05 |\n";

static double log_of[LOG_QUANTITIES];

static void parse(const char *text)
{
    if (!training_log_parse(text, log_of))
        fail_msg("%s: no time", text);
}

static void test_frameworks(void **state)
{
    (void)state;
    parse(MEGATRON);
    assert_float_equal(log_of[LOG_SECONDS], 1.85, 1e-12);
    assert_float_equal(log_of[LOG_PEAK_BYTES], 2048.0 * (1 << 20), 1);
    assert_true(isnan(log_of[LOG_TOKENS_PER_S]) && isnan(log_of[LOG_SAMPLES_PER_S]));
    parse("https: 12\n[titan] \x1b[36mstep: 10  \x1b[32mloss: 9.1  \x1b[33mmemory: "
          "35.5GiB(44%)  \x1b[34mtps: 5,762  \x1b[36mtflops: 333.60\x1b[0m\n");
    assert_float_equal(log_of[LOG_TOKENS_PER_S_PER_GPU], 5762, 1e-9);
    assert_float_equal(log_of[LOG_PEAK_BYTES], 35.5 * (1 << 30), 1);
    assert_true(isnan(log_of[LOG_SECONDS]));
    parse("{'train_runtime': 120.5, 'train_samples_per_second': 26.5, 'x': 1}\n");
    assert_float_equal(log_of[LOG_SAMPLES_PER_S], 26.5, 1e-12);
    parse("{\"epoch\":1.0,\"train_samples_per_second\":26.5,\"step\":100}");
    assert_float_equal(log_of[LOG_SAMPLES_PER_S], 26.5, 1e-12);
    parse("elapsed_time_per_iteration_ms: 1.2K | tokens_per_sec: 12K |");
    assert_float_equal(log_of[LOG_SECONDS], 1.2, 1e-12);
    parse("global_step=20, RunningAvgSamplesPerSec=80.1, CurrSamplesPerSec=81.25, "
          "MemAllocated=3.1GB, MaxMemAllocated=5.5GB\n");
    assert_float_equal(log_of[LOG_SAMPLES_PER_S], 81.25, 1e-12);
    assert_float_equal(log_of[LOG_PEAK_BYTES], 5.5 * (1 << 30), 1);
    parse("\t Train throughput/tokens_per_sec: 1234.5\n");
    assert_float_equal(log_of[LOG_TOKENS_PER_S], 1234.5, 1e-9);
    parse("Epoch 0: | train_step_timing in s: 5.06 | memory: 80 GB");
    assert_float_equal(log_of[LOG_SECONDS], 5.06, 1e-12);
    assert_true(isnan(log_of[LOG_PEAK_BYTES])); /* no sum of torchtitan's */
}

static void test_others(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {"",
                                         "tps:",
                                         "https: 5",
                                         "tps: nan",
                                         "tps: 0",
                                         "tps: -3",
                                         "loss: 2.1\n",
                                         "elapsed time per iteration (ms):",
                                         "memory: 35.5GiB",
                                         "tps: 1e999"};
    for (guint i = 0; i < G_N_ELEMENTS(OTHERS); i++) {
        assert_false(training_log_parse(OTHERS[i], log_of));
    }
}

/* A trial's log says what its cells leave out; a log in place of the table is told. */
static void test_trials(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-log-XXXXXX", NULL),
                    *file = g_build_filename(folder, "run.log", NULL);
    assert_true(g_file_set_contents(file, MEGATRON, -1, NULL));
    g_autofree char *text = g_strdup_printf(
        "model,tp,peak,log\nbert-base,2,,%s\nbert-base,2,3 GiB,%s\n", file, file);
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("dgx-a100", &error);
    g_autoptr(Sheets) sheets = sheets_load(&error);
    g_autoptr(GArray) trials =
        trial_file_parse("t.csv", text, strlen(text), cluster, sheets, &error);
    assert_no_error(error);
    const Trial *first = &g_array_index(trials, Trial, 0), *second = first + 1;
    assert_float_equal(first->measured_s, 1.85, 1e-12);
    assert_float_equal(first->measured_bytes, 2048.0 * (1 << 20), 1);
    assert_float_equal(second->measured_bytes, 3.0 * (1 << 30), 1);
    assert_null(trial_file_read(file, cluster, &error));
    assert_non_null(strstr(error->message, "kilter fit (column log) reads"));
    g_clear_error(&error);
    static const char missing[] = "model,log\nbert-base,none.log\n";
    assert_null(
        trial_file_parse("t.csv", missing, sizeof missing - 1, cluster, sheets, &error));
    assert_string_equal(error->message, "t.csv:2: log: none.log: no such file");
    g_autofree char *command = g_strdup_printf("rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frameworks),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
