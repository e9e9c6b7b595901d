/* The threads of a sweep: how many configurations they are given, and what becomes of them. */
#include <math.h>
#include <time.h>

#include "experiments/sweep/experiment.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/workers.h"
#include "tests/support/program.h"

enum { THREADS = 2, MANY = 300, WAIT_US = 60 * G_USEC_PER_SEC };

static bool clock_runs_back;

/* The program's clock, in place of GLib's. */
gint64 g_get_monotonic_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const gint64 us = now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
    return clock_runs_back ? (G_MAXINT64 >> 2) - us : us;
}

/* Configurations that take less than a millisecond, by seed. */
static Experiment *many(const Sandbox *box)
{
    g_autoptr(GString) text =
        g_string_new("name: many\ngrid:\n  model: ['synthetic:layers=1,gradient=4000B']\n"
                     "  cluster: [hap-8]\n  planner: [dp-ev]\n  seed: [0");
    for (int i = 1; i < MANY; i++)
        g_string_append_printf(text, ", %d", i);
    g_string_append(text, "]\n");
    sandbox_write(box, "many.yaml", text->str);
    g_autofree char *path = g_build_filename(box->folder, "many.yaml", NULL);
    GError *error = NULL;
    Experiment *experiment = experiment_load(path, NULL, &error);
    assert_no_error(error);
    assert_int_equal(experiment_count(experiment), MANY);
    return experiment;
}

/* Starts as many as may be in flight. */
static void fill(Workers *workers, const Experiment *experiment, uint32_t *next)
{
    while (*next < MANY && workers_in_flight(workers) < workers_most(workers))
        workers_start(workers, experiment_at(experiment, (*next)++));
}

static void test_each_comes_back_once(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = many(box);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(Workers) workers = workers_new("many", THREADS);
    uint32_t next = 0, most = 0;
    double longest_us = 1;
    /* Nothing is known of their times yet, so the first row comes as soon as it may. */
    assert_int_equal(workers_most(workers), THREADS);
    while (g_hash_table_size(seen) < MANY) {
        fill(workers, experiment, &next);
        Outcome *outcome = workers_wait(workers, WAIT_US);
        for (assert_non_null(outcome); outcome; outcome = workers_take(workers)) {
            assert_null(outcome->error);
            assert_string_equal(outcome->result.row.status, "ok");
            assert_true(g_hash_table_add(seen, (gpointer)outcome->configuration));
            longest_us = fmax(longest_us, (double)outcome->took_us);
            outcome_free(outcome);
        }
        most = MAX(most, workers_most(workers));
    }
    assert_int_equal(workers_in_flight(workers), 0);
    /* More were in flight than there are threads: at least what these finish in 20 ms, 64 at most,
     * if all take as long as the longest. */
    enum { AHEAD_US = 20000, MOST_AHEAD = 64 };
    const double ahead = floor(AHEAD_US * THREADS / longest_us);
    assert_true(most >= THREADS + (uint32_t)fmin(ahead, MOST_AHEAD));
}

/* A clock that runs backwards ended the process. */
static void test_clock_that_runs_back(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = many(box);
    g_autoptr(Workers) workers = workers_new("many", THREADS);
    clock_runs_back = true;
    for (uint32_t next = 0, done = 0; done < MANY; done++) {
        fill(workers, experiment, &next);
        Outcome *outcome = workers_wait(workers, WAIT_US);
        assert_non_null(outcome);
        assert_string_equal(outcome->result.row.status, "ok");
        outcome_free(outcome);
    }
    clock_runs_back = false;
    assert_int_equal(workers_in_flight(workers), 0);
}

static void test_what_is_not_begun_is_given_back(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = many(box);
    g_autoptr(Workers) workers = workers_new("many", 1);
    enum { STARTED = 60 };
    uint32_t back = 0, done = 0;
    for (uint32_t i = 0; i < STARTED; i++)
        workers_start(workers, experiment_at(experiment, i));
    while (workers_take_back(workers))
        back++;
    /* Without work nothing is waited for. */
    while (workers_in_flight(workers) > 0) {
        Outcome *outcome = workers_wait(workers, WAIT_US);
        assert_non_null(outcome);
        outcome_free(outcome);
        done++;
    }
    assert_true(back > 0);
    assert_int_equal(back + done, STARTED);
    assert_null(workers_wait(workers, 1000));
}

/* A configuration that fails for another reason than its question has no row. */
static void test_a_row_or_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *set, *status; /* NULL: an error */
    } CASE[] = {{"ratios=even", "ok"},
                {"pin=nothing=gather(0)", "impossible"},
                {"fail=v100-0@1us", NULL}}; /* the iteration does not end */
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *text = g_strdup_printf(
            "name: one\ngrid:\n  model: ['vgg19:width=8,fc=64']\n  cluster: [hap-8]\n"
            "  planner: [hap]\n  fidelity: [flow]\nset: ['%s']\n",
            CASE[i].set);
        sandbox_write(box, "one.yaml", text);
        g_autofree char *path = g_build_filename(box->folder, "one.yaml", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Experiment) experiment = experiment_load(path, NULL, &error);
        assert_no_error(error);
        Result result;
        const bool good =
            result_evaluate(experiment_at(experiment, 0), "one", &result, &error);
        assert_int_equal(good, CASE[i].status != NULL);
        assert_int_equal(good, error == NULL);
        if (!good)
            continue;
        assert_string_equal(result.row.status, CASE[i].status);
        /* the model's keys, whole numbers as such */
        assert_true(strcmp(CASE[i].status, "ok") != 0 ||
                    strstr(store_part_text(result.common), "\"fc\":64,"));
        result_clear(&result);
    }
}

/* The members that many results have in common are apart from the others, and no member is lost. */
static void test_members_in_common(void **state)
{
    (void)state;
    static const char *const KEY[] = {"gates",     "model",  "parameters",
                                      "placement", "ratios", "stages"};
    enum { KEYS = G_N_ELEMENTS(KEY), COMMON = 4 };
    for (uint32_t set = 0; set < 1u << KEYS; set++) {
        json_t *detail = json_object();
        g_auto(Result) result = {0};
        for (uint32_t k = 0; k < KEYS; k++)
            if (set >> k & 1)
                json_object_set_new(detail, KEY[k], json_integer(k));
        result_take_detail(&result, detail);
        assert_int_equal(result.common != NULL, (set & ((1u << COMMON) - 1)) != 0);
        assert_int_equal(result.detail != NULL, set >> COMMON != 0);
        for (uint32_t k = 0; k < KEYS; k++) {
            const char *text = k < COMMON
                                   ? (result.common ? store_part_text(result.common) : "")
                               : result.detail ? result.detail
                                               : "";
            const char *other =
                k >= COMMON     ? (result.common ? store_part_text(result.common) : "")
                : result.detail ? result.detail
                                : "";
            assert_int_equal(strstr(text, KEY[k]) != NULL, set >> k & 1);
            assert_null(strstr(other, KEY[k]));
        }
    }
}

/* Looks at the store as others see it while nothing is done yet. */
typedef struct {
    const Experiment *experiment;
    Store *store;
    uint32_t running; /* most claims that were seen */
} Seen;

static bool look(const SweepProgress *progress, void *data)
{
    Seen *seen = data;
    g_autoptr(GError) error = NULL;
    g_autofree SweepStatus *status =
        sweep_status(seen->experiment, seen->store, 0, NULL, NULL, &error);
    assert_no_error(error);
    if (progress->done == 0)
        seen->running = MAX(seen->running, status[0].running);
    return progress->done == 0;
}

/* Before anything is known of their times, as many configurations are claimed as there are threads,
 * so that other processes get the rest. */
static void test_claims(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = many(box);
    g_autofree char *path = g_build_filename(box->folder, "r.db", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Store) store = store_open(path, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    Seen seen = {experiment, store, 0};
    SweepProgress progress;
    sweep_run(experiment, store,
              &(SweepOptions){.threads = THREADS, .watch = look, .data = &seen},
              &progress, &error);
    assert_error(error, KILTER_ERROR_FAILED, "stopped with");
    assert_int_equal(seen.running, THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_comes_back_once),
        cmocka_unit_test(test_clock_that_runs_back),
        cmocka_unit_test(test_what_is_not_begun_is_given_back),
        cmocka_unit_test(test_a_row_or_an_error),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_members_in_common),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
