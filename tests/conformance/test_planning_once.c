/* One `kilter plan` does each of its steps once: the model is built, pins and segments are read,
 * the program is checked and the plan is evaluated a single time.
 *
 * The linker hands the calls of these functions to the counters below (--wrap,
 * tests/CMakeLists.txt). */
#include "data/data.h"
#include "tests/test.h"

#include "experiments/cli/command.h"
#include "synth/question/segments.h"
#include "synth/synth.h"

#define COUNTED_TABLE(X)                                                                 \
    X(Graph *, model_build,                                                              \
      (const char *spec, uint32_t gpus, char **name, GError **error),                    \
      (spec, gpus, name, error))                                                         \
    X(bool, program_check, (const Program *program, const Graph *graph, GError **error), \
      (program, graph, error))                                                           \
    X(SimReport *, sim_evaluate_with,                                                    \
      (const Plan *plan, const Graph *graph, const ClusterView *view,                    \
       const char *fidelity, const SimOptions *options, GError **error),                 \
      (plan, graph, view, fidelity, options, error))                                     \
    X(SimReport *, sim_evaluate,                                                         \
      (const Plan *plan, const Graph *graph, const ClusterView *view,                    \
       const char *fidelity, GError **error),                                            \
      (plan, graph, view, fidelity, error))                                              \
    X(SynthPins *, synth_pins_new,                                                       \
      (const Graph *graph, const char *text, GError **error), (graph, text, error))      \
    X(bool, segments_make,                                                               \
      (const char *segments, const Graph *graph, uint16_t *segment, GError **error),     \
      (segments, graph, segment, error))                                                 \
    X(Question *, question_open,                                                         \
      (const Planner *planner, const char *model, const ClusterView *view,               \
       const PlannerOptions *options, GError **error),                                   \
      (planner, model, view, options, error))

enum {
#define X(type, name, parameters, arguments) COUNT_##name,
    COUNTED_TABLE(X)
#undef X
        COUNTED
};

static uint32_t count[COUNTED];

#define X(type, name, parameters, arguments) \
    type __real_##name parameters;           \
    type __wrap_##name parameters;           \
    type __wrap_##name parameters            \
    {                                        \
        count[COUNT_##name]++;               \
        return __real_##name arguments;      \
    }
COUNTED_TABLE(X)
#undef X

/* With default or other options of the simulation. */
static uint32_t evaluations(void)
{
    return count[COUNT_sim_evaluate] + count[COUNT_sim_evaluate_with];
}

static void run(const char *line)
{
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    const int argc = (int)g_strv_length(argv);
    g_autofree char **changed = g_memdup2(argv, (gsize)(argc + 1) * sizeof *argv);
    g_autoptr(GError) error = NULL;
    memset(count, 0, sizeof count);
    const bool done = cmd_plan(argc, changed, &error);
    assert_no_error(error);
    assert_true(done);
    assert_int_equal(count[COUNT_question_open], 1);
    assert_int_equal(count[COUNT_model_build], 1);
}

static void test_each_step_is_taken_once(void **state)
{
    (void)state;
    static const char *const line[] = {
        "plan --planner hap -q vgg19:width=8,fc=512 hap-32",
        "plan -q vgg19:width=8,fc=512 hap-8 --planner dp-ev",
        "plan -q bert-moe:layers=2 hap-8 --planner gshard"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(line); i++) {
        run(line[i]);
        assert_int_equal(count[COUNT_program_check], 1);
        assert_int_equal(evaluations(), 1);
        assert_int_equal(count[COUNT_synth_pins_new], 0);
        assert_int_equal(count[COUNT_segments_make], 0);
    }
}

static void test_pins_and_segments_are_read_once(void **state)
{
    (void)state;
    run("plan --planner hap -q vit:layers=1 hap-8 --pin head.weight=gather(0)");
    assert_int_equal(count[COUNT_synth_pins_new], 1);
    assert_int_equal(count[COUNT_program_check], 1);
    assert_int_equal(evaluations(), 1);
    run("plan --planner hap -q vit:layers=1 hap-8 --segments metis:2");
    assert_int_equal(count[COUNT_segments_make], 1);
}

/* Each tried strategy is evaluated once, and the chosen one not again. With even shares the time
 * before rounding is the same; otherwise it is that of another plan. */
static void test_a_trial_is_the_evaluation(void **state)
{
    (void)state;
    run("plan -q bert-base:layers=2,batch=2 hap-8 --planner amp --granularity gpu --set "
        "trials=1");
    assert_int_equal(evaluations(), 1);
    run("plan --planner hap -q bert-base:layers=2,global_batch=24 "
        "star:hosts=2,gpus=4,bandwidth=10Gb/s,"
        "inner_bandwidth=10GB/s --planner manual --set tp=4 --set shares=1,2");
    assert_int_equal(evaluations(), 2);
}

static void sweep(const char *file, const char *database)
{
    char *argv[] = {"sweep", (char *)file, "-q", "--db", (char *)database, NULL};
    g_autoptr(GError) error = NULL;
    memset(count, 0, sizeof count);
    cmd_sweep(G_N_ELEMENTS(argv) - 1, argv, &error);
    assert_no_error(error);
}

/* A sweep builds each model once per number of GPUs, and a finished sweep builds none. */
static void test_a_sweep_builds_what_it_lacks(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "x.yaml", NULL);
    g_autofree char *database = g_build_filename(folder, "r.db", NULL);
    assert_true(g_file_set_contents(
        file,
        "name: x\ngrid:\n  model: ['vit:layers=1,hidden=16,heads=1', synthetic]\n"
        "  cluster: [hap-8, hap-p100-8, hap-16]\n  planner: [dp-ev, dp-cp]\n"
        "  fidelity: [analytic]\n  seed: [1, 2]\n",
        -1, NULL));
    sweep(file, database);
    assert_int_equal(count[COUNT_model_build], 2 * 2); /* 8 and 16 GPUs */
    assert_int_equal(count[COUNT_program_check], 2 * 3 * 2 * 2);
    sweep(file, database);
    assert_int_equal(count[COUNT_model_build], 0);
    assert_int_equal(count[COUNT_program_check], 0);
    remove(file);
    remove(database);
    remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step_is_taken_once),
        cmocka_unit_test(test_pins_and_segments_are_read_once),
        cmocka_unit_test(test_a_trial_is_the_evaluation),
        cmocka_unit_test(test_a_sweep_builds_what_it_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
