/* Both ends of every range that an option of planning, strategy or simulation, or a parameter of a
 * model allows, run through the planners, and what they plan simulated: an answer or a refusal,
 * within 20 s of CPU and 2 GiB unless that was said before, and never a signal. The ranges are
 * those of the option tables. KILTER_ALL: every end by every planner; else a sample. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/base/path.h"
#include "data/base/text.h"
#include "data/models/models.h"
#include "tests/support/option_ranges.h"
#include "tests/test.h"

#define MODEL   "vit:layers=1,hidden=64,heads=4,ffn=128,global_batch=32"
#define CLUSTER "hap-8"

/* --- one run, in a process of its own --- */

enum { CPU_S = 20, MEMORY_GIB = 2 };

/* A search that is known to take longer, or more memory, is not done. */
static void leave_out(double seconds, const char *words)
{
    _exit(seconds >= CPU_S && *words ? 0 : KILTER_ERROR_FAILED);
}

static int plan_status(const Planner *planner, const char *model, const ClusterView *view,
                       const PlannerOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Question) question = question_open(planner, model, view, options, &error);
    if (!question)
        return error->code;
    g_autoptr(Graph) graph = question_graph(question);
    g_autoptr(Plan) plan =
        planner_plan(planner, model, CLUSTER, view, options, NULL, &error);
    if (!plan)
        return error->code;
    static const char *const fidelity[] = {"stage", "flow"};
    for (uint32_t f = 0; f < G_N_ELEMENTS(fidelity); f++) {
        g_autoptr(SimReport) report =
            sim_evaluate_with(plan, graph, view, fidelity[f], &options->sim, &error);
        if (!report)
            return error->code;
    }
    return 0;
}

/* Runs of this test that ended by a signal or a status that has no meaning. */
static uint32_t wrong;

/* Sets key to value, if there is one, and plans; counts and prints a wrong end. Returns the
 * status, or -1. */
static int run_apart(const Planner *planner, const char *model, const ClusterView *view,
                     const char *key, const char *value)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit cpu = {CPU_S, CPU_S},
                            memory = {(rlim_t)MEMORY_GIB << 30, (rlim_t)MEMORY_GIB << 30};
        setrlimit(RLIMIT_CPU, &cpu);
        setrlimit(RLIMIT_AS, &memory);
        PlannerOptions options;
        planner_options_init(&options);
        if (key && !planner_options_set(&options, key, value, NULL))
            _exit(KILTER_ERROR_INPUT);
        planner_tell(leave_out);
        _exit(plan_status(planner, model, view, &options));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code < 0 || code > 3) {
        wrong++;
        print_error("%s of %s with %s=%s: %s %d\n", planner->name, model, key ? key : "-",
                    value ? value : "-", code < 0 ? "signal" : "status",
                    code < 0 ? WTERMSIG(status) : code);
    }
    return code;
}

static ClusterView *view_new(Cluster **cluster)
{
    g_autoptr(GError) error = NULL;
    *cluster = cluster_load(CLUSTER, &error);
    assert_no_error(error);
    return cluster_view(*cluster, GRANULARITY_MACHINE);
}

/* --- the tables --- */

static void test_options(void **state)
{
    (void)state;
    enum { SAMPLE = 5, LEAST_ENDS = 150 };
    const bool all = g_getenv("KILTER_ALL") != NULL;
    Cluster *cluster;
    g_autoptr(ClusterView) view = view_new(&cluster);
    uint32_t n = 0, ends = 0, planned = 0;
    wrong = 0;
    for (uint32_t r = 0; r < G_N_ELEMENTS(RANGES); r++) {
        g_auto(GStrv) end = range_ends(&RANGES[r]);
        for (uint32_t e = 0; end[e]; e++, ends++)
            for (uint32_t p = 0; p < planner_count(); p++)
                if (all || (p == ends / SAMPLE % planner_count() && ends % SAMPLE == 0)) {
                    n++;
                    planned +=
                        run_apart(planner_at(p), MODEL, view, RANGES[r].key, end[e]) == 0;
                }
    }
    assert_true(ends >= LEAST_ENDS);
    assert_int_equal(wrong, 0);
    if (6 * planned < n)
        fail_msg("only %u of %u ends of options are planned", planned, n);
    cluster_free(cluster);
}

static void test_models(void **state)
{
    (void)state;
    enum { SAMPLE = 67, PLANNERS = 5 };
    static const char *const by[PLANNERS] = {"dp-ev", "hap", "joint", "amp", "hidup"};
    const bool all = g_getenv("KILTER_ALL") != NULL;
    Cluster *cluster;
    g_autoptr(ClusterView) view = view_new(&cluster);
    uint32_t ends = 0;
    wrong = 0;
    for (uint32_t m = 0; m < MODEL_TABLE_SIZE; m++)
        for (const ModelParam *param = MODEL_TABLE[m].param; param->key; param++)
            for (uint32_t e = 0; e < 2; e++, ends++) {
                if (!all && ends % SAMPLE != 0)
                    continue;
                g_autofree char *spec = g_strdup_printf(
                    "%s:%s=%.17g%s", MODEL_TABLE[m].info.name, param->key,
                    e ? param->max : param->min, param->unit ? param->unit : "");
                for (uint32_t p = 0; p < PLANNERS; p++)
                    if (all || p == ends / SAMPLE % PLANNERS)
                        run_apart(planner_find(by[p], NULL), spec, view, NULL, NULL);
            }
    assert_true(ends > 4 * MODEL_TABLE_SIZE);
    assert_int_equal(wrong, 0);
    cluster_free(cluster);
}

/* Every key has its line in data/commands/keys.txt, and nothing else is explained there. */
static void test_every_key_is_explained(void **state)
{
    (void)state;
    g_autofree char *file = path_find("commands/keys.txt");
    g_autofree char *text = file ? text_read(file, NULL) : NULL;
    assert_non_null(text);
    g_auto(GStrv) line = g_strsplit(text, "\n  ", -1);
    for (uint32_t i = 0; i < G_N_ELEMENTS(RANGES); i++) {
        uint32_t n = 0;
        for (char **at = line + 1; *at; at++) {
            const char *help =
                g_str_has_prefix(*at, RANGES[i].key) ? *at + strlen(RANGES[i].key) : "";
            n += g_str_has_prefix(help, "  ") && help[2] != '\0';
        }
        if (n != 1)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: explained %u times", RANGES[i].key, n);
    }
    assert_int_equal(g_strv_length(line) - 1, G_N_ELEMENTS(RANGES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_explained),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
