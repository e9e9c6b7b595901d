/* Published peaks of memory (experiments/scorecard/peaks.sql): how far predictions are off, and
 * that no run is said not to fit that did. The default test has those of up to 32 GPUs. */
#include <math.h>

#include "experiments/scorecard/scorecard.h"
#include "tests/test.h"

static const double MOST_MAPE = 0.08, MOST_BEYOND = 0.03;

static void test_published_peaks(void **state)
{
    (void)state;
    const bool all = g_getenv("KILTER_LONG") != NULL;
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read_plain("peaks", folder, NULL, &error);
    assert_no_error(error);
    for (guint i = set->trial->len; i-- > 0;) {
        Trial *trial = &g_array_index(set->trial, Trial, i);
        trial->split = SPLIT_DEVELOPMENT;
        if (!all && trial_gpus(trial) > 32)
            g_array_remove_index(set->trial, i);
    }
    g_auto(Score) score = {0};
    score_trials(set, &(ScoreOptions){.unfitted = true, .threads = 2}, &score, &error);
    assert_no_error(error);
    double beyond = 0;
    for (uint32_t i = 0; i < score.n; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        const double capacity = trial_memory_bytes(trial);
        if (score.reason[i] || !isfinite(trial->measured_bytes))
            continue;
        const double over = (score.detail[i].peak_bytes - capacity) / capacity;
        if (over > MOST_BEYOND)
            print_message("%s: said to need %.1f %% more than there is\n", trial->contest,
                          100 * over);
        beyond = fmax(beyond, over);
    }
    print_message("%u peaks, MAPE %.1f %%, worst that is said not to fit: %.1f %%\n",
                  score.memory.n, 100 * score.memory.mape, 100 * beyond);
    assert_true(score.memory.n > (all ? 100 : 50));
    assert_at_most(score.memory.mape, MOST_MAPE);
    assert_at_most(beyond, MOST_BEYOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_peaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
