/* What scripts rely on: keys of --json, equal output of equal runs, files that appear. */
#include "tests/support/program_json.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

/* Keys that every plan and simulation carries. */
static const char *const keys[] = {
    "model",          "cluster", "planner", "fidelity",      "iteration_time_s",
    "lower_bound_s",  "gap",     "optimal", "search_time_s", "stages",
    "balance_time_s", "ratios",  "seed",    "memory_bytes",  "feasible",
    "version"};

static void test_lists(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const struct {
        const char *line, *key[4];
    } cases[] = {{"models --json", {"name", "parameters", "ops", "source"}},
                 {"clusters --json", {"name", "description", "gpus", "machines"}},
                 {"planners --json", {"name", "description", "source", NULL}}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *object = program_json(box, cases[i].line);
        g_auto(GStrv) word = g_strsplit(cases[i].line, " ", 2);
        const json_t *list = json_object_get(object, word[0]);
        assert_true(json_array_size(list) >= 4);
        for (size_t k = 0; k < json_array_size(list); k++)
            for (guint j = 0; j < 4 && cases[i].key[j]; j++)
                assert_non_null(
                    json_object_get(json_array_get(list, k), cases[i].key[j]));
        json_decref(object);
    }
}

static void assert_keys(const json_t *object)
{
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++)
        if (!json_object_get(object, keys[i]))
            TEST_FAIL_AT(__FILE__, __LINE__, "no key '%s'", keys[i]);
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A plan file simulates to what making the plan on the spot does, and by either fidelity to the
 * plan's own time. */
static void test_plan_and_simulate(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *plan = program_json(box, "plan " SMALL " hap-8 --json -o p.json");
    json_t *file = program_json(box, "simulate p.json --json");
    json_t *model = program_json(box, "simulate " SMALL " hap-8 --json");
    json_t *analytic = program_json(box, "simulate p.json --fidelity analytic --json");
    json_t *all[] = {plan, file, model, analytic};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        assert_keys(all[i]);
        assert_close(real(all[i], "iteration_time_s"), real(plan, "iteration_time_s"),
                     1e-9);
        assert_int_equal(json_array_size(json_object_get(all[i], "memory_bytes")), 8);
    }
    assert_string_equal(json_string_value(json_object_get(plan, "fidelity")), "analytic");
    assert_string_equal(json_string_value(json_object_get(file, "fidelity")), "stage");
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        json_decref(all[i]);
}

static char *without_wall_clock(const char *json)
{
    json_t *object = json_of(json);
    json_object_del(object, "search_time_s");
    json_object_del(object, "balance_time_s");
    json_object_del(object, "certificate_time_s");
    char *text = json_dumps(object, 0);
    json_decref(object);
    return text;
}

static void test_equal_runs(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {
        "plan " SMALL " hap-8 --planner hap --json -o p.json",
        "plan vgg19:width=8,fc=64 hap-32 --planner deepspeed --granularity gpu --json -o "
        "p.json",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        char *text[4];
        for (guint k = 0; k < 2; k++) {
            g_auto(Ran) ran = program_run_good(box, lines[i]);
            g_autofree char *file = sandbox_read(box, "p.json");
            text[k] = without_wall_clock(ran.out);
            text[2 + k] = without_wall_clock(file);
        }
        assert_string_equal(text[0], text[1]);
        assert_string_equal(text[2], text[3]);
        for (guint k = 0; k < 4; k++)
            free(text[k]);
    }
}

static void test_quiet(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) plan = program_run_good(box, "plan " SMALL " hap-8 --planner dp-ev -q");
    assert_string_equal(plan.out, "");
    assert_string_equal(plan.err, "");
    g_auto(Ran) help = program_run_good(box, "plan --help");
    assert_non_null(strstr(help.out, "Example:"));
}

static void assert_starts(const Sandbox *box, const char *name, const char *start)
{
    g_autofree char *text = sandbox_read(box, name);
    if (!g_str_has_prefix(text, start))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s does not start with '%s'", name, start);
}

/* A figure is drawn from whatever results there are, again and again the same. */
static void test_figure(void **state)
{
    (void)state;
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot) {
        print_message("skipped: no gnuplot\n");
        skip();
    }
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "part.yaml",
        "name: part\ngrid:\n  model: [vgg19, bert-moe]\n  cluster: [hap-8, hap-64]\n"
        "  planner: [dp-ev, deepspeed]\n");
    g_auto(Ran) sweep = program_run_good(box, "sweep part.yaml --db r.db");
    g_auto(Ran) first = program_run_good(box, "figure hap-fig13 --db r.db -o pictures");
    assert_string_equal(first.err, "");
    assert_starts(box, "pictures/hap-fig13.png", "\x89PNG");
    assert_starts(box, "pictures/hap-fig13.svg", "<?xml");
    g_autofree char *svg = sandbox_read(box, "pictures/hap-fig13.svg");
    /* Data parallelism does not fit BERT-MoE on 64 GPUs. */
    assert_non_null(strstr(svg, ">OOM<"));
    assert_non_null(strstr(svg, "DeepSpeed"));
    assert_null(strstr(svg, "TAG"));
    g_auto(Ran) second = program_run_good(box, "figure hap-fig13 --db r.db -o pictures");
    g_autofree char *again = sandbox_read(box, "pictures/hap-fig13.svg");
    assert_string_equal(svg, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),      cmocka_unit_test(test_plan_and_simulate),
        cmocka_unit_test(test_equal_runs), cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
