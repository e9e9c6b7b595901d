/* Published trials as a user's own strategies: the command line prices each as the scorecard does,
 * on a file of the scorecard's cluster. Some or all trials of AMP and vTrain. */
#include "experiments/calibration/trial_plan.h"
#include "experiments/scorecard/trials.h"
#include "tests/support/program_json.h"

#ifndef MOST_TRIALS
#define MOST_TRIALS 3
#endif

/* Writes the trial's cluster, with the scorecard's costs, to a file in the folder. */
static void write_cluster(const Sandbox *box, const TrialPlan *plan)
{
    g_autofree char *text = cluster_write(plan->cluster);
    sandbox_write(box, "cluster.yaml", text);
}

static char *command_of(const Trial *trial)
{
    GString *line = g_string_new(NULL);
    g_string_append_printf(line,
                           "simulate %s cluster.yaml --granularity gpu --planner %s "
                           "--fidelity %s --set host=waits --json",
                           trial->model, trial->planner, trial_fidelity(trial));
    g_auto(GStrv) pair = g_strsplit(trial->options, ",", -1);
    for (uint32_t i = 0; pair[i]; i++)
        if (*pair[i])
            g_string_append_printf(line, " --set '%s'", pair[i]);
    return g_string_free(line, FALSE);
}

/* A trial that does not fit ends with status 3. */
static void price(const Sandbox *box, const Trial *trial)
{
    g_autoptr(GError) error = NULL;
    g_auto(TrialPlan) plan = {0}, quick = {0};
    TrialDetail detail;
    double predicted_s, extrapolated_s;
    Trial exact = *trial;
    exact.steady = false;
    if (!trial_plan_make(&exact, NULL, &plan, &error)) { /* more stages than layers */
        write_cluster(box, &plan);
        g_autofree char *refused = command_of(trial);
        g_auto(Ran) ran = program_run(box, refused);
        assert_int_equal(ran.status, 2);
        return;
    }
    trial_plan_predict(&plan, NULL, &predicted_s, &detail, &error);
    assert_no_error(error);
    trial_plan_make(trial, NULL, &quick, &error);
    assert_no_error(error);
    trial_plan_predict(&quick, NULL, &extrapolated_s, NULL, &error);
    assert_no_error(error);
    assert_close(extrapolated_s, predicted_s, 1e-3);
    write_cluster(box, &plan);
    g_autofree char *line = command_of(trial);
    g_auto(Ran) ran = program_run(box, line);
    if (detail.peak_bytes > trial_memory_bytes(trial)) {
        assert_int_equal(ran.status, 3);
        return;
    }
    if (ran.status != 0)
        fail_msg("%s: status %d: %s", line, ran.status, ran.out);
    json_t *object = json_of(ran.out);
    assert_close(number(object, "iteration_time_s"), predicted_s, 1e-9);
    json_decref(object);
}

/* Every k-th trial, so that MOST_TRIALS are run at most. */
static void run_set(const char *name)
{
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(TrialSet) set = trials_read(name, folder, &error);
    assert_no_error(error);
    assert_true(set->trial->len > 30);
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < set->trial->len;
         i += (set->trial->len + MOST_TRIALS - 1) / MOST_TRIALS) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        assert_string_equal(trial->planner, "manual");
        price(box, trial);
    }
}

static void test_amp_homogeneous(void **state)
{
    (void)state;
    run_set("amp-homogeneous");
}

static void test_amp_het_model(void **state)
{
    (void)state;
    run_set("amp-het-model");
}

static void test_vtrain(void **state)
{
    (void)state;
    run_set("vtrain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amp_homogeneous),
        cmocka_unit_test(test_amp_het_model),
        cmocka_unit_test(test_vtrain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
